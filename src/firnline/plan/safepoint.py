"""The safe point: nothing below it will be asked for again, epoch by epoch.

safe point = max(since, min over holds in force of the points they keep), where the frontier is a hold too, and ``since`` is what
was let go of already. So it is never beyond a hold, but for one that came too late, and it never moves behind ``since``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.hold import WORDS, Hold, minute
from firnline.model.names import collection_of
from firnline.plan.agreement import Agreement

Label = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class SafePoint:
    """Where it is, and what keeps it there."""

    at: int
    since: int
    """Up to where epochs are let go of already."""
    holds: tuple[Hold, ...]
    """Those in force, by their points; what says most comes first. The frontier is one of them."""
    expired: tuple[Hold, ...]
    """Those whose lease has ended."""

    def why(self, label: Label) -> str:
        """Why it has not moved further, in one sentence."""
        first = self.holds[0]
        also = [str(hold) for hold in self.holds[1:] if hold.at == first.at and hold.kind != "frontier"]
        if first.kind == "frontier":
            return f"it is at the frontier, {label(first.at)}: nothing holds it back; to move it: {first.release}"
        moments = (("since", first.since), ("until", first.until))
        facts = [
            *([f"owner {first.owner}"] if first.owner else []),
            *(f"{word} {minute(when)}" for word, when in moments if when),
        ]
        told = f" ({', '.join(facts)})" if facts else ""
        there = f"; also by {', '.join(also)}" if also else ""
        return f"held at {label(self.at)} by {first}{told}{there}; to release it: {first.release}"


def safe_point(graph: Graph, agreement: Agreement, more: Iterable[Hold], floor: int, now: datetime) -> SafePoint:
    """The safe point of a pipeline.

    Args:
        graph: The pipeline.
        agreement: What its control table says.
        more: The holds that follow from facts outside of it.
        floor: Up to where its logs are consolidated already; the start if they are not.
        now: The moment at which leases are judged.
    """
    since = agreement.kept_since(floor)
    found = [*_following(graph, agreement), *agreement.holds, *more]
    order = list(WORDS)
    found.sort(key=lambda hold: (hold.at, order.index(hold.kind), hold.name))
    holds = tuple(hold for hold in found if not hold.is_expired(now))
    expired = tuple(hold for hold in found if hold.is_expired(now))
    return SafePoint(max(since, holds[0].at), since, holds, expired)


def _following(graph: Graph, agreement: Agreement) -> Iterator[Hold]:
    """The holds that follow from the frontier and the gap ledger."""
    frontier = graph.schedule.start if agreement.frontier is None else agreement.frontier.upper
    yield Hold("frontier", "", frontier, release=f"run the next epoch of {graph.name!r}")
    kept, todo = graph.keep.point(graph.schedule, frontier), "run more epochs, or shorten keep= of the pipeline"
    yield Hold("retention", str(graph.keep), kept, release=todo)
    known = {each.name for each in graph.collections}
    for gap in agreement.gaps.gaps:
        is_good = gap.made_good is not None and frontier >= gap.made_good
        if gap.phase != "back" and not is_good:
            first, owner = min(span.first for span in gap.spans), collection_of(gap.collection)
            todo = f"firnline repair {graph.name}" if owner in known else f"firnline plan {graph.name} --retire {owner}"
            yield Hold("gap", gap.collection, first, gap.owner, gap.since, release=todo)


def check_placed(agreement: Agreement, hold: Hold, floor: int, label: Label) -> None:
    """Refuse a hold on what is let go of already, and one whose name is taken by another kind."""
    since = agreement.kept_since(floor)
    if hold.at < since:
        what = f"{hold} cannot hold {label(hold.at)}: single epochs are kept only since {label(since)}"
        raise FirnlineError("EPOCH_COMPACTED", what)
    there = agreement.held(hold.name)
    if there is not None and there.kind != hold.kind:
        raise FirnlineError("HOLD_TAKEN", f"{hold} needs a name that {there} of {there.owner} has already")


def compacted(graph: Graph, name: str, since: int) -> FirnlineError:
    """Why an epoch of a log can no longer be asked for by itself."""
    kept = f"{graph.name}.{name} keeps single epochs only since {graph.schedule.label(since)}, as {graph.keep} says"
    return FirnlineError("EPOCH_COMPACTED", kept)
