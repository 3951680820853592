"""The safe point of a pipeline, from what stands in its control table and beside its logs; and letting go of what is below it.

Who consolidates calls ``let_go`` first and goes no further than the point it returns. That point is recorded in the control
table, in one order with the holds: whoever places a hold is either heard, or told that it is too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.model.names import parted
from firnline.plan.agreement import Agreement
from firnline.plan.erasure import check_free
from firnline.plan.safepoint import SafePoint
from firnline.plan.safepoint import safe_point as decided
from firnline.runtime.project import Project
from firnline.runtime.replicated import replicated_upto, waiting
from firnline.world import world

if TYPE_CHECKING:
    from firnline.tables.log import Head

Heads = Mapping[str, "Head"]


def safe_point(project: Project, graph: Graph) -> SafePoint:
    """The present safe point, and what holds it."""
    heads = _heads(project, graph)
    return decided(
        graph, project.control(graph.name).agreement(), _beside(project, graph, heads), _floor(graph, heads), world().now()
    )


def let_go(project: Project, graph: Graph) -> int:
    """Record the present safe point as that up to which epochs are let go of; the recorded point."""
    heads = _heads(project, graph)
    more, floor = list(_beside(project, graph, heads)), _floor(graph, heads)

    def choose(agreement: Agreement) -> int:
        return decided(graph, agreement, more, floor, world().now()).at

    return project.control(graph.name).let_go(choose)


def let_go_upto(project: Project, graph: Graph, point: int) -> None:
    """Record a point up to which epochs are let go of, whatever retention says; refused if anything else holds them."""
    heads = _heads(project, graph)
    more, floor = list(_beside(project, graph, heads)), _floor(graph, heads)

    def choose(agreement: Agreement) -> int:
        check_free(graph, decided(graph, agreement, more, floor, world().now()).holds, point)
        return point

    project.control(graph.name).let_go(choose)


def hold(project: Project, graph: Graph, place: Callable[[Agreement, int], Hold]) -> Hold:
    """Place a hold, or change one; ``place`` is given what stands in the control table and from where on epochs are kept."""
    floor = _floor(graph, _heads(project, graph))

    def placed(agreement: Agreement) -> Hold:
        return place(agreement, agreement.kept_since(floor))

    return project.control(graph.name).hold(placed, floor, graph.schedule.label)


def release(project: Project, pipeline: str, name: str) -> Hold:
    """Let go of a hold; the hold as it was. That of a branch goes with the branch, which shares what it keeps."""
    held = project.control(pipeline).agreement().held(name)
    if held is not None and held.kind == "branch":
        raise FirnlineError("BRANCH_HOLDS", f"{held} of {pipeline!r} shares its history", todo=f"To release it: {held.release}")
    return project.control(pipeline).release(name)


def _heads(project: Project, graph: Graph) -> Heads:
    found = {each.name: project.log(graph.name, each.name).head() for each in graph.collections}
    return {name: head for name, head in found.items() if head is not None}


def _floor(graph: Graph, heads: Heads) -> int:
    """Up to where logs are consolidated."""
    return max((head.description.since for head in heads.values()), default=graph.schedule.start)


def _beside(project: Project, graph: Graph, heads: Heads) -> Iterator[Hold]:
    """The holds that follow from facts outside of the control table."""
    yield from _failed_checks(project, graph, heads)
    yield from _replicated(project, graph)
    yield from _other_pipelines(project, graph)


def other_spaces(project: Project, graph: Graph) -> Iterator[str]:
    """The other pipelines, and the branches of these."""
    for name in project.pipelines():
        if name != graph.name:
            yield name
            yield from (space for space in sorted(project.catalog.branches(name)) if project.catalog.names(space))


def _other_pipelines(project: Project, graph: Graph) -> Iterator[Hold]:
    """Who reads this one keeps what its stages have not taken yet, a branch as well; one that does not load may be such a one."""
    for name in other_spaces(project, graph):
        try:
            other = project.graph(name)
        except FirnlineError:
            if not project.catalog.names(name):
                continue
            at, todo = _of_unknown(project, graph, name)
            yield Hold("pipeline", name, at, release=todo)
            continue
        readers = [each for each in other.collections if any(of.startswith(f"{graph.name}.") for of in each.inputs)]
        taken = [head.description.upper for each in readers if (head := project.log(name, each.name).head()) is not None]
        if taken:
            yield Hold("pipeline", name, min(taken), release=_release(name))


def _of_unknown(project: Project, graph: Graph, space: str) -> tuple[int, str]:
    """Where a pipeline or branch that does not load may have stopped reading, and what to do about it."""
    from firnline.tables.control import TABLE

    todo = f"mend {space!r}, which does not load: it may read this one"
    if parted(space)[1] is None:
        return graph.schedule.start, todo
    heads = [project.log(space, name).head() for name in project.catalog.names(space) - {TABLE}]
    ends = [head.description.upper for head in heads if head is not None]
    return min(ends, default=graph.schedule.start), f"{todo}; {_release(space)}"


def _release(space: str) -> str:
    pipeline, branch = parted(space)
    return f"run {pipeline!r}" if branch is None else f"run it, or firnline branch drop {branch} --pipeline {pipeline}"


def _failed_checks(project: Project, graph: Graph, heads: Heads) -> Iterator[Hold]:
    """An epoch that a check keeps from being published holds from where it begins, as long as the code has its collection."""
    uppers = {name: head.description.upper for name, head in heads.items()}
    names = {each.name for each in graph.collections}
    todo = "correct the data or the code, then run the epoch again"
    for failure in project.failures(graph.name).open(uppers):
        if failure.code == "CHECK_FAILED" and failure.collection in names:
            owner = f"{graph.name}.{failure.collection}"
            yield Hold("check", failure.collection, failure.lower, owner, failure.failed_at, release=todo)


def _replicated(project: Project, graph: Graph) -> Iterator[Hold]:
    """What is not in enough places yet holds from where it begins: of a collection, the point that it is replicated through."""
    for each in waiting(project, graph) if graph.replicas else ():
        release = f"{each.why}; 'firnline replicate {graph.name}' copies it"
        yield Hold("replication", each.collection, each.point, f"{graph.name}.{each.collection}", each.since, release=release)


@dataclass(frozen=True, slots=True)
class CollectionSafety:
    """One collection's line."""

    collection: str
    upper: str
    since: str
    """Up to where its history is consolidated."""
    replicated: str | None
    """Up to where it is in enough places; None if it is to be in one only."""
    epochs: int
    """How many are not behind the safe point."""
    seconds: float
    """How long it took to compute these."""


@dataclass(frozen=True, slots=True)
class HoldLine:
    """One hold, for people."""

    kind: str
    name: str
    at: str
    owner: str
    since: str | None
    until: str | None
    is_expired: bool
    release: str


@dataclass(frozen=True, slots=True)
class Safety:
    """All there is to say about the safe point of a pipeline."""

    pipeline: str
    safe_point: str
    since: str
    frontier: str | None
    why: str
    """Why it has not moved further."""
    seconds: float
    """How long it would take to compute again what is not behind it."""
    collections: tuple[CollectionSafety, ...]
    holds: tuple[HoldLine, ...]


def safety(project: Project, graph: Graph) -> Safety:
    """The safe point of a pipeline, every hold, and the recovery time that the present state would cost."""
    found, heads, label = safe_point(project, graph), _heads(project, graph), graph.schedule.label
    lines = []
    replicated = replicated_upto(project, graph) if graph.replicas else {}
    for collection in graph.collections:
        head = heads.get(collection.name)
        upper = graph.schedule.start if head is None else head.description.upper
        since = graph.schedule.start if head is None else head.description.since
        seconds = sum(entry.seconds for entry in project.log(graph.name, collection.name).entries(found.at))
        epochs = graph.schedule.count(found.at, upper)
        through = label(replicated[collection.name]) if collection.level == "remote" and replicated else None
        lines.append(CollectionSafety(collection.name, label(upper), label(since), through, epochs, seconds))
    frontier = project.control(graph.name).frontier()
    return Safety(
        pipeline=graph.name,
        safe_point=label(found.at),
        since=label(found.since),
        frontier=None if frontier is None else label(frontier.upper),
        why=found.why(label),
        seconds=sum(line.seconds for line in lines),
        collections=tuple(lines),
        holds=tuple(_line(graph, each, each in found.expired) for each in (*found.holds, *found.expired)),
    )


def _line(graph: Graph, hold: Hold, is_expired: bool) -> HoldLine:
    at = graph.schedule.label(hold.at)
    return HoldLine(hold.kind, hold.name, at, hold.owner, hold.since, hold.until, is_expired, hold.release)
