"""Plain tables of collections that are declared with ``publish="table"``: brought up to the frontier after an epoch is complete.

Done again, by whomever, it finds the work done. What could not be done, the next epoch does.
"""

from __future__ import annotations

from functools import partial

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.graph import Graph
from firnline.runtime.cut import looked_again
from firnline.runtime.project import Project
from firnline.runtime.scan import View
from firnline.world import world


def bring_up(project: Project, graph: Graph) -> None:
    """Bring the plain tables of a pipeline up to its frontier."""
    for collection in graph.collections:
        if collection.publish == "table":
            looked_again(partial(_bring_up, project, graph, collection), None)


def _bring_up(project: Project, graph: Graph, collection: Collection) -> None:
    from firnline.tables.commit import until_known
    from firnline.tables.plain import Mark, PlainTable, changed, columns_of, mark_of, whole
    from firnline.tables.scan import changes, state

    plain = PlainTable(project.catalog, graph.name, collection.name)

    def attempt_once() -> None:
        frontier = project.control(graph.name).frontier()
        assert frontier is not None, "an epoch is complete"
        if collection.name not in frontier.generations:
            return  # a new one, of which no epoch is complete yet
        goal = Mark(frontier.generations[collection.name], frontier.upper)
        view = View.of(project, graph, collection.name, goal.upper)
        if view.generation != goal.generation:
            raise FirnlineError("GENERATION_CHANGED", f"{view.name} moved while its plain table was brought up")
        columns = columns_of(view.table, view.columns)
        table = plain.load() or plain.create(columns, collection.keys)
        is_alike = plain.is_of(columns)
        mark = mark_of(table) if is_alike else None
        if mark is not None and mark.generation == goal.generation and mark.upper >= goal.upper:
            return
        world().reach("table.judged")
        loaded, change = plain.iceberg(), None
        if mark is not None and mark.generation == goal.generation and mark.upper >= view.since:
            weighted = view.read(lambda log: changes(log, mark.upper, goal.upper, net=True))
            change = changed(loaded, weighted, collection.keys)
        if change is None:
            change = whole(loaded, view.read(lambda log: state(log, goal.upper)))
        plain.commit(table, goal, change, None if is_alike else columns)
        world().reach("table.committed")

    until_known(f"the table of {graph.name}.{collection.name}", attempt_once)
