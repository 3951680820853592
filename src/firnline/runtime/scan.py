"""``firnline.scan``: collections without a JVM, whole epochs only, all after one and the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, overload

from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE, quoted
from firnline.model.predicate import TRUE, Predicate, both
from firnline.runtime.cut import consistent, table_at
from firnline.runtime.given import Given
from firnline.runtime.project import Project
from firnline.runtime.read import warn

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.where import Filter

T = TypeVar("T")
_MOST_LOOKS = 5
_MOST_ROWS = 1_000_000
"""So many stored rows are read at once; of more, one part of the collection after the other."""
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class View:
    """A collection up to a point, and what of it is asked for.

    It is read through the snapshot that was there when it was made. Should files of that be gone, because they were merged and
    the grace time has passed, through the newest one, as long as that still tells the point.
    """

    project: Project
    graph: Graph
    collection: str
    upto: int
    needed: int
    """The point from which on the log has to tell single epochs."""
    table: Table
    columns: tuple[str, ...]
    where: Predicate = TRUE

    @classmethod
    def of(cls, project: Project, graph: Graph, collection: str, upto: int, needed: int | None = None) -> View:
        """All of a collection; of the state alone no single epochs are needed before its end."""
        from firnline.tables.where import users

        first = upto if needed is None else needed
        table = table_at(project, graph, collection, first)
        if table is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{graph.name}.{collection} has no log yet")
        return cls(project, graph, collection, upto, first, table, tuple(users(table.schema())))

    @property
    def since(self) -> int:
        """Where the single epochs begin that its snapshot tells."""
        from firnline.model.description import SINCE

        head = self.table.current_snapshot()
        return self.graph.schedule.start if head is None or head.summary is None else int(str(head.summary[SINCE]))

    @property
    def name(self) -> str:
        """The collection's full name."""
        return f"{self.graph.name}.{self.collection}"

    def narrowed(self, columns: Sequence[str] | None, where: Filter | None) -> View:
        """Of these columns and rows only."""
        from firnline.tables.where import chosen, predicate

        schema = self.table.schema()
        kept = self.columns if columns is None else chosen(schema, columns)
        return replace(self, columns=kept, where=self.where if where is None else both(self.where, predicate(where, schema)))

    def read(self, look: Callable[[Table], T]) -> T:
        """What a look at the log finds, even if files are exchanged meanwhile."""
        from firnline.tables.storage import answering

        table = self.table
        for _ in range(_MOST_LOOKS):
            try:
                with answering(self.project.catalog.warehouse):
                    return look(table)
            except FileNotFoundError as error:
                lost = error
            newer = table_at(self.project, self.graph, self.collection, self.needed)
            if newer is None or newer.metadata_location == table.metadata_location:
                break
            table = newer
        raise FirnlineError("LOG_UNREADABLE", f"{self.name}: {lost}") from lost

    @property
    def generation(self) -> int:
        """Which generation of the log its snapshot is of."""
        return _generation(self.table)

    def batches(self, lower: int, look: Callable[[Table, int | None], pa.Table]) -> pa.RecordBatchReader:
        """What looks at the log find, given a part: one after the other, if the epochs from ``lower`` on hold many rows."""
        import pyarrow as pa

        from firnline.tables.scan import portions

        def found(part: int | None) -> pa.Table:
            def look_at(table: Table) -> pa.Table:
                is_cut_anew = part is not None and _parts(table) != _parts(self.table)
                if is_cut_anew or _generation(table) != self.generation:
                    raise FirnlineError("GENERATION_CHANGED", f"{self.name} has other parts than when its reading began")
                return look(table, part)

            return self.read(look_at)

        first, *others = self.read(lambda table: portions(table, lower, self.upto, self.columns, self.where, _MOST_ROWS))
        begun = found(first)

        def batches() -> Iterator[pa.RecordBatch]:
            yield from begun.to_batches(_BATCH)
            for part in others:
                yield from found(part).cast(begun.schema).to_batches(_BATCH)

        return pa.RecordBatchReader.from_batches(begun.schema, batches())


def _generation(table: Table) -> int:
    from firnline.model.description import GENERATION

    head = table.current_snapshot()
    return 0 if head is None or head.summary is None else int(str(head.summary[GENERATION]))


def _parts(table: Table) -> str | None:
    from firnline.tables.log import PARTS

    return table.properties.get(PARTS)


def check_single(names: Sequence[str], columns: Sequence[str] | None, where: Filter | None) -> None:
    """Refuse columns and a filter for several collections, which have different columns."""
    if len(names) != 1 and not (columns is None and where is None):
        raise FirnlineError(
            "BAD_OPTION", "columns and where are those of one collection; of several, say select and where of each"
        )


@dataclass(frozen=True, slots=True)
class Scan(Given):
    """The rows of a collection after an epoch: those and of those columns that are asked for, each as often as it is there."""

    _view: View

    @property
    def name(self) -> str:
        """The collection's full name."""
        return self._view.name

    @property
    def as_of(self) -> str:
        """The newest epoch that it sees."""
        schedule = self._view.graph.schedule
        return schedule.label(schedule.epoch_at(self._view.upto - 1).lower)

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, in their order."""
        return self._view.columns

    def select(self, *columns: str) -> Scan:
        """The same rows, of these columns only."""
        return Scan(self._view.narrowed(columns, None))

    def where(self, where: Filter) -> Scan:
        """Those of the rows that a filter holds for."""
        return Scan(self._view.narrowed(None, where))

    def files(self) -> list[str]:
        """The data files that are read for it."""
        from firnline.tables.scan import files

        view = self._view
        return view.read(lambda table: files(table, view.graph.schedule.start, view.upto, view.where))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, without a JVM; in no particular order."""
        from firnline.tables.scan import state

        view = self._view
        return view.read(lambda table: state(table, view.upto, view.columns, view.where))

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as Arrow batches, without a JVM; of a large collection no more than one part is in memory."""
        from firnline.tables.scan import state

        view = self._view
        return view.batches(
            view.graph.schedule.start, lambda table, part: state(table, view.upto, view.columns, view.where, part)
        )

    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """The rows as a DataFrame of a Connect session; by default of one of our own, which ends with the process."""
        from pyspark.sql import functions as F

        from firnline.engine.filters import condition
        from firnline.runtime.read import frame

        view = self._view
        rows = frame(view.project, session, view.graph, view.collection, view.upto, view.generation)
        return rows.where(condition(view.where)).select(*(F.col(quoted(name)) for name in view.columns))


@overload
def scan(
    name: str,
    /,
    *,
    as_of: str | None = None,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
    project: Project | None = None,
) -> Scan: ...
@overload
def scan(*names: str, as_of: str | None = None, project: Project | None = None) -> tuple[Scan, ...]: ...
def scan(
    *names: str,
    as_of: str | None = None,
    columns: Sequence[str] | None = None,
    where: Filter | None = None,
    project: Project | None = None,
) -> Scan | tuple[Scan, ...]:
    """The rows of a collection after an epoch, without a JVM; of several of a pipeline, all after the same one.

    Args:
        names: ``pipeline.collection``. For more than one a tuple is returned.
        as_of: The epoch; the newest that is complete in all of the pipeline's collections by default.
        columns: Those to read; all by default. Of several collections, say ``select`` of each instead.
        where: Which rows: text such as ``"revenue > 10 and country in ('DE', 'FR')"``, or an expression of PyIceberg's. Of
            several collections, say ``where`` of each instead.
        project: The project; the one around the current folder by default.
    """
    if len(names) != 1 and not (columns is None and where is None):
        raise FirnlineError(
            "BAD_OPTION", "columns and where are those of one collection; of several, say select and where of each"
        )
    found = project or Project.load()

    def view(graph: Graph, collection: str, upto: int) -> Scan:
        made = View.of(found, graph, collection, upto).narrowed(columns, where)
        if not collection.endswith(QUARANTINE):
            warn(found, graph, collection, upto)
        return Scan(made)

    scans = consistent(found, names, as_of, view)
    return scans[0] if len(scans) == 1 else tuple(scans)
