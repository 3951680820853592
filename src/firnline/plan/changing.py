"""Changed code: whether an epoch may be made by other code than made the epochs before it.

What counts is the fingerprint: a refactored text with the same plan is no change, and neither is the first epoch of a log. The
epochs that a log holds keep the code that made them. An epoch by changed code leads from the rows of the log to what the new code
makes of the inputs, so that the state after it is that of a pipeline which had always had this code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph

if TYPE_CHECKING:
    from firnline.plan.agreement import Agreement


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's word that a collection's epochs may be made by some code, from a point on."""

    collection: str
    code: str
    plan: str | None
    at: int
    """Where the first epoch begins that may."""
    owner: str = ""
    since: str = ""

    def is_of(self, collection: str, today: Fingerprint) -> bool:
        """Whether it speaks of a collection's code.

        >>> given = Approval("revenue", "code", None, 0)
        >>> [given.is_of("revenue", Fingerprint(code, "plan")) for code in ("code", "other")]
        [True, False]
        """
        return self.collection == collection and today.is_same(Fingerprint(self.code, self.plan))

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def approved(present: Agreement, approvals: Iterable[Approval]) -> Agreement:
    """What the control table says once changes are approved; a collection's newest approval stands for it."""
    before = {each.collection: each for each in present.approvals}
    new = {each.collection: _extended(each, before.get(each.collection)) for each in approvals}
    kept = (each for each in present.approvals if each.collection not in new)
    return replace(present, approvals=tuple(sorted((*kept, *new.values()), key=lambda each: each.collection)))


def _extended(approval: Approval, before: Approval | None) -> Approval:
    """An approval from the earliest point that was ever given for its code."""
    is_same = before is not None and before.is_of(approval.collection, Fingerprint(approval.code, approval.plan))
    return replace(approval, at=min(approval.at, before.at)) if before is not None and is_same else approval


def check_change(
    graph: Graph, collection: Collection, made_by: Fingerprint | None, today: Fingerprint, approvals: Iterable[Approval], at: int
) -> None:
    """Refuse to make an epoch by code that changed, where the pipeline's ``on_change`` says so.

    Args:
        graph: The pipeline.
        collection: The stage.
        made_by: What made its newest epoch; None before the first.
        today: What would make the next.
        approvals: Those that stand in the control table.
        at: Where the epoch begins.
    """
    if made_by is None or today.is_same(made_by) or is_allowed(graph, collection.name, today, approvals, at):
        return
    what = f"the plan of {collection.name!r} is not the one that made its epochs before {graph.schedule.label(at)}"
    if graph.on_change == "reject":
        raise FirnlineError("CHANGE_REJECTED", f"{what}, and {graph.name!r} has on_change='reject'", collection.where)
    raise FirnlineError("CHANGE_NOT_APPROVED", what, collection.where, todo=how_to_approve(graph))


def is_allowed(graph: Graph, collection: str, today: Fingerprint, approvals: Iterable[Approval], at: int) -> bool:
    """Whether code that changed may make the epoch of a stage that begins at a point."""
    return graph.on_change == "allow" or any(each.is_of(collection, today) and each.at <= at for each in approvals)


def how_to_approve(graph: Graph, since: str | None = None) -> str:
    """The commands that let a change pass: for epochs to come, or for past ones too."""
    past = f", with '--from {since}' for past ones too" if since else ""
    return (
        f"'firnline plan {graph.name}' shows it, 'firnline approve {graph.name}' takes it from the next epoch on{past}, "
        f"'firnline plan {graph.name} --apply' replays what is stale, "
        f"'firnline branch create NAME --from EPOCH --pipeline {graph.name}' tries it beside."
    )
