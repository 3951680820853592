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
from firnline.runtime.changes import Changes, changed_after
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
        schedule, at = self._graph.schedule, self._held().at
        return None if at <= schedule.start else schedule.label(schedule.epoch_at(at - 1).lower)

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

        Args:
            names: ``pipeline.collection``, of its pipeline. For more than one a tuple is returned.
            upto: The last epoch; the newest that is complete by default.
            net: Whether the epochs are taken as one; otherwise each is told by itself.
        """
        there = _unrewound(self._held())

        def view(graph: Graph, collection: str, end: int) -> Changes:
            if graph.name != self._graph.name:
                raise FirnlineError("NO_SUCH_COLLECTION", f"the reader {self.name!r} reads {self._graph.name!r} only")
            try:
                return changed_after(self._project, graph, collection, there.at, end, net)
            except FirnlineError as error:
                if error.code != "EPOCH_COMPACTED":
                    raise
                raise _expired(graph, there, since(self._project, graph, collection)) from error

        made = consistent(self._project, names, upto, view)
        return made[0] if len(made) == 1 else tuple(made)

    def advance(self, epoch: str | None) -> None:
        """Say that it has seen an epoch and all before it, None if none, which renews the lease; it never moves back."""
        start = self._graph.schedule.start
        seen = start if epoch is None else visible_upto(self._project, self._graph, epoch)

        def place(agreement: Agreement, since: int) -> Hold:
            there = _unrewound(_of(self._graph, agreement.held(self.name), self.name))
            at = max(there.at, seen)
            if at < since:
                raise _expired(self._graph, there, since)
            return replace(there, at=at, until=self._until())

        hold(self._project, self._graph, place)

    def release(self) -> None:
        """Let go of its epochs, and forget it."""
        self._project.control(self._graph.name).release(self.name)

    def _held(self) -> Hold:
        return _of(self._graph, self._project.control(self._graph.name).agreement().held(self.name), self.name)

    def _until(self) -> str:
        return (world().now() + self.lease).isoformat(timespec="seconds")

    def _placing(self, begin: Callable[[Agreement], int]) -> Callable[[Agreement, int], Hold]:
        """Registers it, or renews its lease where it stands."""
        since_now = world().now().isoformat(timespec="seconds")
        release = f"firnline safepoint {self._graph.name} --release {self.name}"

        def place(agreement: Agreement, since: int) -> Hold:
            there = agreement.held(self.name)
            if there is None or there.kind != "reader":
                return Hold("reader", self.name, begin(agreement), self.owner, since_now, self._until(), release)
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
    start = graph.schedule.start
    seen = None if position is None else visible_upto(found, graph, position)

    def begin(agreement: Agreement) -> int:
        frontier = start if agreement.frontier is None else agreement.frontier.upper
        return frontier if seen is None else seen

    hold(found, graph, made._placing(begin))
    return made


def _of(graph: Graph, there: Hold | None, name: str) -> Hold:
    if there is None or there.kind != "reader":
        raise FirnlineError("NO_SUCH_HOLD", f"{graph.name!r} has no reader {name!r}: it was released")
    return there


def _unrewound(there: Hold) -> Hold:
    if there.line:
        raise FirnlineError("READER_REWOUND", f"{there} has seen epochs that were rewound since")
    return there


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
