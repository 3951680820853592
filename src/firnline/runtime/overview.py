"""All that a dashboard shows of a pipeline at a glance, read from the logs without a JVM: tens of milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gaps
from firnline.model.graph import Graph
from firnline.plan.completeness import touched
from firnline.plan.grid import Condition, Held, Known, State, condition_of, state_of
from firnline.runtime.gaps import same_parts
from firnline.runtime.project import Project
from firnline.runtime.safepoint import Safety, safety
from firnline.runtime.status import CollectionStatus, PipelineStatus, status

if TYPE_CHECKING:
    from firnline.tables.check_results import CheckResult
    from firnline.tables.log import Entry
    from firnline.tables.metadata import Metadata

EPOCHS = 30
"""How many are shown at once."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An epoch of a collection."""

    epoch: str
    state: State
    rows: int | None = None
    """How many it changed; None if the log does not tell it apart."""
    seconds: float | None = None
    published_at: str | None = None
    note: str = ""
    """What else there is to say."""


@dataclass(frozen=True, slots=True)
class Stored:
    """How a log is stored now."""

    layers: tuple[tuple[str, str, int], ...]
    """From, up to, and how many rows; the newest first."""
    files: int
    bytes: int
    rows: int
    """Stored rows of all layers."""
    weight: int
    """Rows of the state that they add up to."""
    amplification: float | None
    """How many rows are read for one of the state; None while there is no state."""


@dataclass(frozen=True, slots=True)
class Line:
    """A collection with its row of the grid."""

    name: str
    kind: str
    doc: str
    inputs: tuple[str, ...]
    parts: int
    condition: Condition
    status: CollectionStatus
    cells: tuple[Cell, ...]
    stored: Stored | None


@dataclass(frozen=True, slots=True)
class CheckLine:
    """A check, whose rows it is asked about, and what it said last."""

    collection: str
    suite: str
    on: str
    blocking: bool
    epoch: str | None
    last: CheckResult | None


@dataclass(frozen=True, slots=True)
class Overview:
    """A pipeline at a glance."""

    pipeline: str
    doc: str
    is_timed: bool
    start: str
    status: PipelineStatus
    safety: Safety
    lag: int
    """How many epochs are due and not complete."""
    epochs: tuple[tuple[str, str], ...]
    """Those that are shown: where each begins and ends."""
    has_earlier: bool
    collections: tuple[Line, ...]
    checks: tuple[CheckLine, ...]


def overview(project: Project, graph: Graph, upto: str | None = None, count: int = EPOCHS) -> Overview:
    """A pipeline at a glance.

    Args:
        project: The project.
        graph: The pipeline.
        upto: Where the last epoch that is shown ends; where the last one ends that is due, or held, by default.
        count: How many epochs are shown.
    """
    schedule, told = graph.schedule, status(project, graph)
    tables = {each.name: project.log(graph.name, each.name).load() for each in graph.collections}
    shown = _shown(graph, told, upto, count)
    known = _known(project, graph, told, tables, shown)
    lines = tuple(
        _line(project, graph, collection, line, known[collection.name], tables[collection.name], shown)
        for collection, line in zip(graph.collections, told.collections, strict=True)
    )
    due, complete = schedule.point(told.horizon), schedule.point(told.frontier or schedule.label(schedule.start))
    return Overview(
        pipeline=graph.name,
        doc=graph.doc,
        is_timed=schedule.timed,
        start=schedule.label(schedule.start),
        status=told,
        safety=safety(project, graph),
        lag=schedule.count(complete, due),
        epochs=tuple((schedule.label(epoch.lower), schedule.label(epoch.upper)) for epoch in shown),
        has_earlier=bool(shown) and shown[0].lower > schedule.start,
        collections=lines,
        checks=check_lines(project, graph),
    )


def check_lines(project: Project, graph: Graph) -> tuple[CheckLine, ...]:
    """A line for each check and what it is asked of."""
    if not any(collection.checks for collection in graph.collections):
        return ()
    last = {(each.collection, each.suite, each.on): each for each in project.check_results(graph.name).last()}
    lines = []
    for collection in graph.collections:
        for check in collection.checks:
            for on in check.subjects:
                result = last.get((collection.name, check.suite, on))
                epoch = None if result is None else graph.schedule.label(result.lower)
                lines.append(CheckLine(collection.name, check.suite, on, check.blocking, epoch, result))
    return tuple(lines)


def _shown(graph: Graph, told: PipelineStatus, upto: str | None, count: int) -> tuple[Epoch, ...]:
    schedule = graph.schedule
    if not 1 <= count <= 1000:
        raise FirnlineError("BAD_OPTION", f"{count} epochs cannot be shown: 1 to 1000 can")
    ends = (told.horizon, *(line.upper for line in told.collections))
    end = schedule.point(upto) if upto else max(map(schedule.point, ends))
    if end <= schedule.start:
        return ()
    end = schedule.epoch_at(min(end, schedule.end or end) - 1).upper
    return tuple(schedule.epochs(schedule.before(end, count), end))


def _known(
    project: Project, graph: Graph, told: PipelineStatus, tables: Mapping[str, Metadata | None], shown: tuple[Epoch, ...]
) -> dict[str, Known]:
    from firnline.tables.log import entries_of, head_of

    uppers = {name: head_of(table).description.upper for name, table in tables.items() if table is not None}
    failed: dict[str, dict[int, str]] = {}
    for failure in project.failures(graph.name).open(uppers):
        failed.setdefault(failure.collection, {})[failure.lower] = f"{failure.code}: {failure.message}"
    lacking = _lacking(project, graph, uppers, shown)
    found = {}
    for line in told.collections:
        table, name = tables[line.collection], line.collection
        today = Fingerprint(graph.fingerprints[name])
        layers = [] if table is None else list(entries_of(table))
        # The newest says whether a change of its text is one of its rows.
        newest = layers[0].fingerprint if layers and line.code == "same" else today
        held = tuple(
            Held(each.lower, each.description.upper, line.code != "edited" and not newest.is_same(each.fingerprint))
            for each in layers
        )
        found[name] = Known(
            held,
            graph.schedule.start if table is None else head_of(table).description.since,
            frozenset() if table is None else _repaired(project, table),
            lacking.get(name, frozenset()),
            failed.get(name, {}),
        )
    return found


def _lacking(project: Project, graph: Graph, uppers: Mapping[str, int], shown: tuple[Epoch, ...]) -> Mapping[str, frozenset[int]]:
    """The epochs that lack rows, or were computed without them."""
    gaps: Gaps = project.control(graph.name).gaps()
    if not gaps.gaps:
        return {}
    same, found = same_parts(project, graph), dict[str, set[int]]()
    for epoch in shown:
        for name, of in touched(graph, gaps, uppers, epoch.upper, same).items():
            for gap in of.gaps:
                is_own = gap.collection == name
                if not is_own or any(span.first <= epoch.lower <= span.last for span in gap.spans):
                    found.setdefault(name, set()).add(epoch.lower)
    return {name: frozenset(epochs) for name, epochs in found.items()}


def _repaired(project: Project, table: Metadata) -> frozenset[int]:
    """The epochs whose rows were made again, or came back, as far as its snapshots still tell."""
    from firnline.tables.layers import KIND, REPAIR, line
    from firnline.tables.log import GAP
    from firnline.tables.metadata import SIDECAR
    from firnline.tables.sidecar import Repair

    repairs = [each.summary for each in line(table) if each.summary.get(KIND) == REPAIR and GAP not in each.summary]
    notes = [Repair.of_json(project.catalog.read(each[SIDECAR])) for each in repairs]
    return frozenset(epoch for note in notes for epoch, _ in note.cells)


def _line(
    project: Project,
    graph: Graph,
    collection: Collection,
    line: CollectionStatus,
    known: Known,
    table: Metadata | None,
    shown: tuple[Epoch, ...],
) -> Line:
    from firnline.tables.log import entries_of

    entries = [] if table is None else list(entries_of(table))
    return Line(
        name=collection.name,
        kind=collection.kind,
        doc=collection.doc,
        inputs=collection.inputs,
        parts=collection.parts,
        condition=condition_of(failed=len(line.failed), lacking=len(line.lacking), missing=line.missing, code=line.code),
        status=line,
        cells=tuple(_cell(project, graph, collection.name, epoch, known, entries) for epoch in shown),
        stored=None if table is None or table.head is None else _stored(graph, table, entries),
    )


def _cell(project: Project, graph: Graph, name: str, epoch: Epoch, known: Known, entries: list[Entry]) -> Cell:
    label, state = graph.schedule.label(epoch.lower), state_of(epoch, known)
    entry = next((each for each in entries if each.lower <= epoch.lower and epoch.upper <= each.description.upper), None)
    if entry is None:
        return Cell(label, state, note=known.failed.get(epoch.lower, ""))
    at = entry.published_at.isoformat(timespec="seconds")
    if (entry.lower, entry.description.upper) == (epoch.lower, epoch.upper):
        return Cell(label, state, entry.rows, entry.seconds, at)
    lower, upper = graph.schedule.label(entry.lower), graph.schedule.label(entry.description.upper)
    together = f"stored as one layer from {lower} up to {upper}"
    if epoch.lower < known.since:
        return Cell(label, state, None, None, at, together)
    digests = project.log(graph.name, name).sidecar(entry).digests
    rows = sum(digest.rows for (lower, _), digest in digests.items() if lower == epoch.lower)
    return Cell(label, state, rows, None, at, together)


def _stored(graph: Graph, table: Metadata, entries: list[Entry]) -> Stored:
    from firnline.runtime.history import sampled

    label, sample = graph.schedule.label, sampled(table)
    layers = tuple((label(each.lower), label(each.description.upper), each.rows) for each in entries)
    return Stored(layers, sample.files, sample.bytes, sample.rows, sample.weight, sample.amplification)
