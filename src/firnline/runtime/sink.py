"""Delivering what is complete: epoch by epoch, each at least once, in order; exactly once where a target knows what it holds.

Where a sink stands is its hold in the control table, which moves on after the delivery. Between the two a process may die: then
the same epoch is delivered again, under the same key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.model.sink import Sink, SinkEpoch
from firnline.plan.agreement import Agreement
from firnline.plan.delivering import Delivery, begun, delivered, next_delivery, unsaid
from firnline.plan.seeing import Seen, position_of
from firnline.runtime.advance import note
from firnline.runtime.changes import Changes, changed_after, changed_since
from firnline.runtime.project import Declared, Project, user_line
from firnline.runtime.safepoint import hold
from firnline.runtime.targets import Connections, Target, ToFiles, ToPostgres, is_written, write
from firnline.world import world

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivered:
    """An epoch that a sink has delivered."""

    sink: str
    epoch: str


def nowhere(name: str) -> None:
    """No connections but those of the environment."""


def deliver(project: Project, declared: Declared, name: str, connections: Connections = nowhere) -> Iterator[Delivered]:
    """Let a sink deliver all epochs that are complete, in order."""
    graph, sink = declared.graph, declared.graph.sink(name)
    while (delivery := _next(project, graph, sink)) is not None:
        world().reach("sink.chosen")
        try:
            earlier = _deliver(project, declared, sink, delivery, connections)
        except FirnlineError as error:
            note(project, graph, name, delivery.epoch, world().new_id(), error)
            raise
        if earlier is not None:
            _record(project, graph, sink, earlier)
            continue
        world().reach("sink.delivered")
        _record(project, graph, sink, delivery)
        yield Delivered(name, graph.schedule.label(delivery.epoch.lower))


def deliver_all(project: Project, declared: Declared) -> dict[str, FirnlineError]:
    """Let every sink of a pipeline deliver what it can; those that failed, each of which keeps no other from it."""
    failed = {}
    for sink in declared.graph.sinks:
        try:
            for each in deliver(project, declared, sink.name):
                _logger.info("the sink %s.%s has delivered %s", declared.graph.name, each.sink, each.epoch)
        except FirnlineError as error:
            failed[sink.name] = error
    return failed


def _next(project: Project, graph: Graph, sink: Sink) -> Delivery | None:
    """What is to be delivered now; a sink that never was is begun."""
    agreement = project.control(graph.name).agreement()
    if agreement.frontier is None:
        return None
    there = agreement.held(sink.name)
    if there is None or there.kind != "sink":
        now = world().now().isoformat(timespec="seconds")

        def place(present: Agreement, since: int) -> Hold:
            assert present.frontier is not None, "nothing takes a frontier away"
            found = present.held(sink.name)
            return found if found and found.kind == "sink" else begun(graph.name, sink, present.frontier, now)

        there = hold(project, graph, place)
    return next_delivery(graph.schedule, sink, there, agreement.frontier)


def _deliver(project: Project, declared: Declared, sink: Sink, delivery: Delivery, connections: Connections) -> Delivery | None:
    """Deliver something; if files tell that somebody had delivered before a rewind, and died, nothing but what that was."""
    graph = declared.graph
    changes = {name: _changes(project, graph, name, delivery) for name in delivery.lowers}
    for name, each in changes.items():
        if each._view.generation != delivery.generations[name]:
            raise FirnlineError("GENERATION_CHANGED", f"{graph.name}.{name} moved while the sink {sink.name!r} looked at it")
    full, label = f"{graph.name}.{sink.name}", graph.schedule.label(delivery.epoch.lower)
    epoch = SinkEpoch.of(graph.schedule, delivery.epoch, f"{full}/{position_of(label, delivery.line)}")
    try:
        returned = declared.sinks[sink.name](epoch, **changes)
    except FirnlineError:
        raise
    except Exception as error:
        where = user_line(error, project.settings.root)
        what = f"the sink {sink.name!r} failed at {label}: {type(error).__name__}: {error}"
        raise FirnlineError("SINK_FAILED", what, where) from error
    targets = _targets(sink, returned, changes)
    for line, earlier in delivery.perhaps:
        if is_written(targets, full, _folder(graph, earlier, line)):
            return unsaid(sink, line, earlier)
    write(targets, full, _folder(graph, delivery.epoch, delivery.line), connections)
    return None


def _folder(graph: Graph, epoch: Epoch, line: int) -> str:
    """What the folder of a delivery is called."""
    return str(position_of(graph.schedule.label(epoch.lower).replace(":", ""), line))


def _changes(project: Project, graph: Graph, name: str, delivery: Delivery) -> Changes:
    """What leads from what was delivered of a collection to its state at the epoch's end; all of it if that cannot be told."""
    seen = Seen(delivery.lowers[name], delivery.void.get(name, ()))
    found = changed_since(project, graph, name, seen, delivery.epoch.upper, True)
    if found is None:
        _logger.warning("%s.%s: what was delivered before a rewind is not kept: all there is is delivered", graph.name, name)
        return changed_after(project, graph, name, graph.schedule.start, delivery.epoch.upper, True)
    return found


def _targets(sink: Sink, returned: Any, changes: dict[str, Changes]) -> list[Target]:
    """What a function returned, if it is nothing but targets of what it was given."""
    targets = returned if isinstance(returned, list | tuple) else [] if returned is None else [returned]
    given = {(each.name, each._lower, each._view.upto) for each in changes.values()}
    for each in targets:
        if not isinstance(each, ToPostgres | ToFiles):
            what = f"the sink {sink.name!r} returned {type(each).__name__}, not to_postgres(...), to_files(...) or nothing"
            raise FirnlineError("BAD_OPTION", what, sink.where)
        if (each.changes.name, each.changes._lower, each.changes._view.upto) not in given:
            raise FirnlineError("BAD_OPTION", f"the sink {sink.name!r} delivers other changes than it was given", sink.where)
    return list(targets)


def _record(project: Project, graph: Graph, sink: Sink, done: Delivery) -> None:
    """Move the sink's hold on."""

    def place(present: Agreement, since: int) -> Hold:
        there = present.held(sink.name)
        if there is None or there.kind != "sink":
            raise FirnlineError("NO_SUCH_HOLD", f"the sink {sink.name!r} was released while it delivered; it begins anew")
        return delivered(there, done)

    hold(project, graph, place)
