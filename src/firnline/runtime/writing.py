"""The way of a delta into its log: staged by Spark, audited as it stands in storage, published without Spark.

A log that never held anything takes the columns of the next attempt; one that does, those that ``plan.evolving`` leads to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from firnline.engine import staging
from firnline.engine.frames import frame_of, local, table_name
from firnline.engine.sharing import MOST_BYTES
from firnline.engine.staging import Column, Gathered, Watched
from firnline.errors import FirnlineError, Location
from firnline.incremental.relation import call, column, filtered, integer, named, project, small_integer
from firnline.model.description import Description, Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH, PART, collection_of
from firnline.plan.evolving import evolution
from firnline.runtime.attempt import Digests, Staged, approved, staged
from firnline.runtime.evaluation import difference_of, shape
from firnline.tables.evolving import evolve
from firnline.tables.log import PARTITION_BY, PARTS, START, Head, Log, bloom_filters, cut_by, cut_into, head_of
from firnline.tables.metadata import Metadata
from firnline.tables.port import Columns
from firnline.tables.sidecar import Input, Sidecar
from firnline.world import world

Renamed = Sequence[tuple[str, str]]
"""Old and new names of columns that hold the same."""
Find = Callable[[int, Callable[[], pa.Table], Sequence[str]], pa.Table | None]
"""Columns of the rows of a snapshot that have some keys, and perhaps of others; None if Spark has to find them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where rows go: sorted by ``keys`` inside the parts of ``partition_by``; ``is_keyed`` if the keys identify a row."""

    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    parts: int = 1
    is_keyed: bool = False
    looked_up: tuple[str, ...] = ()
    """Columns by whose values rows are looked up: files of a log that is created for it carry Bloom filters on them."""

    @classmethod
    def of(cls, table: Metadata) -> Placement:
        """Where the rows of a log go."""
        return cls(partition_by=cut_by(table), parts=cut_into(table))

    def as_properties(self) -> dict[str, str]:
        """What a log is created with; the number of parts changes when it is rescaled."""
        cut = {PARTITION_BY: json.dumps(self.partition_by), PARTS: str(self.parts)}
        return {**cut, **bloom_filters(self.looked_up)}


@dataclass(frozen=True)
class Destination:
    """A log that is ready to take the deltas of one epoch."""

    session: SparkSession
    log: Log
    table: str
    head: Head
    columns: tuple[Column, ...]
    placement: Placement
    find: Find | None = field(default=None, kw_only=True)
    """Finds rows of the log without Spark, where they can be looked up."""

    @classmethod
    def of(
        cls,
        session: SparkSession,
        log: Log,
        found: StructType,
        placement: Placement,
        start: int,
        where: Location,
        renamed: Renamed = (),
    ) -> Destination:
        """The log for rows of a schema: created if there is none, refused if it holds rows of one that nothing leads from."""
        table = log.load() or log.create(to_arrow_schema(found), placement.keys, start, placement.as_properties())
        stored = stored_in(session, table)
        complaint = _complaint(found, stored, renamed)
        refusal = FirnlineError("WRONG_COLUMNS", complaint, where) if complaint else _misplaced(log, table, placement, where)
        if head_of(table).snapshot is None:
            if refusal is not None or difference_of(found, stored):
                table = log.recreate(to_arrow_schema(found), placement.keys, start, placement.as_properties())
        elif refusal is not None:
            raise refusal
        else:
            table = evolved(session, log, table, found, renamed)
        return cls._on(session, log, table, placement)

    @classmethod
    def there(cls, session: SparkSession, log: Log, placement: Placement | None) -> Destination:
        """A log that is there, for rows of its own columns; placed as it has them if that is not said."""
        table = log.load()
        assert table is not None, "whoever asks has looked at it"
        return cls._on(session, log, table, placement or Placement.of(table))

    @classmethod
    def _on(cls, session: SparkSession, log: Log, table: Metadata, placement: Placement) -> Destination:
        columns = tuple(staging.columns_of(stored_in(session, table), table.columns))
        return cls(session, log, table_name(log.pipeline, log.collection), head_of(table), columns, placement)

    @property
    def names(self) -> list[str]:
        """The collection's columns, in the table's order."""
        return [column.name for column in self.columns]

    def before(self, epoch: Epoch, parts: Sequence[int] | None = None) -> Relation:
        """The weighted rows that the log holds before an epoch, of some parts or all."""
        return self._of_parts(self.stored_before(epoch), parts)

    def stored_before(self, epoch: Epoch) -> Relation:
        """The same rows as they are stored, bookkeeping included."""
        rows = named(self.table, {} if self.head.snapshot is None else {"versionAsOf": str(self.head.snapshot)})
        return filtered(rows, call("<", column(EPOCH), integer(epoch.lower)))

    def _of_parts(self, rows: Relation, parts: Sequence[int] | None) -> Relation:
        wanted = rows if parts is None else filtered(rows, call("in", column(PART), *map(small_integer, parts)))
        return project(wanted, map(column, (*self.names, DIFF)))

    def stage(
        self, delta: Relation, epoch: Epoch, generation: int, attempt: str, *, is_proven: bool = False, is_few: bool = False
    ) -> Staged | Verdict:
        """Write a delta beside the main line and audit it; a verdict if somebody else published the epoch meanwhile.

        With ``is_proven`` the plan shows that keys identify rows, and the data need not be asked. ``is_few`` says that
        few changes are to be expected: they are written from here.
        """
        rows = self._placed(delta, epoch)
        few = staging.gathered(rows, self.columns, epoch.lower) if is_few else None
        is_checked = few is None and self.placement.is_keyed and not is_proven
        watched = Watched.of(rows, self.placement.keys if is_checked else (), self.columns)

        def write() -> None:
            if few is None:
                staging.stage(self.session, watched.rows, self.table, attempt, epoch.lower)
            else:
                self.log.stage(attempt, epoch.lower, few.rows)

        def audit(snapshot: int) -> Digests:
            return self._audited(snapshot, epoch, few, watched, is_proven=is_proven)

        return staged(self.log, self.head, generation, epoch, attempt, write, audit)

    def stage_wave(self, delta: Relation, epoch: Epoch, attempt: str, wave: str, parts: tuple[int, ...] | None) -> None:
        """Write one wave of a delta, of some parts only if these are named; a retry finds it."""
        rows = self._placed(delta, epoch)
        rows = rows if parts is None else rows.where(F.col(PART).isin(*parts))
        staging.stage(self.session, rows, self.table, attempt, epoch.lower, wave)
        world().reach("wave.staged")

    def gather(
        self, waves: Sequence[int], epoch: Epoch, generation: int, attempt: str, *, is_proven: bool = False
    ) -> Staged | Verdict:
        """What ``stage`` gives, of waves that are staged already."""
        return staged(
            self.log,
            self.head,
            generation,
            epoch,
            attempt,
            lambda: self.log.gather(attempt, epoch.lower, waves),
            lambda snapshot: self._audited(snapshot, epoch, is_proven=is_proven),
        )

    def stage_named(self, name: Callable[[], None], epoch: Epoch, generation: int, attempt: str) -> Staged | Verdict:
        """What ``stage`` gives, of files that are there: ``name`` names them in a snapshot beside the main line."""
        return staged(
            self.log,
            self.head,
            generation,
            epoch,
            attempt,
            name,
            lambda snapshot: self._audited(snapshot, epoch),
        )

    def digests(self, delta: Relation, epoch: Epoch) -> Digests:
        """The digests that a delta will have once it is written."""
        return staging.digests(self._placed(delta, epoch), self.columns)

    def _audited(
        self, snapshot: int, epoch: Epoch, few: Gathered | None = None, watched: Watched | None = None, *, is_proven: bool = False
    ) -> Digests:
        """The digests of what is staged, if its keys are right."""
        stored = staging.epoch_rows(self.session, self.table, snapshot, epoch.lower)
        digests = staging.digests(stored, self.columns) if few is None else few.digests
        if self.placement.is_keyed and digests and not is_proven:
            total = sum(digests.values(), Digest())
            has_removals = total.rows != total.weight
            weights = None if few is None else self._looked_up(few.rows, has_removals=has_removals)
            if weights is None:
                where = (self.session, self.table, snapshot, epoch.lower, self.placement.keys, self.names)
                bounds = F.lit(True) if watched is None else watched.bounds()
                weights = staging.of_touched_keys(*where, bounds, is_first=self.head.snapshot is None)
            staging.check_keys(weights, self.placement.keys, self.names, has_removals=has_removals)
        return digests

    def _looked_up(self, rows: pa.Table, *, has_removals: bool) -> DataFrame | None:
        """An epoch's rows with those before it of the same keys, looked up; None if they cannot be."""
        if self.find is None or self.head.snapshot is None or not self.placement.keys:
            return None
        names = [*(self.names if has_removals else self.placement.keys), DIFF]
        found = self.find(self.head.snapshot, lambda: rows.select(list(self.placement.keys)), names)
        both = None if found is None else (found, rows.select(names))
        if both is None or sum(each.nbytes for each in both) > MOST_BYTES:
            return None
        before, own = (frame_of(self.session, local(each)) for each in both)
        return before.unionAll(own)

    def judged(self, generation: int, epoch: Epoch) -> Verdict:
        """Whether the epoch can still be published."""
        head = self.log.head()
        return Verdict.MOVED if head is None else head.description.judge(generation, self.head.description.upper, epoch.upper)

    def _placed(self, delta: Relation, epoch: Epoch | None) -> DataFrame:
        by, lower = self.placement, None if epoch is None else epoch.lower
        return staging.placed(frame_of(self.session, delta), self.columns, by.partition_by, by.parts, lower)

    def gathered(self, delta: Relation, first: Epoch, *, is_proven: bool = False) -> Gathered | None:
        """The rows of several epochs, of which ``first`` is the first, if they are few and keys identify rows after each."""
        few = staging.gathered(self._placed(delta, None), self.columns)
        if few is not None and few.rows.num_rows and self.placement.is_keyed and not is_proven:
            before = None if self.head.snapshot is None else self.before(first)
            staging.check_keys_throughout(self.session, before, few.rows, self.placement.keys, self.names)
        return few

    def when(self, epoch: Epoch) -> Destination:
        """The log as it will be when it ends where an epoch begins."""
        return replace(self, head=replace(self.head, description=self.head.description.advanced(epoch.lower)))

    def stage_few(self, few: Gathered, epoch: Epoch, generation: int, attempt: str) -> Staged | Verdict:
        """What ``stage`` gives, of rows that are here and of whose keys it is known that they are right."""
        if not few.rows.num_rows:
            return Staged(None, attempt, {})
        write = partial(self.log.stage, attempt, epoch.lower, few.rows)
        return staged(self.log, self.head, generation, epoch, attempt, write, lambda _: few.digests)

    def had_few(self) -> bool:
        """Whether the epoch before changed few rows."""
        return self.head.snapshot is not None and self.head.rows <= staging.FEW

    def approved(self, made: Staged, epoch: Epoch, generation: int, judge: Callable[[Staged], None]) -> Staged | Verdict:
        """What was staged, if it is judged well; a verdict if somebody else published the epoch meanwhile."""
        return approved(self.log, self.head, generation, epoch, made, judge)

    def publish(
        self,
        made: Staged,
        epoch: Epoch,
        generation: int,
        fingerprint: Fingerprint,
        inputs: Mapping[str, Input],
        seconds: float,
        determinants: Mapping[str, Any] = MappingProxyType({}),
    ) -> Verdict:
        """Publish what was staged, from where the log ended up to the epoch's end."""
        lower = self.head.description.upper
        sidecar = self.sidecar(made.attempt, made.digests, epoch, fingerprint, inputs, seconds, determinants)
        verdict = self.log.publish(generation, sidecar, made.snapshot, is_one=lower >= epoch.lower)
        if made.is_in_waves:
            self.log.sweep(epoch.lower)
        return verdict

    def sidecar(
        self,
        attempt: str,
        digests: Digests,
        epoch: Epoch,
        fingerprint: Fingerprint,
        inputs: Mapping[str, Input],
        seconds: float,
        determinants: Mapping[str, Any],
    ) -> Sidecar:
        """What is written down with rows, from where the log ended up to the epoch's end."""
        about = (self.log.collection, self.head.description.upper, epoch.upper, attempt)
        return Sidecar(*about, fingerprint, inputs, digests, seconds, determinants, parts=self.placement.parts)


@dataclass(frozen=True)
class Rewriting(Destination):
    """A log as it was before one of its epochs, for the rows of some of its parts to be made anew."""

    parts: tuple[int, ...] = ()
    merged: Epoch | None = None
    """The last epoch of a merged layer, if the rows are those of such: what the state has and no other layer before it holds."""

    @classmethod
    def at(cls, session: SparkSession, log: Log, epoch: Epoch, parts: tuple[int, ...], merged: Epoch | None = None) -> Rewriting:
        """The log of an epoch that it holds: read through its newest snapshot, as far as it reached then.

        The rows of a merged layer are made from the state after some epoch at its end or later.
        """
        table = log.load()
        assert table is not None, "whoever repairs a log has looked at it"
        name = table_name(log.pipeline, log.collection)
        columns = tuple(staging.columns_of(stored_in(session, table), table.columns))
        newest = head_of(table)
        before = next((entry for entry in log.entries() if entry.description.upper <= epoch.lower), None)
        start = Description(newest.description.generation, newest.description.since, int(table.properties[START]))
        head = Head(start, None, None) if before is None else Head(before.description, newest.snapshot, before.fingerprint)
        head = head if merged is None else newest
        is_own = collection_of(log.collection) == log.collection  # else it is what a stage keeps, or what a source set aside
        return cls(session, log, name, head, columns, replace(Placement.of(table), is_keyed=is_own), parts, merged)

    def before(self, epoch: Epoch, parts: Sequence[int] | None = None) -> Relation:
        """The weighted rows that the log holds before an epoch; of a merged layer, those of all others up to the epoch's end."""
        if self.merged is None:
            return Destination.before(self, epoch, parts)
        rows = named(self.table, {"versionAsOf": str(self.head.snapshot)})
        others = call("or", *(call(than, column(EPOCH), integer(self.merged.lower)) for than in ("<", ">")))
        return self._of_parts(filtered(filtered(rows, call("<", column(EPOCH), integer(epoch.upper))), others), parts)

    def check(self, found: StructType) -> None:
        """Refuse rows of other columns than the log's."""
        complaint = difference_of(found, StructType([StructField(each.name, each.kind) for each in self.columns]))
        if complaint:
            raise FirnlineError("REPLAY_DIFFERS", complaint)

    def stage(
        self, delta: Relation, epoch: Epoch, generation: int, attempt: str, *, is_proven: bool = False, is_few: bool = False
    ) -> Staged | Verdict:
        """Write the rows of the parts beside the main line; their digests are all the audit there is."""
        epoch = self.merged or epoch
        rows, seen = staging.narrowed(self._placed(delta, epoch), self.parts)
        made = self._written(rows, epoch, attempt)
        return replace(made, computed=int(seen.get.get("rows") or 0))

    def _written(self, rows: DataFrame, epoch: Epoch, attempt: str) -> Staged:
        try:
            staging.stage(self.session, rows, self.table, attempt, epoch.lower)
            world().reach("stage.written")
            snapshot = self.log.staged(attempt)
            table = self.log.load()
            assert table is not None
            parent = table.snapshots[snapshot].parent
            if parent is None:  # of a log that was just created
                stored = staging.epoch_rows(self.session, self.table, snapshot, epoch.lower)
            else:
                stored = staging.staged_rows(self.session, self.table, snapshot, parent)
            digests = staging.digests(stored, self.columns)
        except BaseException:
            self.log.discard(attempt)
            raise
        return Staged(snapshot, attempt, digests)


@dataclass(frozen=True)
class Rebuilding(Rewriting):
    """A log as if it held nothing, for all of its rows to be made anew, or only to be compared with what it holds."""

    is_written: bool = True

    @classmethod
    def beside(cls, ready: Destination, *, is_written: bool) -> Rebuilding:
        """The log that an epoch would go into."""
        table = ready.log.load()
        assert table is not None, "a destination has a table"
        start = Description(ready.head.description.generation, ready.head.description.since, int(table.properties[START]))
        parts = tuple(range(ready.placement.parts))
        place = (ready.table, Head(start, None, None), ready.columns, ready.placement, parts)
        return cls(ready.session, ready.log, *place, is_written=is_written)

    def before(self, epoch: Epoch, parts: Sequence[int] | None = None) -> Relation:
        """No rows, whatever the log holds."""
        none = filtered(named(self.table), call("<", column(EPOCH), integer(self.head.description.upper)))
        return self._of_parts(none, parts)

    def stage(
        self, delta: Relation, epoch: Epoch, generation: int, attempt: str, *, is_proven: bool = False, is_few: bool = False
    ) -> Staged | Verdict:
        """Write all rows beside the main line, or only add them up."""
        rows = self._placed(delta, epoch)
        if not self.is_written:
            return Staged(None, attempt, staging.digests(rows, self.columns))
        return self._written(rows, epoch, attempt)


def _misplaced(log: Log, table: Metadata, placement: Placement, where: Location) -> FirnlineError | None:
    """Why rows that are placed otherwise than a log's cannot go there; None if they are not."""
    stored = Placement.of(table)
    if stored.partition_by != placement.partition_by:
        what = f"the collection was created with partition_by={list(stored.partition_by)}, not {list(placement.partition_by)}"
        return FirnlineError("PLACEMENT_CHANGED", what, where)
    if stored.parts != placement.parts:
        what = f"the code says parts={placement.parts}, and the log of {log.collection!r} has {stored.parts}"
        rescale = f"firnline rescale {log.pipeline}.{collection_of(log.collection)} --parts {placement.parts}"
        return FirnlineError("PLACEMENT_CHANGED", what, where, todo=f"Run '{rescale}', or set parts={stored.parts} in the code.")
    return None


def _complaint(found: StructType, stored: StructType, renamed: Renamed) -> str | None:
    """Why rows of a schema cannot go into a log; None if they can, in columns that it may get for them."""
    needed = evolution(shape(stored), shape(found), renamed)
    return difference_of(found, stored) if needed.refused or needed.left_out else None


def evolved(session: SparkSession, log: Log, table: Metadata, found: StructType, renamed: Renamed) -> Metadata:
    """The log with the columns of a schema; as it is, if it has them."""

    def wanted(table: Metadata) -> Columns | None:
        needed = evolution(shape(stored_in(session, table)), shape(found), renamed)
        names = {new: old for old, new in needed.renamed}
        made = StructType([field for field in found.fields if field.name in (*needed.added, *needed.widened)])
        nullable = (names.get(field.name, field.name) for field in found.fields if field.nullable)
        optional = tuple(name for name in nullable if name in table.required)
        is_any = made.fields or needed.renamed or optional
        return Columns(to_arrow_schema(made), needed.renamed, optional) if is_any else None

    return table if wanted(table) is None else evolve(log.tables, log, world().new_id(), wanted)


def stored_in(session: SparkSession, table: Metadata) -> StructType:
    """Spark's schema of a log's own columns."""
    return _stored(session, table_name(table.pipeline, table.name), tuple(table.types.items()), table.required)


@lru_cache
def _stored(session: SparkSession, table: str, _columns: tuple[tuple[str, str], ...], _required: frozenset[str]) -> StructType:
    """Spark's schema of a log whose columns are of these types: asked once for all its epochs."""
    return StructType([field for field in session.table(table).schema.fields if field.name not in BOOKKEEPING])
