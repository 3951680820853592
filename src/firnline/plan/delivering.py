"""What a sink delivers next: one epoch at a time, from where its hold says that it stands.

A sink's hold at p, which has no lease, says: the state at p of these collections, in these generations, was delivered, or, if it
names none, is to be. A new sink begins with all there is, delivered as the newest complete epoch. Which one that is, is recorded
first, so that a retry delivers the same. A rewind behind p, or at it, begins another line of the hold, in the commit that decides
it (``seeing``): what is delivered just then, under the key of the line before, counts as seen, and as void.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from firnline.model.epoch import Epoch, Schedule
from firnline.model.hold import Hold
from firnline.model.sink import Sink
from firnline.plan.frontier import Frontier
from firnline.plan.seeing import Void, moved, seen_of, stood


@dataclass(frozen=True, slots=True)
class Delivery:
    """What collections changed from their ``lowers`` to the end of an epoch, delivered as that epoch."""

    epoch: Epoch
    lowers: Mapping[str, int]
    generations: Mapping[str, int]
    line: int = 0
    void: Mapping[str, tuple[Void, ...]] = field(default_factory=dict)
    """What was delivered of them, and is not true any more."""
    perhaps: tuple[tuple[int, Epoch], ...] = ()
    """Lines that ended, and the epoch of each that may have been delivered by somebody who died before it was recorded."""


def begun(pipeline: str, sink: Sink, frontier: Frontier, now: str) -> Hold:
    """The hold of a sink that has delivered nothing yet."""
    release = f"firnline safepoint {pipeline} --release {sink.name}"
    return Hold("sink", sink.name, frontier.upper, f"{pipeline}.{sink.name}", now, release=release)


def next_delivery(schedule: Schedule, sink: Sink, there: Hold, frontier: Frontier) -> Delivery | None:
    """What a sink is to deliver next; None if it has delivered all that is complete.

    A collection that it has not delivered before is delivered from the start.
    """
    if any(name not in frontier.generations for name in sink.inputs):
        return None
    epoch = _next_epoch(schedule, there, there.at)
    if epoch is None or epoch.upper > frontier.upper:
        return None
    seen = {name: seen_of(there, name) for name in sink.inputs if name in (there.delivered or {})}
    lowers = {name: min(seen[name].at, epoch.upper) if name in seen else schedule.start for name in sink.inputs}
    void = {name: each.void for name, each in seen.items() if each.void}
    generations = {name: frontier.generations[name] for name in sink.inputs}
    return Delivery(epoch, lowers, generations, there.line, void, tuple(_perhaps(schedule, there)))


def delivered(there: Hold, done: Delivery) -> Hold:
    """The hold of a sink that has delivered something; it never moves back. What a rewind took back meanwhile is void."""
    known = there.delivered or {}
    is_present = there.line == done.line
    if is_present and there.delivered is not None and there.at >= done.epoch.upper:
        return there
    anew = [name for name in done.generations if name not in known]
    told = replace(there, delivered=done.generations if is_present else {**done.generations, **known})
    if there.delivered is None:
        told = replace(told, at=done.epoch.upper, ahead=None)
    return moved(told, done.line, done.epoch.upper, anew) or there


def unsaid(sink: Sink, line: int, epoch: Epoch) -> Delivery:
    """A delivery of ``perhaps`` that turns out to have been made; what it held is asked of the hold."""
    return Delivery(epoch, {}, dict.fromkeys(sink.inputs, 0), line)


def _perhaps(schedule: Schedule, there: Hold) -> Iterator[tuple[int, Epoch]]:
    for line in range(there.line - len(there.back), there.line):
        at = stood(there, line)
        assert at is not None, "it has not been told of its end"
        epoch = _next_epoch(schedule, there, at)
        if epoch is not None:
            yield line, epoch


def _next_epoch(schedule: Schedule, there: Hold, at: int) -> Epoch | None:
    """The epoch that a sink delivers at a point; a new one begins with the state there, if there is any. None at the end."""
    point = at - 1 if there.delivered is None and at > schedule.start else at
    if schedule.end is not None and point >= schedule.end:
        return None
    found = schedule.epoch_at(point)
    return Epoch(at, found.upper) if found.lower < at <= point else found  # the schedule was another one up to there
