"""What people run instead, in the same Spark session with the same settings, on plain Iceberg tables of the current rows.

Full recompute and MERGE come in several variants; all are tried, the fastest is the baseline. Bringing the changes into the plain
tables is not measured, as ours is not. Changes are handed to MERGE as files; finding them costs it nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from bench.incremental.history import History
from bench.incremental.workload import Frames, Stage, Workload
from firnline.tables.catalog import Catalog

SPACE = "rivals"
_BUCKETS = 8
_IS_THERE = "_is_there"
_CO_PARTITIONED = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": "false",
}


@dataclass(frozen=True)
class Full:
    """A way to recompute everything and overwrite the result."""

    name: str
    is_bucketed: bool = False
    hint: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Merge:
    """A way to recompute the affected groups and bring them into the result."""

    name: str
    mode: str = "copy-on-write"
    is_statement: bool = True


FULL = (
    Full("as planned"),
    Full("shuffled hash join", hint="shuffle_hash"),
    Full("broadcast join", hint="broadcast"),
    Full("storage-partitioned, as planned", is_bucketed=True, conf=_CO_PARTITIONED),
    Full("storage-partitioned, hash join", is_bucketed=True, hint="shuffle_hash", conf=_CO_PARTITIONED),
)
UNHINTED = (
    Full("as planned"),
    Full(
        "hash joins",
        conf={"spark.sql.join.preferSortMergeJoin": "false", "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "256m"},
    ),
    Full("broadcast up to 256 MB", conf={"spark.sql.autoBroadcastJoinThreshold": "256m"}),
    Full("storage-partitioned", is_bucketed=True, conf=_CO_PARTITIONED),
)
MERGE = (
    Merge("merge, copy-on-write"),
    Merge("merge, merge-on-read", "merge-on-read"),
    Merge("delete + insert", is_statement=False),
)


class Rivals:
    """Plain Iceberg tables of a workload and what is computed from them."""

    def __init__(self, session: SparkSession, catalog: Catalog, workload: Workload, history: History) -> None:
        self._session = session
        self._catalog = catalog
        self._workload = workload
        self._history = history
        self._merged: dict[str, int] = {}
        """The last epoch that each target of MERGE has."""
        session.sql(f"create namespace if not exists lake.{SPACE}")

    @property
    def full(self) -> tuple[Full, ...]:
        """The variants of full recompute: a single join takes hints, a plan of many joins takes settings."""
        return FULL if self._workload.build_side else UNHINTED

    @property
    def merge(self) -> tuple[Merge, ...]:
        """The variants of MERGE; where it recomputes everything, they hardly differ."""
        return MERGE if self._workload.build_side else MERGE[:1]

    def ingest(self, epoch: int) -> None:
        """Bring an epoch's changes into the plain tables; every file is written anew, so that none has deletes to apply."""
        for name, table in self._workload.tables.items():
            self._ingest(name, epoch, is_bucketed=False)
            if table.partition_by:
                self._ingest(name, epoch, is_bucketed=True)

    def run_full(self, variant: Full, stage: Stage, epoch: int) -> float:
        """Recompute a stage and overwrite its result; the seconds it took."""
        del epoch
        began = time.monotonic()
        with self._set(variant.conf):
            frames = dict(self._tables(variant.is_bucketed, stage))
            side = self._workload.build_side
            if variant.hint and side:
                frames[side] = frames[side].hint(variant.hint)
            self._overwrite(stage.query(**frames), self._target(variant.name, stage), {})
        return time.monotonic() - began

    def run_merge(self, variant: Merge, stage: Stage, epoch: int) -> float:
        """Recompute the groups that an epoch affects and merge them into the result; the seconds it took.

        A result that lacks earlier epochs (the first time, or after a pause) is made anew before the clock starts.
        """
        target = self._target(variant.name, stage)
        if self._merged.get(target) != epoch - 1:
            modes = {f"write.{action}.mode": variant.mode for action in ("merge", "delete", "update")}
            self._overwrite(stage.query(**self._tables(False, stage)), target, modes)
        began = time.monotonic()
        rows, affected = self._recomputed(stage, epoch)
        rows.persist()
        try:
            self._bring(variant, target, stage, rows, is_whole=affected is None)
        finally:
            rows.unpersist()
            if affected is not None:
                affected.unpersist()
        seconds = time.monotonic() - began
        self._merged[target] = epoch
        return seconds

    def result(self, variant: Full | Merge, stage: Stage) -> pa.Table:
        """The rows of a variant's result."""
        _, space, name = self._target(variant.name, stage).split(".")
        return self._catalog.opened.load_table((space, name)).scan().to_arrow()

    def _recomputed(self, stage: Stage, epoch: int) -> tuple[DataFrame, DataFrame | None]:
        """The rows of all affected groups; a group that is gone has one that is marked so."""
        tables = self._tables(False, stage)
        if stage.affected is None or stage.restricted is None:
            return stage.query(**tables).withColumn(_IS_THERE, F.lit(True)), None
        changes = {name: self._session.read.parquet(str(self._history.file(epoch, name))) for name in stage.inputs}
        affected = stage.affected(changes, tables).persist()
        rows = stage.query(**stage.restricted(tables, affected)).withColumn(_IS_THERE, F.lit(True))
        return affected.join(rows, list(stage.keys), "left").select(*rows.columns), affected

    def _bring(self, variant: Merge, target: str, stage: Stage, rows: DataFrame, is_whole: bool) -> None:
        """As DataFrames: a MERGE statement over a temporary view of Iceberg tables is more than Spark 4.1 can plan."""
        columns = [name for name in rows.columns if name != _IS_THERE]
        name = target.rpartition(".")[2]
        on = " and ".join(f"{name}.{key} <=> s.{key}" for key in stage.keys) or "true"
        merge = rows.alias("s").mergeInto(target, F.expr(on))
        if variant.is_statement:
            values = {column: F.col(f"s.{column}") for column in columns}
            merge = merge.whenMatched(F.expr(f"s.{_IS_THERE} is null")).delete().whenMatched().update(values)
            merge = merge.whenNotMatched(F.expr(f"s.{_IS_THERE}")).insert(values)
        else:
            merge = merge.whenMatched().delete()
        (merge.whenNotMatchedBySource().delete() if is_whole else merge).merge()
        if not variant.is_statement:
            rows.where(_IS_THERE).select(*columns).writeTo(target).append()

    def _ingest(self, name: str, epoch: int, is_bucketed: bool) -> None:
        table = self._workload.tables[name]
        target = self._table(name, is_bucketed)
        changes = self._session.read.parquet(str(self._history.file(epoch, name)))
        inserted = changes.where("_diff > 0").drop("_diff")
        if epoch == 1:
            writer = inserted.writeTo(target).tableProperty("write.distribution-mode", "hash" if is_bucketed else "none")
            if is_bucketed:
                writer = writer.partitionedBy(F.partitioning.bucket(_BUCKETS, table.partition_by[0]))
            writer.createOrReplace()
        elif changes.count():
            keys = list(table.keys)
            kept = self._session.table(target).join(F.broadcast(changes.select(*keys).distinct()), keys, "left_anti")
            with self._set(_CO_PARTITIONED if is_bucketed else {}):
                kept.select(*inserted.columns).union(inserted).writeTo(target).overwrite(F.lit(True))

    def _overwrite(self, rows: DataFrame, target: str, properties: Mapping[str, str]) -> None:
        if self._session.catalog.tableExists(target):
            rows.writeTo(target).overwrite(F.lit(True))
            return
        writer = rows.writeTo(target).tableProperty("format-version", "2")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def _tables(self, is_bucketed: bool, stage: Stage) -> Frames:
        return {name: self._session.table(self._table(name, is_bucketed)) for name in stage.inputs}

    def _table(self, name: str, is_bucketed: bool) -> str:
        suffix = "_bucketed" if is_bucketed and self._workload.tables[name].partition_by else ""
        return f"lake.{SPACE}.{name}{suffix}"

    def _target(self, variant: str, stage: Stage) -> str:
        words = "".join(letter if letter.isalnum() else "_" for letter in variant)
        return f"lake.{SPACE}.{stage.name}__{words}"

    @contextmanager
    def _set(self, conf: Mapping[str, str]) -> Iterator[None]:
        for key, value in conf.items():
            self._session.conf.set(key, value)
        try:
            yield
        finally:
            for key in conf:
                self._session.conf.unset(key)
