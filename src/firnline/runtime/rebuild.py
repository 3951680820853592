"""What is not rows, written anew from what other files and the ledger say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.feed import EVENTS
from firnline.model.graph import Graph
from firnline.model.stored_file import StoredFile
from firnline.plan.frontier import cut
from firnline.plan.repairing import owner
from firnline.plan.rewinding import reopened
from firnline.plan.verification import Holding
from firnline.runtime.project import Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.stash import Line
    from firnline.tables.log import Entry, Head, Log
    from firnline.tables.sidecar import Input, Sidecar

_logger = logging.getLogger(__name__)


def metadata(project: Project, graph: Graph, log: Holding) -> bool:
    """A metadata file, from an older one and what was published after it; a frontier also from the logs.

    A rewind that is lost with it is done again: it is open again before the catalog names the file that knows nothing of it.

    Whether nobody else came between.
    """
    from firnline.runtime.rewind import settle
    from firnline.tables.control import TABLE
    from firnline.tables.rebuilding import rebuild_metadata

    known = {line.publication.attempt for line in _lines(project, log.pipeline, log.collection)}

    def choose(several: list[Sidecar]) -> Sidecar:
        return next((each for each in several if each.attempt in known), several[0])

    def reached(generation: int) -> None:
        try:
            _reopen(project, graph, log.collection, generation)
        except FirnlineError as error:
            if error.code != "LOG_UNREADABLE":
                raise
            _logger.info("the control table of %s is lost, too; it is asked for rewinds once it is back", graph.name)

    if not rebuild_metadata(project.catalog, log.pipeline, log.collection, log.metadata.path, choose, reached):
        return False
    try:
        _catch_up(project, graph) if log.collection == TABLE else settle(project, graph)
    except FirnlineError as error:
        if error.code == "NOT_REPAIRABLE":
            raise
        _logger.warning("the frontier of %s stays behind until its next epoch is complete: %s", graph.name, error)
    return True


def _catch_up(project: Project, graph: Graph) -> None:
    """Let the control table, as it was some time ago, know of all that the logs hold."""
    from firnline.runtime.rewind import settle

    for name, head in _heads(project, graph).items():
        if head is not None:
            _reopen(project, graph, name, head.description.generation)
    settle(project, graph)
    heads = _heads(project, graph)
    frontier = cut({name: head.description if head else None for name, head in heads.items()})
    if frontier is not None:
        project.control(graph.name).advance(frontier)


def _heads(project: Project, graph: Graph) -> dict[str, Head | None]:
    return {each.name: project.log(graph.name, each.name).head() for each in graph.collections}


def _reopen(project: Project, graph: Graph, log: str, generation: int) -> None:
    """Let the rewind be done again that a log, of this generation, does not know of."""
    project.control(graph.name).settle(partial(reopened, log=log, generation=generation))


def lists(project: Project, log: Holding, snapshots: Collection[int]) -> None:
    """Manifest lists, from those before and after them and what sidecars say."""
    from firnline.tables.relisting import rebuild_lists

    rebuild_lists(project.catalog, log.pipeline, log.collection, snapshots)


def sidecar(project: Project, graph: Graph, log: Holding, snapshot: int, session: Callable[[], SparkSession]) -> None:
    """A sidecar, from the ledger's copy; failing that its digests from the rows and its lineage from the graph."""
    from firnline.tables.sidecar import Sidecar

    table = project.log(log.pipeline, log.collection)
    entry = next(entry for entry in table.entries() if entry.snapshot == snapshot)
    known = (
        each
        for each in _lines(project, log.pipeline, log.collection)
        if (each.publication.attempt, each.publication.sidecar) == (entry.attempt, entry.sidecar)
    )
    line = next(known, None)
    if line is not None:
        digests = {(of.epoch, of.part): Digest(of.rows, of.weight, of.first, of.second) for of in line.parts}
        inputs = {
            of.input: _input(of.input_generation, of.input_upper, of.input_snapshot, of.rows, of.parts) for of in line.inputs
        }
    else:
        digests, inputs = _added(session(), table, entry), _inputs(project, graph, log, entry)
    total = sum(digests.values(), Digest())
    if (total.rows, total.weight) != (entry.rows, entry.weight):
        what = f"{log.pipeline}.{log.collection}: {entry.rows} rows were published, {total.rows} are known of {entry.sidecar}"
        raise FirnlineError("NOT_REPAIRABLE", what)
    made_by = next(revision for revision in log.published() if revision.snapshot == snapshot)
    is_merge = made_by.is_merge
    taken_by = log.collection.removesuffix(EVENTS)
    determinants = {} if is_merge else project.determinants(log.pipeline, taken_by, entry.lower).all()
    files = _files(log, entry)
    merged, out = _merged(log, entry, files) if is_merge else ((), ())
    made = Sidecar(
        log.collection,
        entry.lower,
        entry.description.upper,
        entry.attempt,
        entry.fingerprint,
        inputs,
        digests,
        entry.seconds,
        determinants,
        files,
        merged,
        out,
        generation=(made_by.description or entry.description).generation,
    )
    project.catalog.write(entry.sidecar, made.as_json())


def _lines(project: Project, pipeline: str, collection: str) -> list[Line]:
    """What the ledger and the stash know of a collection's publications; nothing if the ledger does not answer."""
    from firnline.runtime.stash import Line

    stashed = [line for line in project.stash.batch().values() if line.publication.collection == collection]
    found = [line for line in stashed if line.publication.pipeline == pipeline]
    try:
        ledger = project.ledger
        inputs, parts = ledger.inputs(pipeline, collection), ledger.parts(pipeline, collection)
        for publication in ledger.publications(pipeline, collection):
            of_inputs = tuple(each for each in inputs if each.lower == publication.lower)
            of_parts = tuple(each for each in parts if publication.lower <= each.epoch < publication.upper)
            found.append(Line(publication, of_inputs, of_parts))
    except FirnlineError as error:
        _logger.info("the ledger cannot help: %s", error)
    return found


def _input(generation: int, upper: int, snapshot: int, rows: int, parts: str) -> Input:
    from firnline.tables.sidecar import Input

    return Input(generation, upper, snapshot, rows, "same" if parts == "same" else "all")


def _added(session: SparkSession, table: Log, entry: Entry) -> dict[tuple[int, int], Digest]:
    """The digests of the rows as they stand in storage."""
    from pyspark.errors import PySparkException

    from firnline.engine.frames import deltas, table_name
    from firnline.engine.staging import columns_of, digests
    from firnline.model.names import EPOCH
    from firnline.runtime.evaluation import diagnosed

    loaded, name = table.load(), table_name(table.pipeline, table.collection)
    assert loaded is not None, "it was looked at"
    rows = deltas(session, name, entry.through[0], entry.description.upper).where(f"{EPOCH} >= {entry.lower}")
    try:
        return digests(rows, columns_of(rows.schema, loaded.columns))
    except PySparkException as error:
        code, text = diagnosed(error)
        what = f"no ledger knows what {entry.sidecar} said, and its rows cannot be read: {text}"
        lost = f"{table.pipeline}.{table.collection}: {what}"
        raise FirnlineError("ENGINE_LOST" if code == "ENGINE_LOST" else "NOT_REPAIRABLE", lost) from error


def _inputs(project: Project, graph: Graph, log: Holding, entry: Entry) -> dict[str, Input]:
    """What the publish read, as the graph says it today; which parts went where is not known any more."""
    made_by = owner(graph, log.collection)
    found: dict[str, Input] = {}
    for name in made_by.inputs if made_by is not None else ():
        entries = list(project.log(graph.name, name).entries(entry.lower))
        within = [each for each in entries if each.description.upper <= entry.description.upper]
        if within:
            rows = sum(each.rows for each in within)
            newest = within[0]
            found[name] = _input(newest.description.generation, entry.description.upper, newest.snapshot, rows, "all")
    return found


def _merged(log: Holding, entry: Entry, files: tuple[StoredFile, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attempts that a merge stands for, as far as they are kept, and the files that it took out."""
    inside = [
        revision
        for revision in log.published()
        if revision.is_subsumed and (said := revision.summary) is not None
        if entry.lower <= said.lower and said.upper <= entry.description.upper
    ]
    kept = {file.path for file in files or ()}
    attempts = tuple(revision.summary.attempt for revision in reversed(inside) if revision.summary is not None)
    out = {file.path for revision in inside for file in revision.files or ()} - kept
    return attempts or (entry.attempt,), tuple(sorted(out))


def _files(log: Holding, entry: Entry) -> tuple[StoredFile, ...] | None:
    """The data files of a publish that are still those it was published with; None where manifests cannot be read."""
    holders = [each for each in log.published() if each.snapshot == entry.snapshot or each.is_repair]
    if any(each.manifests is None for each in holders):
        return None
    manifests = [manifest for each in holders for manifest in each.manifests or ()]
    if not all(each.file.is_sound() for each in manifests):
        return None
    repaired = {file.path for each in holders if each.is_repair for file in each.files or ()}
    found = []
    for data in (data for manifest in manifests for data in manifest.data):
        if data.first is None or data.last is None or data.part is None or data.file.path in repaired:
            continue
        if entry.lower <= data.first and data.last < entry.description.upper:
            size = data.file.expected or data.file.size or 0
            found.append(StoredFile(data.file.path, data.part, data.rows, size, data.first, data.last))
    return tuple(found)
