"""What a reader sees: whole epochs only, of all collections of a pipeline up to one and the same point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE
from firnline.plan.safepoint import compacted
from firnline.runtime.project import Project

if TYPE_CHECKING:
    from pyiceberg.table import Table

T = TypeVar("T")
_MOST_LOOKS = 5


def visible_upto(project: Project, graph: Graph, as_of: str | None = None) -> int:
    """The point before which a reader sees everything: the frontier, or the end of the epoch asked for."""
    frontier = project.control(graph.name).frontier()
    if frontier is None:
        todo = f"Compute some: firnline run {graph.name}."
        raise FirnlineError("EPOCH_NOT_COMPLETE", f"no epoch of {graph.name!r} is complete yet", todo=todo)
    if as_of is None:
        return frontier.upper
    upper = graph.schedule.epoch_at(graph.schedule.point(as_of)).upper
    if upper > frontier.upper:
        last = graph.schedule.label(frontier.upper)
        raise FirnlineError("EPOCH_NOT_COMPLETE", f"{as_of} is not complete in all collections; the frontier is at {last}")
    return upper


def looked_again(look: Callable[[], T], as_of: str | None) -> T:
    """What a reader of the newest epoch sees; if that was merged or rewound while it looked, what it sees then."""
    try:
        return look()
    except FirnlineError as error:
        if as_of is not None or error.code not in ("EPOCH_COMPACTED", "EPOCH_NOT_COMPLETE", "GENERATION_CHANGED"):
            raise
    return look()


def consistent(project: Project, names: Sequence[str], as_of: str | None, view: Callable[[Graph, str, int], T]) -> list[T]:
    """A view of each collection, all of a pipeline as of the same point.

    Args:
        project: The project.
        names: ``pipeline.collection``, at least one.
        as_of: The epoch; the newest that is complete by default.
        view: Makes one, given the pipeline, the collection and the point before which it sees everything.
    """
    if not names:
        raise FirnlineError("NO_SUCH_COLLECTION", "no collection is named")
    graphs = {pipeline: project.graph(pipeline) for pipeline in {name.partition(".")[0] for name in names}}

    def generations() -> list[object]:
        frontiers = [project.control(pipeline).frontier() for pipeline in graphs]
        return [frontier and frontier.generations for frontier in frontiers]

    def look() -> list[T]:
        for _ in range(_MOST_LOOKS):
            before = generations()
            cut = {pipeline: visible_upto(project, graph, as_of) for pipeline, graph in graphs.items()}
            found = []
            for name in names:
                pipeline, _, collection = name.partition(".")
                found.append(view(graphs[pipeline], collection, cut[pipeline]))
            if generations() == before:
                return found
        raise FirnlineError("EPOCH_NOT_COMPLETE", f"{', '.join(graphs)} was rewound again and again meanwhile; ask again")

    return looked_again(look, as_of)


def table_at(project: Project, graph: Graph, collection: str, upto: int) -> Table | None:
    """A log as it is now, if it still tells the state at a point; nothing for a quarantine that never held a record."""
    source = collection.removesuffix(QUARANTINE)
    graph.collection(source)
    log = project.log(graph.name, collection)
    if log.load() is None and collection == source:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{graph.name}.{collection} has no log yet")
    if log.load() is None:
        return None
    table = project.catalog.iceberg(graph.name, collection)
    head = project.log(graph.name, collection).head()  # after the table, which is merged no further
    if head is not None and upto < head.description.since:
        raise compacted(graph, collection, head.description.since)
    if head is not None and collection == source and head.description.upper < upto:
        raise FirnlineError("EPOCH_NOT_COMPLETE", f"{graph.name}.{collection} was rewound meanwhile; ask again")
    return table


def since(project: Project, graph: Graph, collection: str) -> int:
    """Where the single epochs of a log begin."""
    head = project.log(graph.name, collection).head()
    return graph.schedule.start if head is None else head.description.since
