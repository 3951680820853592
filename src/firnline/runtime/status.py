"""Where a pipeline stands and what would run next: read from the logs, without a JVM and without changing anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firnline.model.description import Description
from firnline.model.epoch import Epoch, Schedule, to_micros
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE
from firnline.plan.advance import advance
from firnline.plan.freshness import late_by
from firnline.plan.frontier import Frontier
from firnline.plan.rewinding import Rewind
from firnline.runtime.code_plan import today
from firnline.runtime.gaps import of_pipeline, sentence
from firnline.runtime.project import Project
from firnline.runtime.renaming import renames
from firnline.runtime.safepoint import safe_point
from firnline.world import world


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """One collection's line."""

    collection: str
    kind: str
    generation: int
    upper: str
    """Complete up to here, which is where the next epoch begins."""
    done: int
    missing: int
    failed: tuple[str, ...]
    """The epochs whose last attempt failed, each with its error."""
    warned: tuple[str, ...]
    """The checks that do not block and were not met when they were last asked, each with its epoch and what it said."""
    malformed: int
    completeness: str
    """Parts that lack nothing of how many: ``7/8``."""
    lacking: tuple[str, ...]
    """What is missing, in words."""
    code: str
    """``same`` as made the newest epoch, ``changed`` since, ``edited`` if only Spark can tell which of both, or ``new``."""


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """One sink's line."""

    sink: str
    upper: str
    """Delivered up to here."""
    waiting: int
    """How many complete epochs it has not delivered."""
    failed: tuple[str, ...]
    """The epochs whose last delivery failed, each with its error."""


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """A pipeline's status: its frontier, safe point and horizon (where the last epoch that is due ends), collections, sinks.

    ``late_by`` is by how many seconds it misses the freshness that it asks for; None if it asks for none.
    """

    pipeline: str
    frontier: str | None
    safe_point: str
    horizon: str | None
    collections: tuple[CollectionStatus, ...]
    sinks: tuple[SinkStatus, ...]
    freshness: float | None = None
    late_by: float | None = None
    rewinds: tuple[str, ...] = ()
    """What was taken back and is not replayed yet, in words."""


@dataclass(frozen=True, slots=True)
class Step:
    """Epochs of one collection that would be computed."""

    collection: str
    epochs: tuple[str, ...]
    code: str


def horizon(schedule: Schedule, heads: list[Description | None]) -> int:
    """Where the last epoch ends that could be complete by now; for integer epochs, where the furthest log ends."""
    if not schedule.timed:
        return max((head.upper for head in heads if head), default=schedule.start)
    now = to_micros(world().now())
    if now < schedule.start:
        return schedule.start
    if schedule.end is not None and now >= schedule.end:
        return schedule.end
    return schedule.epoch_at(now).lower


def due(project: Project, graph: Graph) -> int:
    """The pipeline's horizon now."""
    return horizon(graph.schedule, [head for head, _ in _heads(project, graph).values()])


def status(project: Project, graph: Graph) -> PipelineStatus:
    """The status of a pipeline."""
    schedule = graph.schedule
    heads = _heads(project, graph)
    due = horizon(schedule, [head for head, _ in heads.values()])
    failures = _failures(project, graph, heads)
    warnings = _warnings(project, graph)
    there = project.catalog.names(graph.name)
    codes = _codes(project, graph, heads)
    complete = of_pipeline(project, graph)
    lines = []
    for collection in graph.collections:
        head, _ = heads[collection.name]
        upper = head.upper if head else schedule.start
        lines.append(
            CollectionStatus(
                collection=collection.name,
                kind=collection.kind,
                generation=head.generation if head else 0,
                upper=schedule.label(upper),
                done=schedule.count(schedule.start, upper),
                missing=schedule.count(upper, due),
                failed=failures.get(collection.name, ()),
                warned=warnings.get(collection.name, ()),
                malformed=_malformed(project, graph, collection.name, there),
                completeness=str(complete[collection.name]),
                lacking=tuple(map(sentence, complete[collection.name].missing)),
                code=codes[collection.name],
            )
        )
    agreement = project.control(graph.name).agreement()
    frontier = agreement.frontier
    return PipelineStatus(
        pipeline=graph.name,
        frontier=schedule.label(frontier.upper) if frontier else None,
        safe_point=schedule.label(safe_point(project, graph).at),
        horizon=schedule.label(due),
        collections=tuple(lines),
        sinks=_sinks(project, graph) if graph.sinks else (),
        freshness=graph.freshness,
        late_by=_late_by(graph, frontier),
        rewinds=tuple(_to_replay(graph, each) for each in agreement.rewinds if each.undoes is None),
    )


def _late_by(graph: Graph, frontier: Frontier | None) -> float | None:
    if graph.freshness is None:
        return None
    return late_by(graph.schedule, frontier.upper if frontier else None, graph.freshness, to_micros(world().now()))


def _to_replay(graph: Graph, rewind: Rewind) -> str:
    label = graph.schedule.label
    span = f"{label(rewind.to)} up to {label(rewind.upper)}"
    return f"{span} is to be replayed in {', '.join(rewind.stages)}: taken back by {rewind.owner}"


def steps(project: Project, graph: Graph, upto: Epoch | None) -> list[Step]:
    """What would run to bring every collection through an epoch (the last one that is due by default)."""
    heads = _heads(project, graph)
    codes = _codes(project, graph, heads)
    found = []
    for collection in graph.collections:
        head, _ = heads[collection.name]
        start = head.upper if head else graph.schedule.start
        due = upto.upper if upto else horizon(graph.schedule, [head for head, _ in heads.values()])
        missing = advance(collection, graph.schedule, head, Epoch(start, due)).missing if start < due else ()
        labels = tuple(graph.schedule.label(epoch.lower) for epoch in missing)
        found.append(Step(collection.name, labels, codes[collection.name]))
    return found


Heads = dict[str, tuple[Description | None, Fingerprint | None]]


def _heads(project: Project, graph: Graph) -> Heads:
    found: Heads = {}
    renamed = renames(project, graph)
    for collection in graph.collections:
        head = project.log(graph.name, renamed.get(collection.name, collection.name)).head()
        found[collection.name] = (head.description, head.fingerprint) if head else (None, None)
    return found


def _codes(project: Project, graph: Graph, heads: Heads) -> dict[str, str]:
    found = today(project, graph, {name: made_by for name, (_, made_by) in heads.items()}, renames(project, graph))
    return {name: code for name, (code, _) in found.items()}


def _sinks(project: Project, graph: Graph) -> tuple[SinkStatus, ...]:
    schedule, agreement = graph.schedule, project.control(graph.name).agreement()
    frontier = agreement.frontier.upper if agreement.frontier else schedule.start
    holds = {sink.name: agreement.held(sink.name) for sink in graph.sinks}
    uppers = {name: hold.at if hold and hold.delivered is not None else schedule.start for name, hold in holds.items()}
    failures = _open(project, graph, uppers)
    return tuple(
        SinkStatus(name, schedule.label(upper), schedule.count(upper, frontier), failures.get(name, ()))
        for name, upper in uppers.items()
    )


def _failures(project: Project, graph: Graph, heads: Heads) -> dict[str, tuple[str, ...]]:
    return _open(project, graph, {name: head.upper for name, (head, _) in heads.items() if head is not None})


def _open(project: Project, graph: Graph, uppers: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """What failed beyond the points that names have reached, by name."""
    grouped: dict[str, tuple[str, ...]] = {}
    for failure in project.failures(graph.name).open(uppers):
        line = f"{graph.schedule.label(failure.lower)}: {failure.message}"
        grouped[failure.collection] = (*grouped.get(failure.collection, ()), line)
    return grouped


def _warnings(project: Project, graph: Graph) -> dict[str, tuple[str, ...]]:
    declared = {
        (collection.name, check.suite, on)
        for collection in graph.collections
        for check in collection.checks
        for on in check.subjects
        if not check.blocking
    }
    grouped: dict[str, tuple[str, ...]] = {}
    for result in project.check_results(graph.name).last() if declared else ():
        if (result.collection, result.suite, result.on) in declared and not (result.blocking or result.success):
            line = f"{graph.schedule.label(result.lower)}: {result.suite!r} on the {result.on}: {'; '.join(result.failed)}"
            grouped[result.collection] = (*grouped.get(result.collection, ()), line)
    return grouped


def _malformed(project: Project, graph: Graph, collection: str, there: set[str]) -> int:
    name = collection + QUARANTINE
    if name not in there:
        return 0
    return sum(entry.weight for entry in project.log(graph.name, name).entries())
