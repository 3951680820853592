"""What it takes to advance a collection through an epoch.

missing(head, target) = the epochs of the schedule from where the log ends up to the target's end, in order. An epoch that the log
holds is never computed again, so any order of runs, doubled or backwards, leads to the same log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Description
from firnline.model.epoch import Epoch, Schedule
from firnline.model.graph import Graph
from firnline.plan.safepoint import compacted


@dataclass(frozen=True, slots=True)
class Advance:
    """The epochs still to be computed, in order."""

    collection: str
    generation: int
    missing: tuple[Epoch, ...]


def advance(
    collection: Collection, schedule: Schedule, head: Description | None, target: Epoch, merged: int | None = None
) -> Advance:
    """Plan to advance a collection through the target.

    Args:
        collection: The collection.
        schedule: Its pipeline's.
        head: Where its log ends; None before its first publish.
        target: The last epoch.
        merged: Up to where its inputs keep no single epochs, if it has none yet: it begins with all of these as one.
    """
    start = schedule.start if head is None else head.upper
    if merged is not None and start < merged <= target.upper:
        start = schedule.epoch_at(merged - 1).lower
    generation = 0 if head is None else head.generation
    return Advance(collection.name, generation, tuple(schedule.epochs(start, target.upper)))


def check_target(schedule: Schedule, target: Epoch) -> None:
    """Refuse an interval that is not an epoch of the schedule."""
    found = schedule.epoch_at(target.lower)
    if found != target:
        text = f"[{schedule.label(target.lower)}, {schedule.label(target.upper)})"
        raise FirnlineError("BAD_EPOCH", f"{text} is not an epoch of the schedule")


def check_over(schedule: Schedule, target: Epoch, now: int) -> None:
    """Refuse to compute an epoch that is not over: what is still to come would be lost. Integer epochs know no clock."""
    if schedule.timed and target.upper > now:
        ends = f"{schedule.label(target.lower)} ends at {schedule.label(target.upper)}"
        raise FirnlineError("EPOCH_NOT_OVER", f"{ends}, and it is {schedule.label(now)}")


def check_inputs(graph: Graph, collection: Collection, heads: Mapping[str, Description | None], epoch: Epoch) -> None:
    """Refuse to compute an epoch before its inputs hold it, or after they hold it by itself."""
    late = [name for name in collection.inputs if (head := heads[name]) is None or head.upper < epoch.upper]
    if late:
        label = graph.schedule.label(epoch.lower)
        raise FirnlineError("INPUT_NOT_READY", f"{collection.name!r} needs {label} of {', '.join(late)}", collection.where)
    for name in collection.inputs:
        if (head := heads[name]) is not None and head.since > epoch.upper:
            raise compacted(graph, name, head.since)
