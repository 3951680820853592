"""What a sink delivers next: one epoch at a time, from where its hold says that it stands.

A sink's hold at p, which has no lease, says: the state at p of these collections, in these generations, was delivered, or, if it
names none, is to be. A new sink begins with all there is, delivered as the newest complete epoch. Which one that is, is recorded
first, so that a retry delivers the same. A rewind behind p sets the hold back, in the commit that decides it (``seeing``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from firnline.model.epoch import Epoch, Schedule
from firnline.model.hold import Hold
from firnline.model.sink import Sink
from firnline.plan.frontier import Frontier
from firnline.plan.seeing import Void, moved, seen_of


@dataclass(frozen=True, slots=True)
class Delivery:
    """What collections changed from their ``lowers`` to the end of an epoch, delivered as that epoch."""

    epoch: Epoch
    lowers: Mapping[str, int]
    generations: Mapping[str, int]
    line: int = 0
    void: Mapping[str, tuple[Void, ...]] = field(default_factory=dict)
    """What was delivered of them, and is not true any more."""


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
    if there.delivered is None and there.at > schedule.start:
        epoch = schedule.epoch_at(there.at - 1)
    elif there.at < frontier.upper:
        epoch = schedule.epoch_at(there.at)
    else:
        return None
    seen = {name: seen_of(there, name) for name in sink.inputs if name in (there.delivered or {})}
    lowers = {name: min(seen[name].at, epoch.upper) if name in seen else schedule.start for name in sink.inputs}
    void = {name: each.void for name, each in seen.items() if each.void}
    return Delivery(epoch, lowers, {name: frontier.generations[name] for name in sink.inputs}, there.line, void)


def delivered(there: Hold, done: Delivery) -> Hold:
    """The hold of a sink that has delivered something; it never moves back. What a rewind took back meanwhile is void."""
    if there.line != done.line:
        return moved(there, done.line, done.epoch.upper) or there if there.delivered is not None else there
    if there.delivered is not None and there.at >= done.epoch.upper:
        return there
    anew = [name for name in done.generations if name not in (there.delivered or {})]
    after = moved(there, done.line, done.epoch.upper, anew)
    assert after is not None, "it is of the present line"
    return replace(after, delivered=done.generations)
