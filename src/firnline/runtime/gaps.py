"""Gaps: lost rows that cannot be made again are left out of a log, as its contract allows; when they can, they come back.

Opening: the gap ledger says so, the rows are taken out, the ledger says that they are out. So none are ever missing unrecorded,
and whoever reads the log in between computes from the whole state. Closing: the rows are put back, the ledger says so. So nothing
is ever called whole that is not. The last commit of both marks the readers, after the log has changed: a run that read the log as
it was before cannot take that mark away. Cut off anywhere, the next repair finds the gap as it stands and takes the next step.
What a stage has made good by itself is over once merges, or an erasure, have left nothing that counts the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection as Declared
from firnline.model.digest import Digest
from firnline.model.gap import Cell, Gap, Gaps, Span, spans_of
from firnline.model.graph import Graph
from firnline.model.stored_file import StoredFile
from firnline.plan.completeness import Same, touched
from firnline.plan.repairing import Step, owner, taken_out
from firnline.plan.verification import Holding, covers, data_of, missing, published_digests, published_rows
from firnline.runtime.beside import is_readable, rows_beside
from firnline.runtime.exchange import exchange, files
from firnline.runtime.project import Project
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.log import Log

Spans = tuple[Span, ...]


def leave_out(project: Project, graph: Graph, log: Holding, step: Step, cells: Collection[Cell], why: str) -> None:
    """Open a gap for lost rows, unless one is open, and take them out of the log."""
    from firnline.tables.port import Exchange
    from firnline.tables.sidecar import Repair

    known = [
        (gap, {cell for cell in cells if cell in gap} - _merged(project, log, gap)) for gap in log.gaps if gap.phase == "open"
    ]
    noted = [gap for gap, of in known if of]
    new = {*cells} - {cell for _, of in known for cell in of}
    gap = _opened(project, graph, log, new, why) if new else noted[0]
    out = files(log, cells)
    if out or step.manifests:
        rows = sum(published_rows(log, cells).values())
        note = Repair(log.collection, world().new_id(), tuple(sorted(cells)), tuple(sorted(out)), (), rows, 0, 0.0, gap.id)
        change = Exchange(out=out, manifests=step.manifests)
        exchange(project.log(graph.name, log.collection), log, note, change)


def _merged(project: Project, log: Holding, gap: Gap) -> set[Cell]:
    """The (epoch, part) of a gap that are those of other rows by now: what was made good is merged under the same name."""
    from firnline.tables.log import counting

    table = project.log(log.pipeline, log.collection).load() if gap.made_good is not None else None
    counted = set() if table is None else counting(table, gap)
    since = [layer for layer in log.layers() if table is not None and layer.snapshot not in counted]
    return {cell for layer in since for cell in layer.cells() if cell in gap}


def _opened(project: Project, graph: Graph, log: Holding, cells: Collection[Cell], why: str) -> Gap:
    """A gap that the gap ledger knows of: the one that was begun for these rows, or a new one."""
    begun = [gap for gap in log.gaps if gap.phase == "opening" and all(cell in gap for cell in cells)]
    made_by = owner(graph, log.collection)
    assert made_by is not None, "the plan refuses what nobody makes"
    allowed = f"{graph.name}.{made_by.name}" if made_by.on_loss == "gap" else f"the handler of {graph.name}"
    spans, now = spans_of(set(cells), log.cells()), world().now().isoformat(timespec="seconds")
    before = affected(project, graph, log.collection)
    rows = sum(published_rows(log, cells).values())
    gap = begun[0] if begun else Gap(world().new_id(), log.collection, spans, rows, now, allowed, why, before)
    project.control(graph.name).change(lambda gaps: gaps.opened(gap))
    return gap


def affected(project: Project, graph: Graph, collection: str) -> dict[str, int]:
    """Who has to be corrected when rows of a log leave or come back, and where their logs end: its stage, and its readers."""
    made_by = owner(graph, collection)
    own = [made_by.name] if made_by is not None and made_by.kind == "stage" else []
    heads = {name: project.log(graph.name, name).head() for name in (*own, *graph.readers(collection))}
    return {name: head.description.upper if head else graph.schedule.start for name, head in heads.items()}


def had_gaps(project: Project, graph: Graph, collection: Declared) -> list[str]:
    """The logs of which rows were left out at some time, of those that a stage reads: its inputs, and what it has published."""
    if collection.kind == "source":
        return []
    kept = [name for name in project.catalog.names(graph.name) if owner(graph, name) == collection]
    return [name for name in (*collection.inputs, *sorted(kept)) if project.log(graph.name, name).had_gaps()]


def turned(project: Project, graph: Graph, log: Holding) -> bool:
    """Let the gap ledger say what became of a log's gaps: rows that are out, and rows that are back; whether it had to."""
    if not _is_known(log):
        return False
    gone, digests, has_turned = missing(log), published_digests(log), False
    unsound = [data for _, data in data_of(log) if not data.file.is_sound() or data.found not in (None, data.rows)]
    control = project.control(graph.name)
    for gap in log.gaps:
        cells = {cell for cell in digests if cell in gap}
        here = cells - gone
        if gap.made_good is not None or any(covers(data, cell) for data in unsound for cell in here):
            continue
        if here:
            readers = affected(project, graph, log.collection)
            left, came = spans_of(cells & gone, log.cells()), spans_of(here, log.cells())
            rows_left = sum(digests[cell].rows for cell in cells & gone)
            control.change(partial(_back, gap.id, world().new_id(), readers, came, left, rows_left))
            has_turned = True
        elif gap.phase == "opening":
            control.change(partial(_settled, gap.id))
            has_turned = True
    return has_turned


def close_made_good(project: Project, graph: Graph) -> None:
    """Let the gap ledger forget what stages have made good, where no snapshot that is kept counts the rows any more.

    Until then a merge, or a rewind, may be undone, and the log counts them again.
    """
    from firnline.tables.log import counting

    control = project.control(graph.name)
    good = [gap for gap in control.gaps().gaps if gap.made_good is not None]
    tables = {gap.collection: project.log(graph.name, gap.collection).load() for gap in good}
    closed = {gap.id for gap in good if (table := tables[gap.collection]) is not None and not counting(table, gap)}
    if closed:
        control.change(lambda gaps: gaps.without(closed))


def _is_known(log: Holding) -> bool:
    """Whether nothing keeps one from seeing which rows there should be, and which the log names."""
    if not log.metadata.is_sound():
        return False
    lists = [revision.manifests for revision in log.published()]
    are_told = all(revision.told is not None for revision in log.layers() if revision.summary is not None)
    return are_told and all(each is not None and all(manifest.file.is_sound() for manifest in each) for each in lists)


def _back(id: str, event: str, readers: Mapping[str, int], here: Spans, left: Spans, rows_left: int, gaps: Gaps) -> Gaps:
    return gaps.back(id, event, readers, here, left, rows_left)


def _settled(id: str, gaps: Gaps) -> Gaps:
    return gaps.settled(id)


def put_back(project: Project, session: Callable[[], SparkSession], log: Holding, step: Step) -> frozenset[Cell]:
    """Name data files again that were taken out and have turned up, with the rows that they had; whose they are."""
    from firnline.tables.port import Exchange
    from firnline.tables.sidecar import Repair
    from firnline.tables.storage import is_there

    table = project.log(log.pipeline, log.collection)
    found, stored = _turned_up(project, session, table, [file for file in taken_out(log, step.cells) if is_there(file)])
    published = published_digests(log)
    right = {cell for cell, digest in stored.items() if published.get(cell) == digest}

    spans = {file.path: Span(file.first, file.last, (file.part,)) for file in found}
    coming = tuple(file for file in found if all(cell in right for cell in stored if cell in spans[file.path]))
    cells = frozenset(cell for cell in right if any(cell in spans[file.path] for file in coming))
    if coming:
        note = Repair(log.collection, world().new_id(), tuple(sorted(cells)), (), (), sum(file.rows for file in coming), 0, 0.0)
        exchange(table, log, note, Exchange(back=coming))
    return cells


def _turned_up(
    project: Project, session: Callable[[], SparkSession], log: Log, files: list[StoredFile]
) -> tuple[list[StoredFile], dict[Cell, Digest]]:
    """The files that can be read, and the digests of their rows."""
    from firnline.runtime.stored_digests import digests_read
    from firnline.tables.storage import is_there

    loaded = log.load()
    if not files or loaded is None:
        return [], {}
    try:
        with rows_beside(project, session(), log, files) as rows:
            return files, digests_read(rows, loaded)
    except FirnlineError:
        readable = [file for file in files if is_there(file) and is_readable(project, file.path)]
        if len(readable) == len(files):
            raise
    return _turned_up(project, session, log, readable)


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows that a collection lacks, or was computed without."""

    collection: str
    """Whose rows they are."""
    epochs: tuple[tuple[str, str], ...]
    """From one epoch to another, each."""
    parts: tuple[int, ...]
    rows: int
    since: str
    owner: str
    why: str
    is_back: bool
    """Whether they are in their own log again, so that the next epoch corrects what was computed without them."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """How complete a collection is: parts that lack nothing, of how many, and what is missing."""

    collection: str
    present: int
    of: int
    missing: tuple[Missing, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    def __str__(self) -> str:
        return f"{self.present}/{self.of}"


def completeness(name: str, /, *, as_of: str | None = None, project: Project | None = None) -> Completeness:
    """How complete a collection is, as readers see it.

    Args:
        name: ``pipeline.collection``.
        as_of: The epoch; the newest that is complete in all of the pipeline's collections by default.
        project: The project; the one around the current folder by default.
    """
    found = project or Project.load()
    pipeline, _, collection = name.partition(".")
    graph = found.graph(pipeline)
    graph.collection(collection)
    upto = None if as_of is None else graph.schedule.epoch_at(graph.schedule.point(as_of)).upper
    return of_pipeline(found, graph, upto)[collection]


def of_pipeline(project: Project, graph: Graph, upto: int | None = None) -> dict[str, Completeness]:
    """How complete every collection of a pipeline is, as of the epochs before a point; the frontier by default."""
    control = project.control(graph.name)
    gaps, frontier = control.gaps(), control.frontier()
    whole = {each.name: Completeness(f"{graph.name}.{each.name}", each.parts, each.parts) for each in graph.collections}
    if not gaps.gaps:
        return whole
    heads = {name: project.log(graph.name, name).head() for name in whole}
    uppers = {name: head.description.upper for name, head in heads.items() if head is not None}
    at = frontier.upper if upto is None and frontier is not None else upto
    found = {}
    for name, of in touched(graph, gaps, uppers, at, same_parts(project, graph)).items():
        present, parts = of.of(graph.collection(name).parts)
        found[name] = Completeness(f"{graph.name}.{name}", present, parts, tuple(_missing(graph, gap) for gap in of.gaps))
    return found


def same_parts(project: Project, graph: Graph) -> Same:
    """Tells whether part p of a collection is made from part p of an input, as its newest epoch was; each is read once."""

    @cache
    def same(reader: str, input: str) -> bool:
        log = project.log(graph.name, reader)
        entry = next(log.entries(), None)
        read = log.sidecar(entry).inputs.get(input) if entry is not None else None
        return read is not None and read.parts == "same"

    return same


def _missing(graph: Graph, gap: Gap) -> Missing:
    label = graph.schedule.label
    epochs = tuple((label(span.first), label(span.last)) for span in gap.spans)
    parts = tuple(sorted(gap.parts()))
    return Missing(gap.collection, epochs, parts, gap.rows, gap.since, gap.owner, gap.why, gap.phase == "back")


def sentence(missing: Missing) -> str:
    """What is missing, in words."""
    epochs = ", ".join(first if first == last else f"{first} to {last}" for first, last in dict.fromkeys(missing.epochs))
    parts = ", ".join(map(str, missing.parts))
    what = f"{missing.rows} rows of {missing.collection}, epochs {epochs}, parts {parts}"
    return f"{what}, came back and arrive with the next epoch" if missing.is_back else f"{what}: {missing.why}"
