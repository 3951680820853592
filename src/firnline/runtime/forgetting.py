"""What is known about the epochs of logs beside the logs themselves: notes that may hold rows, and copies at other places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.runtime.project import Project
from firnline.runtime.replicas import Replicas
from firnline.tables import check_results, determinants, failures
from firnline.tables.erasing import COPIES
from firnline.tables.trash import Trash, file_key

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
    """The copies, by place and path below it, of files that logs do not name any more."""
    replicas = Replicas(project, graph)
    for url, place in replicas.places.items():
        for name in logs:
            listed = place.paths(_folder(project, graph, name))
            named = _named(project, graph, name)  # after the listing: what was copied since is not in it
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


def _folder(project: Project, graph: Graph, name: str) -> str:
    """Where a log's files are, below the warehouse: of one that was renamed not where its name says."""
    from firnline.replicas.place import below

    table = project.log(graph.name, name).load()
    return f"{graph.name}/{name}" if table is None else below(project.catalog.warehouse, table.location)


def _named(project: Project, graph: Graph, name: str) -> set[str]:
    table = project.log(graph.name, name).load()
    return set() if table is None else Trash(project.catalog).named(table)
