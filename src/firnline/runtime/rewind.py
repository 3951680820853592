"""``firnline rewind``: a stage and all that comes of it go back to an epoch, in an instant; its undo; and finishing either.

What is to be done is decided in the control table (``plan.rewinding``) and then done log by log. Whoever advances, completes or
verifies finishes first what somebody else decided and did not live to do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import logs_of
from firnline.plan.agreement import Agreement
from firnline.plan.changing import Approval, approved
from firnline.plan.frontier import cut
from firnline.plan.rewinding import (
    FOLLOWING,
    Rewind,
    followers,
    given_up,
    given_up_as,
    rewound,
    scope,
    settled,
    undone,
)
from firnline.runtime.gaps import had_gaps
from firnline.runtime.project import Project
from firnline.runtime.renaming import check_renamed, inputs_of, keep_all
from firnline.world import world

if TYPE_CHECKING:
    from firnline.tables.sidecar import Sidecar

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Line:
    """What becomes of one log."""

    log: str
    before: str
    """Where it ended."""
    after: str
    epochs: int
    """Those that are taken out, or come back."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a rewind or an undo did, or would do."""

    pipeline: str
    name: str
    to: str
    undoes: str | None
    logs: tuple[Line, ...]
    beyond: tuple[str, ...]
    """Stages of other pipelines that have read what is taken out."""


def rewind(
    project: Project,
    graph: Graph,
    to: int,
    stage: str | None,
    owner: str,
    *,
    is_dry: bool = False,
    name: str | None = None,
    seen: Mapping[str, Description] = MappingProxyType({}),
    approvals: Sequence[Approval] = (),
) -> Report:
    """Let a stage and its descendants, or all of a pipeline, hold nothing from a point on.

    Args:
        project: The project.
        graph: The pipeline.
        to: Where an epoch begins.
        stage: The collection that goes back with all that comes of it; all of them by default.
        owner: Who asks.
        is_dry: Whether it is only said what would be done.
        name: What the rewind is called; a new name by default.
        seen: Logs as they were when the rewind was thought of; one in another generation forbids it.
        approvals: What is approved with it.
    """
    settle(project, graph)
    _with_names(project, graph, is_dry=is_dry)
    stages = scope(graph, stage)
    begun = Rewind(name or _name(), to, to, {}, since=world().now().isoformat(timespec="seconds"), owner=owner, stages=stages)
    before = heads_of(project, graph, logs_of(stages, project.catalog.names(graph.name)))
    corrected = _without_rows(project, graph, stages)

    moved: list[str] = []

    def decide(present: Agreement) -> Agreement:
        heads = heads_of(project, graph, logs_of(stages, project.catalog.names(graph.name)))
        moved[:] = [log for log, then in seen.items() if heads[log].generation != then.generation]
        if moved:
            return present
        return approved(rewound(graph, present, begun, heads, floor_of(project, graph), corrected), approvals)

    report = _report(project, graph, begun, before, _ends(project, graph, before, to))
    if is_dry:
        decide(project.control(graph.name).agreement())
        return report
    project.control(graph.name).rewind(begun.name, decide)
    if moved:
        raise FirnlineError("GENERATION_CHANGED", f"{', '.join(moved)} moved before it could be rewound")
    settle(project, graph)
    return report


def undo(project: Project, graph: Graph, owner: str, *, is_dry: bool = False) -> Report:
    """Let the logs of the newest rewind be as they were before it."""
    from firnline.tables.rewinding import not_undoable

    settle(project, graph)
    _with_names(project, graph, is_dry=is_dry)
    newest, logs = _newest(project, graph)
    before, (to, ends) = heads_of(project, graph, logs), _undoable(project, graph, newest, logs)
    since = world().now().isoformat(timespec="seconds")
    begun = Rewind(_name(), to, to, {}, newest, since=since, owner=owner)
    corrected = _without_rows(project, graph, logs)

    def decide(present: Agreement) -> Agreement:
        _undoable(project, graph, newest, logs)
        return undone(graph, present, begun, heads_of(project, graph, logs), floor_of(project, graph), corrected)

    report = _report(project, graph, begun, before, ends)
    if not is_dry:
        control = project.control(graph.name)
        control.rewind(begun.name, decide)
        settle(project, graph)
        if any(each.name == given_up_as(begun.name) for each in control.agreement().rewinds):
            raise not_undoable(project.log(graph.name, logs[0]))
    return report


def _without_rows(project: Project, graph: Graph, names: tuple[str, ...]) -> tuple[str, ...]:
    """The stages among some logs for which rows were missing at some time: what corrected them may go with a rewind."""
    stages = (each for each in graph.collections if each.name in names and each.kind == "stage")
    return tuple(each.name for each in stages if had_gaps(project, graph, each))


def _with_names(project: Project, graph: Graph, *, is_dry: bool) -> None:
    """Let renamed collections have their logs first: one that the code does not lead to would not go back."""
    if is_dry:
        check_renamed(project, graph, "REWIND_BLOCKED")
    else:
        keep_all(project, graph)


def _undoable(project: Project, graph: Graph, rewind: str, logs: tuple[str, ...]) -> tuple[int, dict[str, int]]:
    """The point of a rewind, and where each log ends once it is undone; refused if it is not the newest or not all is kept."""
    from firnline.tables.log import ATTEMPT
    from firnline.tables.rewinding import end_of, not_undoable, undoable

    to, ends = 0, {}
    for name in logs:
        log = project.log(graph.name, name)
        table = log.load()
        found = None if table is None else undoable(table)
        if table is None or found is None or found.summary[ATTEMPT] != rewind:
            raise not_undoable(log)
        to, ends[name] = end_of(table, found)
    return to, ends


def settle(project: Project, graph: Graph) -> None:
    """Finish the rewind that is decided and not done, if there is one.

    An undo for which maintenance has dropped something meanwhile is given up: all its logs go back to the rewind's point.
    """
    control = project.control(graph.name)
    while (found := control.agreement().open_rewind()) is not None:
        _logger.info("%s: the rewind %s is being done", graph.name, found.name)
        try:
            _do(project, graph, found)
        except FirnlineError as error:
            if found.undoes is None or error.code != "REWIND_NOT_UNDOABLE":
                raise
            _logger.warning("%s: the undo %s is given up: %s", graph.name, found.name, error)
            control.settle(partial(given_up, name=found.name))
            continue
        present = control.frontier()
        known = present.generations if present is not None else {}
        seen = [each.name for each in graph.collections if not known or each.name in known]
        heads = {name: project.log(graph.name, name).head() for name in seen}
        now = cut({name: head.description if head and head.snapshot is not None else None for name, head in heads.items()})
        control.settle(partial(settled, name=found.name, found=now))
        _tell(project, graph)


def _do(project: Project, graph: Graph, found: Rewind) -> None:
    """Take every log of a rewind there, inputs before their readers."""
    from firnline.tables.rewinding import rewind as take_back
    from firnline.tables.rewinding import undo as bring_back

    for name, generation in found.logs.items():
        log = project.log(graph.name, name)
        if found.undoes is None:
            take_back(project.catalog, log, found.name, generation, found.to)
        else:
            bring_back(project.catalog, log, found.undoes, found.name, generation)
    for name in followers(graph, found):
        _follow(project, graph, name, found)


def _follow(project: Project, graph: Graph, name: str, found: Rewind) -> None:
    """Let a stage that does not go back itself hold nothing that is made from what a rewind took out, or an undo.

    Whoever is at its next epoch and read its inputs before they moved is fenced, has published already, or has not created
    the log yet: then it looks at its inputs once more after that.
    """
    from firnline.tables.log import entries_of, head_of
    from firnline.tables.rewinding import REWOUND_BY, fence
    from firnline.tables.rewinding import rewind as take_back

    log, attempt = project.log(graph.name, name), FOLLOWING + found.name
    if fence(project.catalog, log):
        return
    table = log.load()
    if table is None or table.properties.get(REWOUND_BY) == attempt:
        return
    entries = [entry for entry in entries_of(table) if entry.description.upper > found.to]
    is_void = any(_is_void(project, graph, log.sidecar(entry), entry.description.upper) for entry in entries)
    present = project.control(graph.name).agreement().open_rewind()
    # Once it is settled, all that follows has followed, and what the log holds may be seen already.
    if (is_void or not entries) and present is not None and present.name == found.name:
        take_back(project.catalog, log, attempt, head_of(table).description.generation + 1, found.to)


def _is_void(project: Project, graph: Graph, sidecar: Sidecar, upper: int) -> bool:
    """Whether something was made from epochs that its inputs do not hold any more."""
    from firnline.tables.reusing import rewound_since

    for name, of in inputs_of(project, graph, sidecar).items():
        log = project.log(graph.name, name)
        head = log.head()
        if head is not None and head.description.generation != of.generation:
            since = rewound_since(log, of.generation)
            if since is None or since < upper:
                return True
    return False


def _tell(project: Project, graph: Graph) -> None:
    """Let the ledger and plain tables say what the logs say; both are brought up again by whoever comes next."""
    from firnline.runtime.index import rebuild
    from firnline.runtime.plain_tables import bring_up

    try:
        rebuild(project, graph)
        bring_up(project, graph)
    except FirnlineError as error:
        _logger.warning("the ledger or a plain table is still as before the rewind: %s", error)


def _newest(project: Project, graph: Graph) -> tuple[str, tuple[str, ...]]:
    """The newest rewind that counts, and the logs that went back with it, inputs before readers."""
    from firnline.tables.rewinding import newest_rewind

    found: dict[str, tuple[int, list[str]]] = {}
    for name in logs_of(scope(graph, None), project.catalog.names(graph.name)):
        table = project.log(graph.name, name).load()
        newest = None if table is None else newest_rewind(table)
        if newest is not None and not newest[0].startswith(FOLLOWING):
            at, logs = found.get(newest[0], (0, []))
            found[newest[0]] = (max(at, newest[1]), [*logs, name])
    if not found:
        raise FirnlineError("REWIND_NOT_UNDOABLE", f"{graph.name!r} has no rewind that is not undone", todo="Nothing.")
    name, (_, logs) = max(found.items(), key=lambda each: each[1][0])
    return name, tuple(logs)


def heads_of(project: Project, graph: Graph, logs: Iterable[str]) -> dict[str, Description]:
    """Those of the logs that hold something, in their order."""
    found = {name: project.log(graph.name, name).head() for name in logs}
    return {name: head.description for name, head in found.items() if head is not None and head.snapshot is not None}


def _ends(project: Project, graph: Graph, logs: Iterable[str], to: int) -> dict[str, int]:
    """Where each of some logs, which hold something, ends once it is back at a point."""
    from firnline.tables.rewinding import end_at

    tables = {name: project.log(graph.name, name).load() for name in logs}
    return {name: end_at(table, to) for name, table in tables.items() if table is not None}


def floor_of(project: Project, graph: Graph) -> int:
    """Up to where logs of a pipeline are consolidated."""
    heads = (project.log(graph.name, each.name).head() for each in graph.collections)
    return max((head.description.since for head in heads if head is not None), default=graph.schedule.start)


def _report(project: Project, graph: Graph, begun: Rewind, before: Mapping[str, Description], after: Mapping[str, int]) -> Report:
    label, count = graph.schedule.label, graph.schedule.count
    lines = tuple(
        Line(name, label(head.upper), label(after[name]), count(*sorted((head.upper, after[name]))))
        for name, head in before.items()
    )
    beyond = tuple(_beyond(project, graph, begun)) if begun.undoes is None else ()
    return Report(graph.name, begun.name, label(begun.to), begun.undoes, lines, beyond)


def _beyond(project: Project, graph: Graph, begun: Rewind) -> list[str]:
    """Stages of other pipelines that have read epochs from the point on; what does not load is not asked."""
    found = []
    for name in project.pipelines():
        try:
            other = project.graph(name) if name != graph.name else None
        except FirnlineError:
            continue
        for each in other.collections if other else ():
            reads = {of.partition(".")[2] for of in each.inputs if is_foreign(of) and of.startswith(f"{graph.name}.")}
            head = project.log(name, each.name).head() if reads & set(begun.stages) else None
            if head is not None and head.description.upper > begun.to:
                found.append(f"{name}.{each.name}")
    return found


def _name() -> str:
    return f"rewind_{world().new_id()[:8]}"
