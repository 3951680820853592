"""Running a stage, or a whole pipeline, for a test: as in production, but for Airflow and the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.failpoints import POINTS
from firnline.model.declaration import Function
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch, Schedule
from firnline.model.graph import Graph
from firnline.model.names import DIFF, EPOCH
from firnline.runtime import logical_time
from firnline.runtime.flusher import Flusher
from firnline.runtime.project import Declared, Project
from firnline.testing.history import Crash, Item, Schemas, steps_of, tables_of
from firnline.testing.lake import frame_of, lake, moved, namespace
from firnline.testing.subject import local, subject_of
from firnline.world import World, replaced

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.engine.reading import SourceEpoch


class Crashed(BaseException):
    """A crash of a history. It is no Exception, so that nothing catches it."""


class _Dying(World):
    """A world in which who reaches a point dies there, once it is armed."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._point = point
        self.is_armed = False

    def reach(self, point: str) -> None:
        """Say that a point is reached."""
        if self.is_armed and point == self._point:
            raise Crashed(point)
        super().reach(point)


class _Unhurried(Flusher):
    """What is stashed stays so: no test asks the ledger."""

    def start(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, eq=False)
class TestProject(Project):
    """A project whose tables are those of a test; it knows the test's pipeline beside its own."""

    __test__ = False
    of_test: Declared | None = None

    @cached_property
    def flusher(self) -> Flusher:
        """What leaves the stash alone."""
        return _Unhurried(self)

    def pipelines(self) -> tuple[str, ...]:
        """The names of the project's pipelines, and that of the test's."""
        return (*super().pipelines(), *([] if self.of_test is None else [self.of_test.graph.name]))

    def declared(self, name: str) -> Declared:
        """A pipeline with its functions."""
        return self.of_test if self.of_test is not None and self.of_test.graph.name == name else super().declared(name)

    def graph(self, name: str) -> Graph:
        """A pipeline's graph."""
        return self.of_test.graph if self.of_test is not None and self.of_test.graph.name == name else super().graph(name)


@dataclass(frozen=True)
class Ran:
    """A stage, or a whole pipeline, after its epochs."""

    project: Project
    declared: Declared
    session: SparkSession
    epochs: tuple[Epoch, ...]
    name: str | None = None
    """The stage under test."""

    @property
    def graph(self) -> Graph:
        """The pipeline."""
        return self.declared.graph

    def rows(self, collection: str | None = None, *, after: int | str | None = None) -> list[dict[str, Any]]:
        """The rows of a collection, ordered by its keys.

        Args:
            collection: Its name; that of the stage under test by default.
            after: How many epochs have passed, or the label of the last one; all by default.
        """
        from firnline.tables import scan

        found = scan.state(self._table(collection), self._upper(after))
        return self._listed(found, collection)

    def changes(self, collection: str | None = None, *, epoch: int | str | None = None) -> list[dict[str, Any]]:
        """The rows that an epoch inserted and removed; ``_diff`` says how often.

        Args:
            collection: Its name; that of the stage under test by default.
            epoch: Its number, the first being 1, or its label; the last by default.
        """
        from firnline.tables import scan

        upper = self._upper(epoch)
        lower = next((each.lower for each in self.epochs if each.upper == upper), upper)
        return self._listed(scan.changes(self._table(collection), lower, upper).drop_columns([EPOCH]), collection)

    def digests(self, collection: str | None = None) -> dict[tuple[int, int], Digest]:
        """The digests of what each epoch changed, by where the epoch begins and by part."""
        log = self.project.log(self.graph.name, self._named(collection))
        return {at: digest for entry in log.entries() for at, digest in log.sidecar(entry).digests.items()}

    def label(self, number: int) -> str:
        """An epoch as messages name it."""
        return f"epoch {number} of {len(self.epochs)} ({self.graph.schedule.label(self.epochs[number - 1].lower)})"

    def schema(self, collection: str | None = None) -> pa.Schema:
        """The columns of a collection."""
        from firnline.tables import scan

        return scan.state(self._table(collection), self.graph.schedule.start).schema

    def _named(self, collection: str | None) -> str:
        name = collection or self.name
        if name is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"name a collection of {self.graph.name!r}")
        return self.graph.collection(name).name

    def _table(self, collection: str | None) -> Any:
        return self.project.catalog.iceberg(self.graph.name, self._named(collection))

    def _upper(self, after: int | str | None) -> int:
        schedule = self.graph.schedule
        if isinstance(after, str):
            return schedule.epoch_at(schedule.point(after)).upper
        count = len(self.epochs) if after is None else after
        if not 0 <= count <= len(self.epochs):
            raise FirnlineError("BAD_EPOCH", f"there are {len(self.epochs)} epochs, not {count}")
        return self.epochs[count - 1].upper if count else schedule.start

    def _listed(self, found: pa.Table, collection: str | None) -> list[dict[str, Any]]:
        order = [*self.graph.collection(self._named(collection)).keys, *([DIFF] if DIFF in found.column_names else [])]
        ordered = found.sort_by([(name, "ascending") for name in order]) if order else found
        listed: list[dict[str, Any]] = ordered.to_pylist()
        return listed


def run(
    stage: str | Function,
    history: Sequence[Item],
    *,
    schemas: Schemas | None = None,
    start: object = None,
    root: Path | None = None,
) -> Ran:
    """Run a stage over a history of its inputs, each epoch published to a log, in tables of this test alone.

    Args:
        stage: ``"pipeline.stage"``, or its function. Also a source, whose history is what its function would have returned.
        history: For each epoch a mapping from names of inputs to rows: dicts, or an Arrow table. ``_diff`` says how often a row
            is inserted, or removed. An input that is not named gets nothing. A ``Crash`` interrupts the epoch after it. Rows may
            be those of any collection that the stage is made from: the stages between are run, too.
        schemas: The columns of inputs, as Spark's DDL or as Arrow's schema; by default what the values say.
        start: Where the first epoch begins; the pipeline's start by default.
        root: A folder of the project; the current one by default.
    """
    steps = steps_of(history)
    shared = lake(root)
    project = TestProject(moved(root, shared.work))
    subject = subject_of(project, stage)
    given = dict.fromkeys(name for step in steps for name in step.rows) | dict.fromkeys(schemas or ())
    declared, sources = subject.alone(given, namespace(subject.declared.graph.name), start)
    epochs = tuple(islice(_epochs(declared.graph.schedule), len(steps)))
    labels = [declared.graph.schedule.label(epoch.lower) for epoch in epochs]
    functions = {}
    for name, source in sources.items():
        schema = _schema(shared.session, (schemas or {}).get(name))
        tables = tables_of(name, [step.rows.get(name, ()) for step in steps], schema)
        functions[source] = _returning(dict(zip(labels, tables, strict=True)))
    declared = replace(declared, functions={**declared.functions, **functions})
    ran = Ran(TestProject(project.settings, declared), declared, shared.session, epochs, subject.name)
    for epoch, step in zip(epochs, steps, strict=True):
        for crash in step.crashes:
            _die(ran, epoch, crash)
            ran = replace(ran, project=TestProject(project.settings, declared))
        _advance(ran, epoch)
    return ran


def run_pipeline(pipeline: str, *, upto: str | None = None, root: Path | None = None) -> Ran:
    """Run a whole pipeline from its start, its sources reading what they read, in tables of this test alone.

    Args:
        pipeline: Its name.
        upto: The last epoch; by default the last one that is due.
        root: A folder of the project; the current one by default.
    """
    from firnline.runtime.status import due

    shared = lake(root)
    project = TestProject(moved(root, shared.work))
    found = project.declared(pipeline)
    graph = replace(found.graph, name=namespace(pipeline), replicas=(), sinks=())
    declared = replace(found, graph=graph)
    project = TestProject(project.settings, declared)
    end = due(project, graph) if upto is None else graph.schedule.epoch_at(graph.schedule.point(upto)).upper
    ran = Ran(project, declared, shared.session, tuple(graph.schedule.epochs(graph.schedule.start, end)))
    for epoch in ran.epochs:
        _advance(ran, epoch)
    return ran


@contextmanager
def at(moment: object) -> Iterator[None]:
    """Let ``firnline.epoch_time()`` be a moment (ISO text, a datetime, or an integer), to call a stage's function by itself."""
    is_timed = not isinstance(moment, int)
    point = Schedule.parse("@hourly" if is_timed else 1, "1970-01-01" if is_timed else 0, None).point(moment)
    with logical_time.at(point, is_timed=is_timed):
        yield


def _advance(ran: Ran, epoch: Epoch, dying: _Dying | None = None, target: str | None = None) -> None:
    """One epoch of all collections, as a DAG run does it."""
    from firnline.runtime.advance import advance, complete

    for collection in ran.graph.collections:
        if dying is not None:
            dying.is_armed = collection.name == target
        list(advance(ran.project, ran.declared, ran.session, collection.name, epoch))
    if dying is not None:
        dying.is_armed = True
    complete(ran.project, ran.graph, epoch)


def _die(ran: Ran, epoch: Epoch, crash: Crash) -> None:
    dying = _Dying(crash.point)
    target = ran.graph.collection(local(crash.collection or str(ran.name))).name
    try:
        with replaced(dying):
            _advance(ran, epoch, dying, target)
    except Crashed:
        return
    what = f"{target!r} never reached {crash.point} at {ran.graph.schedule.label(epoch.lower)}, where it was to crash"
    raise FirnlineError("BAD_HISTORY", f"the history: {what} ({POINTS[crash.point][0]})")


def _epochs(schedule: Schedule) -> Iterator[Epoch]:
    at = schedule.start
    while True:
        epoch = schedule.epoch_at(at)
        yield epoch
        at = epoch.upper


def _schema(session: SparkSession, given: Any) -> pa.Schema | None:
    if not isinstance(given, str):
        return given
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(session.createDataFrame([], given).schema, timestamp_utc=True)


def _returning(tables: Mapping[str, pa.Table]) -> Function:
    """A source's function that returns given rows."""

    def given(epoch: SourceEpoch) -> DataFrame:
        return frame_of(epoch.spark, tables[epoch.label])

    return given
