"""``firnline.reader``: somebody outside who reads epoch by epoch, and whose next epochs are kept while its lease lasts.

Its position is the newest epoch that it has seen: the state after it, and every single epoch that follows, can be read.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import overload

from firnline.errors import FirnlineError
from firnline.model.duration import seconds_of
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.model.names import check_name
from firnline.plan.agreement import Agreement
from firnline.plan.seeing import moved, parsed, position_of, seen_of
from firnline.runtime.changes import Changes, changed_since
from firnline.runtime.cut import consistent, since, visible_upto
from firnline.runtime.project import Project
from firnline.runtime.safepoint import hold
from firnline.world import world


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader that is registered with a pipeline."""

    name: str
    owner: str
    lease: timedelta
    _project: Project
    _graph: Graph

    @property
    def position(self) -> str | None:
        """The newest epoch that it has seen; None before the first."""
        schedule, there = self._graph.schedule, self._held()
        label = None if there.at <= schedule.start else schedule.label(schedule.epoch_at(there.at - 1).lower)
        return position_of(label, there.line)

    @property
    def until(self) -> str:
        """When its lease ends."""
        return str(self._held().until)

    @overload
    def changes(self, name: str, /, *, upto: str | None = None, net: bool = True) -> Changes: ...
    @overload
    def changes(self, *names: str, upto: str | None = None, net: bool = True) -> tuple[Changes, ...]: ...
    def changes(self, *names: str, upto: str | None = None, net: bool = True) -> Changes | tuple[Changes, ...]:
        """What it has not seen yet: what changed after its position in collections, all up to the same epoch.

        What it has seen and a rewind took back is told as undone, with the first epoch.

        Args:
            names: ``pipeline.collection``, of its pipeline. For more than one a tuple is returned.
            upto: The last epoch; the newest that is complete by default.
            net: Whether the epochs are taken as one; otherwise each is told by itself.
        """
        there = self._held()

        def view(graph: Graph, collection: str, end: int) -> Changes:
            if graph.name != self._graph.name:
                raise FirnlineError("NO_SUCH_COLLECTION", f"the reader {self.name!r} reads {self._graph.name!r} only")
            try:
                found = changed_since(self._project, graph, collection, seen_of(there, collection), end, net, there.line)
                if found is None:
                    raise FirnlineError("READER_REWOUND", f"what {there} has seen of {collection!r} was rewound, and is not kept")
                return found
            except FirnlineError as error:
                if error.code != "EPOCH_COMPACTED":
                    raise
                raise _expired(graph, there, since(self._project, graph, collection)) from error

        made = consistent(self._project, names, upto, view)
        return made[0] if len(made) == 1 else tuple(made)

    def advance(self, epoch: str | None) -> None:
        """Say that it has seen an epoch and all before it, None if none, which renews the lease; it never moves back.

        Args:
            epoch: As ``changes.upto`` and ``position`` give it: after a rewind it says on which side of it the epoch was seen.
        """

        def place(agreement: Agreement, since: int) -> Hold:
            there = _of(self._graph, agreement.held(self.name), self.name)
            label, line = parsed(epoch)
            after = moved(there, line, _point(self._project, self._graph, label, is_past=line < there.line))
            if after is None:
                raise FirnlineError("READER_REWOUND", f"{there} is said to have seen {epoch}, which was rewound long ago")
            if after.at < since:
                raise _expired(self._graph, there, since)
            return replace(after, until=self._until())

        hold(self._project, self._graph, place)

    def release(self) -> None:
        """Let go of its epochs, and forget it."""
        self._project.control(self._graph.name).release(self.name)

    def _held(self) -> Hold:
        return _of(self._graph, self._project.control(self._graph.name).agreement().held(self.name), self.name)

    def _until(self) -> str:
        return (world().now() + self.lease).isoformat(timespec="seconds")

    def _placing(self, begin: Callable[[Agreement], tuple[int, int]]) -> Callable[[Agreement, int], Hold]:
        """Registers it, or renews its lease where it stands."""
        since_now = world().now().isoformat(timespec="seconds")
        release = f"firnline safepoint {self._graph.name} --release {self.name}"

        def place(agreement: Agreement, since: int) -> Hold:
            there = agreement.held(self.name)
            if there is None or there.kind != "reader":
                at, line = begin(agreement)
                return Hold("reader", self.name, at, self.owner, since_now, self._until(), release, line=line)
            if there.at < since:
                raise _expired(self._graph, there, since)
            return replace(there, owner=self.owner, until=self._until())

        return place


def reader(
    name: str,
    *,
    lease: str | timedelta,
    pipeline: str | None = None,
    owner: str | None = None,
    position: str | None = None,
    project: Project | None = None,
) -> Reader:
    """Register a reader, or renew its lease where it stands.

    Args:
        name: Lower-case letters, digits and single underscores; the same name is the same reader.
        lease: How long its epochs are kept without another word from it: ``"7d"``, ``"12h"`` or a timedelta.
        pipeline: The pipeline that it reads; the project's only one by default.
        owner: Whom to ask about it; the user of this process by default.
        position: The newest epoch that it has seen, if it is registered for the first time; the newest complete one by default.
        project: The project; the one around the current folder by default.
    """
    check_name("reader", name)
    found = project or Project.load()
    graph = found.graph(pipeline or _only_pipeline(found))
    made = Reader(name, owner or user(), _lease(lease), found, graph)

    def begin(agreement: Agreement) -> tuple[int, int]:
        if position is None:
            return graph.schedule.start if agreement.frontier is None else agreement.frontier.upper, 0
        label, line = parsed(position)
        return _point(found, graph, label, is_past=False), line

    hold(found, graph, made._placing(begin))
    return made


def _of(graph: Graph, there: Hold | None, name: str) -> Hold:
    if there is None or there.kind != "reader":
        raise FirnlineError("NO_SUCH_HOLD", f"{graph.name!r} has no reader {name!r}: it was released")
    return there


def _point(project: Project, graph: Graph, label: str | None, *, is_past: bool) -> int:
    """Where an epoch ends that somebody has seen; one that was seen before a rewind may not be there again."""
    if label is None:
        return graph.schedule.start
    if is_past:
        return graph.schedule.epoch_at(graph.schedule.point(label)).upper
    return visible_upto(project, graph, label)


def _expired(graph: Graph, there: Hold, since: int) -> FirnlineError:
    label = graph.schedule.label
    gone = f"its next epochs, from {label(there.at)} on, are let go of: single epochs are kept only since {label(since)}"
    return FirnlineError("LEASE_EXPIRED", f"the lease of {there} ended at {there.until}, and {gone}")


def _lease(lease: str | timedelta) -> timedelta:
    try:
        found = timedelta(seconds=seconds_of(lease))
        world().now() + found
    except (ValueError, OverflowError) as problem:
        raise FirnlineError("BAD_OPTION", f"lease: {problem}") from None
    return found


def _only_pipeline(project: Project) -> str:
    names = project.pipelines()
    if len(names) != 1:
        raise FirnlineError("NO_SUCH_PIPELINE", f"a reader reads one pipeline; this project has: {', '.join(names) or 'none'}")
    return names[0]


def user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"
