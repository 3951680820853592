"""What is known about the epochs of logs beside the logs themselves: notes that may hold rows, and copies at other places."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import place
from firnline.runtime.project import Project
from firnline.runtime.replicas import Replicas
from firnline.runtime.safepoint import other_spaces
from firnline.tables import check_results, determinants, failures
from firnline.tables.control import TABLE
from firnline.tables.erasing import COPIES, base_of
from firnline.tables.layers import is_repair
from firnline.tables.metadata import SIDECAR
from firnline.tables.sidecar import Sidecar
from firnline.tables.trash import ERASED, Record, Trash, file_key
from firnline.world import world

if TYPE_CHECKING:
    from firnline.tables.metadata import Metadata

PAGES = "data_docs"
"""Below the work folder: what checks found, with samples of rows, to be looked at in a browser."""
_FOLDERS = (failures.FOLDER, *(f"{check_results.FOLDER}/{kind}" for kind in ("results", "last", "failed")))


def forget_notes(project: Project, graph: Graph, collections: Sequence[str], upto: int) -> int:
    """Remove what checks and failures of collections said, and what their epochs before a point took from outside; how many."""
    catalog, folder = project.catalog, f"{project.catalog.warehouse}/{graph.name}"
    paths = [path for kind in _FOLDERS for name in collections for path in catalog.paths(f"{folder}/{kind}/{name}")]
    for name in collections:
        logged = f"{folder}/{determinants.FOLDER}/{name}"
        paths += [path for path in catalog.paths(logged) if int(path.rsplit("/", 2)[1]) < upto]
    for path in paths:
        catalog.remove(path)
    return len(paths)


def forget_pages(project: Project) -> None:
    """Remove what was rendered of checks: whoever looks renders it anew."""
    shutil.rmtree(project.settings.work / PAGES, ignore_errors=True)


def drop_log(project: Project, graph: Graph, table: Metadata) -> tuple[int, int]:
    """Forget a log as a whole, with its copies: whoever makes it makes it anew. Files and bytes that went.

    What is to go is written down before: whoever dies in between leaves it to ``finish_drops``.
    """
    catalog, control = project.catalog, project.catalog.table(graph.name, TABLE)
    assert control is not None, "an epoch is complete"
    record = Trash(catalog).put_tables(control, [table], ERASED)
    if not catalog.forget(table):
        catalog.remove(record.path)
        raise FirnlineError("COMMIT_CONTENDED", f"{graph.name}.{table.name} was published to meanwhile")
    return _emptied(project, graph, record)


def finish_drops(project: Project, graph: Graph) -> dict[str, tuple[int, int]]:
    """Remove what is left of logs that somebody dropped and did not live to remove; files and bytes, by log."""
    catalog, control = project.catalog, project.catalog.table(graph.name, TABLE)
    records = [] if control is None else [each for each in Trash(catalog).records(control) if each.why == ERASED]
    tables = (catalog.table(graph.name, name) for name in catalog.names(graph.name)) if records else ()
    there = {table.location for table in tables if table is not None}
    found = {}
    for record in records:
        if there.isdisjoint(record.folders):
            found[record.folders[0].rsplit("/", 1)[-1]] = _emptied(project, graph, record)
        else:
            catalog.remove(record.path)  # it was not forgotten: whoever wants it dropped begins anew
    return found


def _emptied(project: Project, graph: Graph, record: Record) -> tuple[int, int]:
    """Remove the files of a log that is forgotten as a whole, and all that any place has of its folder."""
    from firnline.replicas.place import below

    sizes, places = [], Replicas(project, graph).places.values()
    for each in places:
        for path in (path for folder in record.folders for path in each.paths(below(project.catalog.warehouse, folder))):
            each.remove(path)
    for path in record.files:
        for each in places:
            each.remove(below(project.catalog.warehouse, path))
        sizes.append(project.catalog.remove(path))
        world().reach("erase.removed")
    project.catalog.remove(record.path)
    return sum(1 for size in sizes if size), sum(sizes)


def forget_plain_rows(project: Project, graph: Graph, collections: Collection[str]) -> None:
    """Let plain tables hold what the frontier has of their collections, and nothing of what they held before."""
    from firnline.runtime.plain_tables import bring_up
    from firnline.tables.plain import PlainTable

    bring_up(project, graph)
    for name in collections:
        if graph.collection(name).publish == "table":
            PlainTable(project.catalog, graph.name, name).forget_history()


def beyond(project: Project, graph: Graph, collections: Collection[str]) -> dict[str, set[str]]:
    """The logs of other pipelines and their branches that come of some collections, and of which inputs they do."""
    reads = {name: of for space in other_spaces(project, graph) for name, of in _reads(project, space).items()}
    reached, more = set[str](), {f"{graph.name}.{name}" for name in collections}
    while more:
        reached |= more
        more = {name for name, inputs in reads.items() if reached & inputs} - reached
    return {name: reads[name] & reached for name in sorted(reached & reads.keys())}


def _reads(project: Project, space: str) -> dict[str, set[str]]:
    """The logs of a pipeline or a branch, and what they are made from: as the code says, or as they do where it does not load."""
    try:
        known = {each.name: each.inputs for each in project.graph(space).collections}
    except FirnlineError:
        tables = {name: project.log(space, name) for name in project.catalog.names(space) if "__" not in name and name != TABLE}
        known = {name: tuple({of for entry in log.entries() for of in log.sidecar(entry).inputs}) for name, log in tables.items()}
    there = project.catalog.names(space)
    return {f"{space}.{name}": {".".join(place(space, of)) for of in inputs} for name, inputs in known.items() if name in there}


def waiting_beyond(project: Project, graph: Graph, collections: Collection[str]) -> Iterator[tuple[str, str]]:
    """The folders of logs that other pipelines let go of, and that may hold what came of some collections until they are removed.

    Each with the pipeline or branch whose trash it is in.
    """
    reached = {*(f"{graph.name}.{name}" for name in collections), *beyond(project, graph, collections)}
    for space in other_spaces(project, graph):
        control = project.catalog.table(space, TABLE)
        for record in Trash(project.catalog).records(control) if control is not None else ():
            if record.why != ERASED and any(_may_come_of(project, space, record, each, reached) for each in record.folders):
                yield from ((space, folder) for folder in record.folders)


def _may_come_of(project: Project, space: str, record: Record, folder: str, reached: Collection[str]) -> bool:
    """Whether a table in the trash was made from some logs, or from such as are not there any more, or does not tell."""
    catalog = project.catalog
    versions = [path for path in record.files if file_key(path).startswith(f"{file_key(folder)}/metadata/")]
    try:
        table = catalog.at(space, "", max(versions))
        notes = [each.summary[SIDECAR] for each in table.main_line() if SIDECAR in each.summary and not is_repair(each)]
        inputs = {of for path in notes for of in Sidecar.of_json(catalog.read(path)).inputs}
    except (OSError, ValueError, KeyError, TypeError):
        return True
    there = {f"{space}.{name}" for name in catalog.names(space)}
    read = {".".join(place(space, of)) for of in inputs}
    return any(of in reached or (of.startswith(f"{space}.") and of not in there) for of in read)


def made_before(project: Project, graph: Graph, collections: Collection[str]) -> list[str]:
    """Those of them that may hold what came of rows that are erased now: not all of it is known to be made since."""
    found = beyond(project, graph, collections)
    stale = {name for name, inputs in found.items() if not all(_is_made_since(project, name, of) for of in inputs)}
    while more := {name for name, inputs in found.items() if inputs & stale} - stale:
        stale |= more
    return sorted(stale)


def _is_made_since(project: Project, name: str, of: str) -> bool:
    """Whether every layer of a log was made from an input as it is since the last erasure, or since it was begun anew."""
    log, (pipeline, collection) = project.log(*name.split(".")), of.split(".")
    table = project.log(pipeline, collection).load()
    if table is None:
        return False
    erased, known = base_of(table), of if pipeline != log.pipeline else collection
    for sidecar in map(log.sidecar, log.entries()):
        read = sidecar.inputs.get(known)
        through = None if read is None or sidecar.merged else table.snapshots.get(read.snapshot)
        if through is None or (erased is not None and through.sequence < erased.sequence):
            return False
    return True


def check_places(project: Project, graph: Graph) -> None:
    """Refuse to go on while a place does not answer: what is there could not be removed."""
    replicas = Replicas(project, graph)
    replicas.answering(is_writing=False)
    if replicas.out:
        told = "; ".join(f"{error.what}" for error in replicas.out.values())
        what = f"copies of {graph.name} cannot be removed: {told}"
        todo = "Bring the place back, or take it out of replicas= if its content is gone for good; then erase again."
        raise FirnlineError("ERASURE_BLOCKED", what, todo=todo)


def stray_copies(project: Project, graph: Graph, logs: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The copies, by place and path below it, of files that logs do not name any more; those of dropped logs went with these."""
    from firnline.replicas.place import below

    replicas = Replicas(project, graph)
    for url, there in replicas.places.items():
        for table in (table for name in logs if (table := project.log(graph.name, name).load()) is not None):
            listed = there.paths(below(project.catalog.warehouse, table.location))
            named = _named(project, graph, table.name)  # after the listing: what was copied since is not in it
            copies = (path for path in listed if COPIES not in f"/{path}")
            yield from ((url, path) for path in copies if file_key(f"{project.catalog.warehouse}/{path}") not in named)


def forget_copies(project: Project, graph: Graph, logs: Sequence[str]) -> int:
    """Remove the copies of files that logs do not name any more, and what is noted about them, at every place; how many."""
    replicas, count = Replicas(project, graph), 0
    for url, path in stray_copies(project, graph, logs):
        replicas.places[url].remove(path)
        count += 1
    for url in replicas.places:
        for name in logs:
            named = _named(project, graph, name)
            for record in replicas.known(name, url).values():
                if any(file_key(f"{project.catalog.warehouse}/{file.path}") not in named for file in record.files):
                    replicas.drop(name, record)
    return count


def _named(project: Project, graph: Graph, name: str) -> set[str]:
    table = project.log(graph.name, name).load()
    return set() if table is None else Trash(project.catalog).named(table)
