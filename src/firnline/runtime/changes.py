"""``firnline.changes``: what epochs changed in a collection, with Iceberg's change columns.

changes(after, upto) leads from the state after one epoch to the state after another: INSERT a row, DELETE a row. A row that was
changed is a DELETE of the old and an INSERT of the new. Net, the epochs are taken as one, and what they undid is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, overload

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import DIFF, EPOCH, quoted
from firnline.plan.seeing import Seen, position_of
from firnline.runtime.cut import consistent, visible_upto
from firnline.runtime.given import Given
from firnline.runtime.project import Project
from firnline.runtime.scan import View, check_single

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.scan import Taken
    from firnline.tables.where import Filter


@dataclass(frozen=True, slots=True)
class Changes(Given):
    """The rows that epochs inserted and deleted, those and of those columns that are asked for.

    Beside the columns: ``_change_type``, INSERT or DELETE; ``_change_ordinal``, which of ``epochs`` changed it, counted from 0
    (always 0 where they are taken as one); and ``_commit_snapshot_id``, the snapshot that holds the epoch.
    """

    _view: View
    _lower: int
    _is_net: bool
    _void: tuple[Taken, ...] = ()
    """What was told before and is not true any more: it is taken back with the first epoch."""
    _line: int = 0

    @property
    def name(self) -> str:
        """The collection's full name."""
        return self._view.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The collection's columns among those that it gives."""
        return self._view.columns

    @property
    def after(self) -> str | None:
        """The newest epoch whose changes are not told; None if all are."""
        schedule = self._view.graph.schedule
        return None if self._lower <= schedule.start else schedule.label(schedule.epoch_at(self._lower - 1).lower)

    @property
    def upto(self) -> str | None:
        """The newest epoch whose changes are told; as ``after`` if there is none. A reader's says how often it was rewound."""
        schedule, upto = self._view.graph.schedule, self._view.upto
        return position_of(None if upto <= schedule.start else schedule.label(schedule.epoch_at(upto - 1).lower), self._line)

    @property
    def epochs(self) -> tuple[str, ...]:
        """The epochs whose changes are told, in their order."""
        schedule = self._view.graph.schedule
        return tuple(schedule.label(epoch.lower) for epoch in schedule.epochs(self._lower, self._view.upto))

    def select(self, *columns: str) -> Changes:
        """Changes of these columns only: a change of others is none."""
        return replace(self, _view=self._view.narrowed(columns, None))

    def where(self, where: Filter) -> Changes:
        """Changes of the rows that a filter holds for: a row that begins to meet it is inserted."""
        return replace(self, _view=self._view.narrowed(None, where))

    def to_arrow(self) -> pa.Table:
        """The changes as an Arrow table, without a JVM; the first epoch first, and DELETE before INSERT."""
        from firnline.tables.scan import as_feed, changes

        view = self._view

        def look(table: Table) -> pa.Table:
            given = (self._lower, view.upto, view.columns, view.where)
            return changes(table, *given, net=self._is_net, void=self._void)

        return as_feed(view.read(look), self._numbered())

    def to_batches(self) -> pa.RecordBatchReader:
        """The changes as Arrow batches, without a JVM; of many rows no more than one part of the collection is in memory.

        They come in no particular order, but for those of one part and epoch: DELETE before INSERT.
        """
        from firnline.tables.scan import as_feed, changes

        if self._void:
            return self.to_arrow().to_reader()
        view, lower, numbered = self._view, self._lower, self._numbered()

        def look(table: Table, part: int | None) -> pa.Table:
            return as_feed(changes(table, lower, view.upto, view.columns, view.where, part, net=self._is_net), numbered)

        return view.batches(lower, look)

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """The changes as a DataFrame of a Connect session; by default of one of our own, which ends with the process."""
        from pyspark.sql import functions as F

        from firnline.engine.change_feed import as_feed
        from firnline.engine.filters import condition
        from firnline.engine.frames import deltas, exact, table_name
        from firnline.runtime.read import readable, shared

        view = self._view
        _, head = readable(view.project, view.graph, view.collection, view.needed, view.generation)
        table = table_name(view.graph.name, view.collection)
        spark = session or shared(view.project)
        rows = deltas(spark, table, head, view.upto).where(F.col(EPOCH) >= self._lower)
        for each in self._void:
            gone = deltas(spark, table, each.snapshot, each.upper).where(F.col(EPOCH) >= each.lower)
            first = {EPOCH: F.lit(self._lower).cast("bigint"), DIFF: -F.col(DIFF)}
            rows = rows.unionByName(gone.withColumns(first))
        rows = exact(rows)
        kept = rows.where(condition(view.where)).select(*(F.col(quoted(name)) for name in (*view.columns, EPOCH, DIFF)))
        return as_feed(kept, view.columns, self._numbered(), is_net=self._is_net)

    def _numbered(self) -> dict[int, tuple[int, int]]:
        """The ordinal and the snapshot of each epoch; where they are taken as one, of the last."""
        view, schedule = self._view, self._view.graph.schedule
        layers = list(view.project.log(view.graph.name, view.collection).entries(self._lower))

        def snapshot(epoch: int) -> int:
            return next(each.snapshot for each in layers if each.lower <= epoch)

        if self._lower >= view.upto:
            head = view.table.current_snapshot()
            return {} if head is None else {self._lower: (0, head.snapshot_id)}
        if self._is_net:
            last = schedule.epoch_at(view.upto - 1).lower
            return {last: (0, snapshot(last))}
        lowers = (epoch.lower for epoch in schedule.epochs(self._lower, view.upto))
        return {lower: (ordinal, snapshot(lower)) for ordinal, lower in enumerate(lowers)}


@overload
def changes(
    name: str,
    /,
    *,
    after: str | None = None,
    upto: str | None = None,
    net: bool = True,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
    project: Project | None = None,
) -> Changes: ...
@overload
def changes(
    *names: str, after: str | None = None, upto: str | None = None, net: bool = True, project: Project | None = None
) -> tuple[Changes, ...]: ...
def changes(
    *names: str,
    after: str | None = None,
    upto: str | None = None,
    net: bool = True,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
    project: Project | None = None,
) -> Changes | tuple[Changes, ...]:
    """What epochs changed in a collection, without a JVM; of several of a pipeline, up to the same epoch.

    Args:
        names: ``pipeline.collection``. For more than one a tuple is returned.
        after: The newest epoch that was seen; none by default, so that all there is was inserted.
        upto: The last epoch; the newest that is complete in all of the pipeline's collections by default.
        net: Whether the epochs are taken as one; otherwise each is told by itself.
        columns: Those to read; all by default. Of several collections, say ``select`` of each instead.
        where: Which rows, as for ``scan``. Of several collections, say ``where`` of each instead.
        project: The project; the one around the current folder by default.
    """
    check_single(names, columns, where)
    found = project or Project.load()

    def view(graph: Graph, collection: str, end: int) -> Changes:
        lower = graph.schedule.start if after is None else visible_upto(found, graph, after)
        if upto is not None and end < lower:
            raise FirnlineError("BAD_OPTION", f"upto={upto!r} is before after={after!r}")
        return changed_after(found, graph, collection, lower, end, net, columns, where)

    made = consistent(found, names, upto, view)
    return made[0] if len(made) == 1 else tuple(made)


def changed_after(
    project: Project,
    graph: Graph,
    collection: str,
    lower: int,
    upto: int,
    net: bool,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
) -> Changes:
    """The changes of a collection from a point to another, if its log still tells them; none if that is not after it."""
    is_whole = net and lower <= graph.schedule.start
    view = View.of(project, graph, collection, max(lower, upto), None if is_whole else lower)
    return Changes(view.narrowed(columns, where), lower, net)


def changed_since(
    project: Project, graph: Graph, collection: str, seen: Seen, upto: int, net: bool, line: int = 0
) -> Changes | None:
    """What leads from what somebody has seen of a collection to its state at a point; None if what is void is not kept."""
    from firnline.tables.scan import taken

    found = changed_after(project, graph, collection, min(seen.at, upto), upto, net)
    void = tuple(taken(found._view.table, each) for each in seen.void)
    kept = tuple(each for each in void if each is not None)
    return replace(found, _void=kept, _line=line) if len(kept) == len(void) else None
