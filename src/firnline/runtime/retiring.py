"""Logs whose collections the code does not have any more: found, and let go of on request.

Nothing happens to such a log by itself, unless its collection has another name now (``renaming``): it keeps its rows and takes no
epoch, and the frontier goes on without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import collection_of
from firnline.plan.renaming import begun_anew, forgotten
from firnline.runtime.project import Project

if TYPE_CHECKING:
    from firnline.tables.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Retired:
    """A collection that has a log and no code."""

    collection: str
    renamed: str | None
    """The collection that goes on with its log."""
    upper: str
    rows: int
    bytes: int
    branches: tuple[str, ...]
    """Branches that have it: they keep theirs."""
    readers: tuple[str, ...]
    """Pipelines that read it, and do not load until they read another."""


def retired(project: Project, graph: Graph, renamed: Mapping[str, str]) -> tuple[Retired, ...]:
    """The collections of a pipeline that have a log and no code; ``renamed`` are those that are called otherwise now."""
    tables = _tables(project, graph)
    names = sorted({collection_of(name) for name in tables})
    new = {old: new for new, old in renamed.items()}
    return tuple(_told(project, graph, name, tables, new.get(name)) for name in names if name in tables)


def retire(project: Project, graph: Graph, collection: str) -> tuple[str, ...]:
    """Take the log of a collection that the code has not, its view and all kept beside it out of the catalog.

    Files are in the trash first, and go after the grace time; those that a branch names stay. What its checks and failures said
    is forgotten at once: another collection may have its name later.
    """
    from firnline.runtime.forgetting import forget_notes
    from firnline.tables import plain, views
    from firnline.tables.control import TABLE
    from firnline.tables.trash import Trash

    found = [table for name, table in _tables(project, graph).items() if collection_of(name) == collection]
    if not found:
        what = f"{graph.name!r} has no log of {collection!r} that its code does not write"
        raise FirnlineError("NO_SUCH_COLLECTION", what, todo="'firnline plan' lists those that can be retired.")
    catalog = project.catalog
    copy = catalog.table(f"{graph.name}{plain.NAMESPACE}", collection)
    own = found if copy is None else [copy, *found]
    where, control = catalog.table(graph.name, TABLE), project.control(graph.name)
    if where is not None:
        control.name(partial(forgotten, collection=collection))
        Trash(catalog).put_tables(where, own)
    forget_notes(project, graph, [collection], graph.schedule.start)
    catalog.forget_view(f"{graph.name}{views.NAMESPACE}", collection)
    for table in sorted(own, key=lambda each: (each.pipeline, each.name) == (graph.name, collection)):  # the log last
        catalog.forget(table)
    if where is not None:
        control.name(partial(begun_anew, collection=collection))  # older code may have completed an epoch meanwhile
    return tuple(f"{table.pipeline}.{table.name}" for table in own)


def _tables(project: Project, graph: Graph) -> dict[str, Metadata]:
    """The logs whose collections are not in the code, and what was kept beside them."""
    from firnline.tables.control import TABLE

    known = {each.name for each in graph.collections}
    names = (name for name in sorted(project.catalog.names(graph.name)) if name != TABLE)
    found = {name: project.catalog.table(graph.name, name) for name in names if collection_of(name) not in known}
    return {name: table for name, table in found.items() if table is not None}


def _told(project: Project, graph: Graph, name: str, tables: Mapping[str, Metadata], renamed: str | None) -> Retired:
    from firnline.tables.log import entries_of, head_of

    table = tables[name]
    head = head_of(table)
    own = [each for other, each in tables.items() if collection_of(other) == name]
    size = sum(int(each.head.summary.get("total-files-size", 0)) for each in own if each.head is not None)
    branches = tuple(
        space.removeprefix(f"{graph.name}__")
        for space in sorted(project.catalog.branches(graph.name))
        if name in project.catalog.names(space)
    )
    upper = graph.schedule.label(head.description.upper)
    rows = sum(entry.weight for entry in entries_of(table)) if table.head is not None else 0
    return Retired(name, renamed, upper, rows, size, branches, _readers(project, graph, name))


def _readers(project: Project, graph: Graph, collection: str) -> tuple[str, ...]:
    found = []
    for name in project.pipelines():
        try:
            if name != graph.name:
                project.graph(name)
        except FirnlineError as error:
            if f"{graph.name}.{collection}" in str(error):
                found.append(name)
    return tuple(found)
