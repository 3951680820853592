"""A run for an epoch that its log may hold already: is it made, kept, or rewound to and replayed?

A run does not say what it was started for: by the schedule, a backfill, somebody who cleared it. What is to be done follows from
what the log was made with. A missing epoch is made. One that today's code would make from the same inputs is kept. Where the code
or an input of another pipeline is not what it was, or where the run forces it, the collection and all that comes of it go back to
the epoch and are replayed, up to where they were; of changed code only if the pipeline's ``on_change`` lets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.plan.changing import Approval, how_to_approve
from firnline.plan.rewinding import Rewind
from firnline.plan.safepoint import compacted

Meaning = Literal["make", "keep", "replay"]


@dataclass(frozen=True, slots=True)
class Held:
    """An epoch that a log holds.

    Args:
        made_by: What made it.
        newest: What made the log's newest epoch.
        today: What would make it today.
        has_other_inputs: Whether an input of another pipeline holds other rows than when it was read.
        since: From where on the pipeline keeps single epochs: no log goes back below.
    """

    made_by: Fingerprint
    newest: Fingerprint | None
    today: Fingerprint
    has_other_inputs: bool
    since: int


def meaning(
    graph: Graph, collection: Collection, epoch: Epoch, held: Held | None, approvals: Iterable[Approval], *, is_forced: bool
) -> Meaning:
    """What a run for an epoch of a collection is to do; refused if changed code is met that nobody has approved.

    Args:
        graph: The pipeline.
        collection: The collection.
        epoch: The run's.
        held: What the log holds there; None if it does not.
        approvals: Those that stand in the control table.
        is_forced: Whether the run asks to replay whatever the log was made with, and has not done so yet.
    """
    if held is None:
        return "make"
    if epoch.lower < held.since:
        if is_forced:
            raise compacted(graph, collection.name, held.since)
        return "keep"
    is_changed = not held.today.is_same(held.made_by)
    if is_forced or (held.has_other_inputs and not is_changed):
        return "replay"
    if not is_changed:
        return "keep"
    ours = [each for each in approvals if each.is_of(collection.name, held.today)]
    if graph.on_change == "allow" or any(each.at <= epoch.lower for each in ours):
        return "replay"
    # A source takes its new code from its next epoch on without being asked.
    if ours or collection.kind == "source" or held.today.is_same(held.newest or held.made_by):
        return "keep"
    raise refusal(graph, collection, epoch.lower)


def check_replay(
    graph: Graph,
    at: int,
    stages: Iterable[str],
    made_by: Mapping[str, Sequence[Fingerprint]],
    today: Mapping[str, Fingerprint],
    approvals: Iterable[Approval],
    *,
    is_forced: bool,
) -> None:
    """Refuse a replay in which a stage would make epochs by changed code that nobody has approved from there on.

    Args:
        graph: The pipeline.
        at: The point of the rewind.
        stages: The collections that go back.
        made_by: What made their epochs from the point on.
        today: What would make them today.
        approvals: Those that stand in the control table.
        is_forced: Whether the run asks for it, which is an approval.
    """
    given = list(approvals)
    for collection in map(graph.collection, stages):
        now = today[collection.name]
        if graph.on_change == "allow" or all(now.is_same(each) for each in made_by.get(collection.name, ())):
            continue
        is_approved = is_forced or any(each.is_of(collection.name, now) and each.at <= at for each in given)
        if collection.kind == "stage" and (graph.on_change == "reject" or not is_approved):
            raise refusal(graph, collection, at)


def refusal(graph: Graph, collection: Collection, at: int) -> FirnlineError:
    """Why an epoch that a log holds is not replayed."""
    label = graph.schedule.label(at)
    what = f"the plan of {collection.name!r} is not the one that made its epochs from {label} on"
    if graph.on_change == "reject":
        return FirnlineError("CHANGE_REJECTED", f"{what}, and {graph.name!r} has on_change='reject'", collection.where)
    return FirnlineError("CHANGE_NOT_APPROVED", what, collection.where, todo=how_to_approve(graph, label))


def reach(epoch: Epoch, collection: str, rewinds: Iterable[Rewind], ended: Mapping[str, int]) -> int:
    """Up to where a run for an epoch brings a collection: where it was before the rewinds that took the epoch out.

    Args:
        epoch: The run's.
        collection: The collection.
        rewinds: Those that are not replayed yet.
        ended: Where the collection's log ended before each rewind, by its name: perhaps beyond what was complete.

    >>> taken = [Rewind("by_hand", 3, 9, {}, stages=("sums",))]
    >>> [reach(Epoch(at, at + 1), "sums", taken, {"by_hand": 10}) for at in (2, 3, 4)]
    [3, 10, 10]
    """
    ours = [each for each in rewinds if each.undoes is None and collection in each.stages and each.to <= epoch.lower]
    return max((epoch.upper, *(max(each.upper, ended.get(each.name, each.upper)) for each in ours)))
