"""Rows and changes for people, without a JVM: whole epochs only, as the frontier says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firnline.model.graph import Graph
from firnline.model.names import DIFF, EPOCH, QUARANTINE
from firnline.runtime.cut import looked_again, since, table_at, visible_upto
from firnline.runtime.project import Project

Rows = tuple[list[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Change:
    """How much one epoch changed one collection."""

    epoch: str
    collection: str
    inserted: int
    removed: int


def rows(project: Project, graph: Graph, collection: str, as_of: str | None = None, limit: int | None = None) -> Rows:
    """The rows of a collection after an epoch (the newest complete one by default), ordered by its keys."""
    from firnline.tables import scan

    def look() -> Rows:
        upto = visible_upto(project, graph, as_of)
        table = table_at(project, graph, collection, upto)
        if table is None:
            return [], []
        found = scan.state(table, upto)
        return _listed(found, _order(graph, collection, found), limit)

    return looked_again(look, as_of)


def changes(project: Project, graph: Graph, collection: str, as_of: str | None = None, limit: int | None = None) -> Rows:
    """The rows that epochs inserted and removed, all that are complete and not merged or one; the newest epoch first."""
    from firnline.tables import scan

    upto = visible_upto(project, graph, as_of)
    lower = graph.schedule.start if as_of is None else graph.schedule.epoch_at(graph.schedule.point(as_of)).lower
    table = table_at(project, graph, collection, upto if as_of is None else lower)
    if table is None:
        return [], []
    found = scan.changes(table, max(lower, since(project, graph, collection)), upto)
    names = [name for name in found.column_names if name not in (EPOCH, DIFF)]
    ordered = found.sort_by(
        [(EPOCH, "descending"), *((key, "ascending") for key in _order(graph, collection, found)), (DIFF, "ascending")]
    )
    cells = [ordered[name].to_pylist() for name in (EPOCH, DIFF, *names)]
    listed = list(zip(*cells, strict=True))[:limit]
    return ["epoch", "change", *names], [(graph.schedule.label(row[0]), f"{row[1]:+d}", *row[2:]) for row in listed]


def summary(project: Project, graph: Graph) -> list[Change]:
    """What each complete epoch that is not merged changed in each collection."""
    frontier = project.control(graph.name).frontier()
    if frontier is None:
        return []
    found = []
    for position, collection in enumerate(graph.collections):
        entries = list(project.log(graph.name, collection.name).entries())
        kept = max((entry.description.since for entry in entries), default=graph.schedule.start)
        for entry in entries:
            if kept <= entry.lower and entry.description.upper <= frontier.upper:
                inserted, removed = (entry.rows + entry.weight) // 2, (entry.rows - entry.weight) // 2
                found.append(
                    (entry.lower, position, Change(graph.schedule.label(entry.lower), collection.name, inserted, removed))
                )
    return [change for _, _, change in sorted(found, key=lambda item: item[:2])]


def _order(graph: Graph, collection: str, found: Any) -> Sequence[str]:
    """The keys, but for those that Arrow cannot sort by: they are no single values."""
    if collection.endswith(QUARANTINE):
        return ("file", "record")
    return [key for key in graph.collection(collection).keys if found.schema.field(key).type.num_fields == 0]


def _listed(found: Any, order: Sequence[str], limit: int | None) -> Rows:
    ordered = found.sort_by([(key, "ascending") for key in order]) if order else found
    names = ordered.column_names
    cells = [ordered[name].to_pylist() for name in names]
    return names, list(zip(*cells, strict=True))[:limit]
