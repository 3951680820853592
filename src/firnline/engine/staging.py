"""Staging: Spark writes a delta as a snapshot beside the main line, and what was written is read back and judged.

The staged snapshot stands on the head, so reading it shows the state that publishing it would lead to.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as PysparkColumn
from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
)

from firnline.engine.frames import arrow_of, deltas, frame_of, relation_of
from firnline.engine.hashing import digest_columns, digest_of, digests_of, hash_columns, part_of
from firnline.errors import FirnlineError
from firnline.incremental.algebra import ALWAYS
from firnline.incremental.relation import call, column, consolidated, filtered, integer, named, union
from firnline.model.digest import Digest
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH, PART, quoted

_WAP = "spark.wap.id"
# The id is a setting of the session: of two threads that share one, the second must not write under, or without, the first's.
_STAGING = threading.Lock()
_SAMPLE = 5
_ORDERED = (IntegralType, DecimalType, StringType)
_REPLACED = "\ufffd"
"""What stands for bytes that are no text once Spark has told of them."""
FEW = 100_000
"""So many rows are quicker handled by one task than brought together from several."""


@dataclass(frozen=True, slots=True)
class Column:
    """A user's column of a log: Iceberg's field id, its name, Spark's type."""

    field: int
    name: str
    kind: DataType


def placed(delta: DataFrame, columns: Sequence[Column], partition_by: Sequence[str], parts: int, epoch: int | None) -> DataFrame:
    """The delta with its bookkeeping columns, in the order of the table; narrower types become the table's.

    Without ``epoch`` its rows are of several, and say which.
    """
    kinds = {column.name: column.kind for column in columns}
    return delta.select(
        *(settled(F.col(quoted(column.name)), column.kind).cast(column.kind).alias(column.name) for column in columns),
        (F.col(EPOCH) if epoch is None else F.lit(epoch)).cast("bigint").alias(EPOCH),
        F.col(DIFF).cast("bigint").alias(DIFF),
        part_of([(name, kinds[name]) for name in partition_by], parts).alias(PART),
    )


def settled(value: PysparkColumn, kind: DataType) -> PysparkColumn:
    """A value without -0.0: whoever groups rows, or reads them without Spark, has 0.0, and texts tell them apart."""
    match kind:
        case FloatType() | DoubleType():
            return value + F.lit(0.0)
        case ArrayType(elementType=element) if _has_floats(element):
            return F.transform(value, lambda each: settled(each, element))
        case MapType(valueType=of) if _has_floats(of):  # its keys Spark settles itself
            return F.transform_values(value, lambda _, each: settled(each, of))
        case StructType(fields=fields) if _has_floats(kind):
            members = (settled(value.getField(each.name), each.dataType).alias(each.name) for each in fields)
            return F.when(value.isNotNull(), F.struct(*members))
    return value


def _has_floats(kind: DataType) -> bool:
    return any(word in kind.simpleString() for word in ("float", "double"))


def stage(
    session: SparkSession,
    rows: DataFrame,
    table: str,
    attempt: str,
    lower: int,
    wave: str | None = None,
    kind: str | None = None,
) -> None:
    """Write rows as a staged snapshot that carries the attempt's id and epoch.

    And its wave, if it is only one of several, or what kind of exchange it is for.
    """
    optional = {name: value for name, value in (("wave", wave), ("kind", kind)) if value is not None}
    carried = {"attempt": attempt, "lower": str(lower), **optional}
    writer = rows.writeTo(table).options(**{f"snapshot-property.firnline.{name}": value for name, value in carried.items()})
    with _STAGING:
        session.conf.set(_WAP, attempt)
        try:
            writer.append()
        finally:
            session.conf.unset(_WAP)


def narrowed(rows: DataFrame, parts: Sequence[int]) -> tuple[DataFrame, Observation]:
    """The rows of some parts; once they are written, the observation says how many there were of all parts."""
    seen = Observation()
    return rows.observe(seen, F.sum(F.abs(DIFF)).alias("rows")).where(F.col(PART).isin(*parts)), seen


def staged_rows(session: SparkSession, table: str, snapshot: int, parent: int) -> DataFrame:
    """The rows that a staged snapshot brought, without any of what it stands on.

    By ``load``: of a table that a plan reads by ``table`` with several options, Spark reads only what the first ones say.
    """
    options = {"start-snapshot-id": str(parent), "end-snapshot-id": str(snapshot)}
    return session.read.format("iceberg").options(**options).load(table)


def merged(session: SparkSession, table: str, snapshot: int, lower: int, upper: int, epoch: int) -> DataFrame:
    """The rows of [lower, upper) as those of one epoch: equal ones as one, with the sum of their weights."""
    rows = deltas(session, table, snapshot, upper).where(F.col(EPOCH) >= lower)
    names = [name for name in rows.columns if name not in (EPOCH, DIFF)]
    summed = frame_of(session, consolidated(relation_of(rows.drop(EPOCH)), names))
    users = (F.col(quoted(name)) for name in names if name != PART)
    return summed.select(*users, F.lit(epoch).cast("bigint").alias(EPOCH), DIFF, PART)


def recut(rows: DataFrame, columns: Sequence[Column], partition_by: Sequence[str], parts: int) -> DataFrame:
    """Rows of a log as they are, each in its part of another number of parts."""
    kinds = {column.name: column.kind for column in columns}
    return rows.withColumn(PART, part_of([(name, kinds[name]) for name in partition_by], parts))


def waves(table: str, snapshots: Sequence[int], epoch: int) -> Relation:
    """The rows of an epoch that several staged snapshots brought."""
    each = (named(table, {"versionAsOf": str(snapshot)}) for snapshot in snapshots)
    return union(*(filtered(rows, call("==", column(EPOCH), integer(epoch))) for rows in each))


def digests(rows: DataFrame, columns: Sequence[Column]) -> dict[tuple[int, int], Digest]:
    """The digest of each (epoch, part) of rows of a log, as they stand in storage."""
    hashed = rows.select(EPOCH, PART, DIFF, *hash_columns(_fields(columns)).values())
    found = hashed.groupBy(EPOCH, PART).agg(*digest_columns().values()).collect()
    return {(row[EPOCH], row[PART]): digest_of(row.asDict()) for row in found}


@dataclass(frozen=True)
class Gathered:
    """Few rows that Spark handed over, and the digest of each (epoch, part) of them."""

    rows: pa.Table
    digests: dict[tuple[int, int], Digest]

    def of(self, epoch: int) -> Gathered:
        """Those of one epoch."""
        own = self.rows.filter(pc.field(EPOCH) == epoch)
        return Gathered(own, {key: digest for key, digest in self.digests.items() if key[0] == epoch})


NOTHING = Gathered(pa.table({EPOCH: pa.array([], pa.int64())}), {})


def gathered(rows: DataFrame, columns: Sequence[Column], epoch: int | None = None) -> Gathered | None:
    """Rows of a log, computed by Spark and written by whoever asks; None if there are more than a few.

    A write by Spark and a look at what was written are two jobs more than the one that computes the rows. If all are of one
    ``epoch``, Spark need not know which: it compiles a plan anew in which a number is another one.
    """
    hashes = hash_columns(_fields(columns))
    asked = rows if epoch is None else rows.drop(EPOCH)
    found = arrow_of(asked.select("*", *hashes.values()).limit(FEW + 1))
    if found.num_rows > FEW:
        return None
    if epoch is not None:
        found = found.add_column(len(columns), EPOCH, pa.repeat(pa.scalar(epoch, pa.int64()), found.num_rows))
    return Gathered(found.drop_columns(list(hashes)), digests_of(found, (EPOCH, PART)))


def _fields(columns: Sequence[Column]) -> list[tuple[int, str, DataType]]:
    return [(column.field, column.name, column.kind) for column in columns]


@dataclass(frozen=True)
class Watched:
    """Rows whose keys are watched while they are written: a least and a greatest value stay the same when a task is run again."""

    rows: DataFrame
    keys: tuple[str, ...] = ()
    seen: Observation | None = None

    @classmethod
    def of(cls, rows: DataFrame, keys: Sequence[str], columns: Sequence[Column]) -> Watched:
        """Rows, watched in those of their keys whose order files are pruned by as Spark has it."""
        kinds = {column.name: column.kind for column in columns}
        watched = tuple(key for key in keys if isinstance(kinds[key], _ORDERED))
        if not watched:
            return cls(rows)
        seen = Observation()
        found: list[PysparkColumn] = []
        for at, key in enumerate(F.col(quoted(key)) for key in watched):
            found += [F.min(key).alias(f"least_{at}"), F.max(key).alias(f"most_{at}"), F.max(key.isNull()).alias(f"nulls_{at}")]
        return cls(rows.observe(seen, *found), watched, seen)

    def bounds(self) -> PysparkColumn:
        """What is true of all keys that were written; always true if nothing is known of them."""
        seen = {} if self.seen is None else self.seen.get
        known = [
            at
            for at, _ in enumerate(self.keys)
            if seen.get(f"nulls_{at}") is not None and not any(_REPLACED in str(seen[f"{end}_{at}"]) for end in ("least", "most"))
        ]
        return reduce(and_, (self._bound(at, seen) for at in known), F.lit(True))

    def _bound(self, at: int, seen: Mapping[str, Any]) -> PysparkColumn:
        key, least, most = F.col(quoted(self.keys[at])), seen[f"least_{at}"], seen[f"most_{at}"]
        inside = F.lit(False) if least is None else key.between(F.lit(least), F.lit(most))
        return inside | key.isNull() if seen[f"nulls_{at}"] else inside


def of_touched_keys(
    session: SparkSession,
    table: str,
    snapshot: int,
    epoch: int,
    keys: Sequence[str],
    columns: Sequence[str],
    bounds: PysparkColumn,
    *,
    is_first: bool,
) -> DataFrame:
    """The weighted rows, up to a staged epoch, of all keys that it touches; of the log's first epoch, its own rows.

    ``bounds`` is true of these keys: whole files of others are not read.
    """
    weights = deltas(session, table, snapshot, epoch + 1).select(*(F.col(quoted(name)) for name in columns), DIFF)
    if not keys or is_first:
        return weights
    weights = weights.where(bounds)
    touched = epoch_rows(session, table, snapshot, epoch).select(*(F.col(quoted(key)) for key in keys))
    matching = [weights[quoted(key)].eqNullSafe(touched[quoted(key)]) for key in keys]
    return weights.join(touched, reduce(and_, matching), "left_semi")


def check_keys(weights: DataFrame, keys: Sequence[str], columns: Sequence[str], *, has_removals: bool) -> None:
    """Refuse an epoch after which a key would have two rows, or a row a negative weight.

    Args:
        weights: The weighted rows of all keys that it touches.
        keys: The columns that identify a row.
        columns: All of them. Without removals no weight can be negative, so that only the keys are read.
        has_removals: Whether the epoch removes rows.
    """
    on = [F.col(quoted(key)) for key in keys]
    least = F.lit(0)
    if has_removals:
        least = F.min(DIFF)
        weights = weights.groupBy(*(F.col(quoted(name)) for name in columns)).agg(F.sum(DIFF).alias(DIFF))
    wrong: list[Any] = (
        weights.groupBy(*on)
        .agg(F.sum(DIFF).alias("_firnline_rows"), least.alias("_firnline_least"))
        .where("_firnline_rows > 1 OR _firnline_least < 0")
        .limit(_SAMPLE)
        .collect()
    )
    if wrong:
        sample = "; ".join(", ".join(f"{key}={row[key]!r}" for key in keys) for row in wrong) or "(none)"
        if any(row["_firnline_least"] < 0 for row in wrong):
            raise FirnlineError("NEGATIVE_WEIGHT", f"rows are removed that are not there, for the keys {sample}")
        raise FirnlineError("KEY_NOT_UNIQUE", f"several rows have the same keys {tuple(keys)}: {sample}")


def check_keys_throughout(
    session: SparkSession, before: Relation | None, changes: pa.Table, keys: Sequence[str], columns: Sequence[str]
) -> None:
    """Refuse changes of several epochs after one of which a key would have two rows, or a row a negative weight.

    Args:
        session: Of Spark.
        before: The weighted rows before the first of the epochs; None if there are none.
        changes: Those of the epochs.
        keys: The columns that identify a row.
        columns: All of them.
    """
    names, on = ([F.col(quoted(name)) for name in several] for several in (columns, keys))
    given = session.createDataFrame(changes).select(*names, DIFF, EPOCH)
    weights = given
    if before is not None:
        rows = frame_of(session, before).select(*names, DIFF, F.lit(ALWAYS).cast("bigint").alias(EPOCH))
        touched = given.select(*on).distinct()
        matching = [rows[quoted(key)].eqNullSafe(touched[quoted(key)]) for key in keys]
        weights = weights.unionAll(rows.join(F.broadcast(touched), reduce(and_, matching), "left_semi") if keys else rows)

    def throughout(by: Sequence[PysparkColumn]) -> DataFrame:
        at_each = weights.groupBy(*by, EPOCH).agg(F.sum(DIFF).alias(DIFF))
        order = Window.partitionBy(*by).orderBy(EPOCH).rowsBetween(Window.unboundedPreceding, Window.currentRow)
        return at_each.select(F.sum(DIFF).over(order).alias("so_far"))

    wrong = throughout(on).where("so_far > 1")
    if pc.any(pc.less(changes[DIFF], 0)).as_py():
        wrong = wrong.unionAll(throughout(names).where("so_far < 0"))
    if wrong.limit(1).collect():
        raise FirnlineError(
            "KEY_NOT_UNIQUE", f"several rows have the same keys {tuple(keys)}, or a row is removed that is not there"
        )


def epoch_rows(session: SparkSession, table: str, snapshot: int, epoch: int) -> DataFrame:
    """The rows of one epoch as a snapshot holds them."""
    return deltas(session, table, snapshot, epoch + 1).where(F.col(EPOCH) == epoch)


def columns_of(schema: StructType, fields: Mapping[str, int]) -> list[Column]:
    """The user's columns of a log as Spark has them, under Iceberg's field ids."""
    return [Column(fields[field.name], field.name, field.dataType) for field in schema.fields if field.name not in BOOKKEEPING]
