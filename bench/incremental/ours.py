"""Firnline's side: a project of its own in the work folder, run by the code that ``firnline run`` runs.

Everything is on: Connect, staged snapshots, digests, key checks, the ledger. What is measured is a stage's ``advance`` through
one epoch; what sources take to ingest the same changes is told beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import firnline as fl
from bench.incremental.workload import Stage, Workload
from bench.project import project_in
from bench.tpch.data import day
from firnline.engine.reading import SourceEpoch
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance, complete
from firnline.runtime.project import Project
from firnline.tables import scan

_DAY = 86_400_000_000
_SETTINGS = """\
# The same for all that run in this session: Firnline, full recompute, MERGE.
roots = ["{changes}"]
spark_master = "local[2]"
spark_memory = "8g"
spark_shuffle_partitions = 4
concordance = true
"""
MODULE = """\
from bench.incremental.ours import declared
from bench.incremental.suites import workload

{suite} = declared(workload("{suite}", {scale}), "{changes}")
"""


def project_of(root: Path, workload: Workload, changes: Path, jars: Path) -> Project:
    """The project of a workload."""
    words = {"suite": workload.suite, "scale": workload.scale, "changes": changes}
    return project_in(root, _SETTINGS.format(**words), workload.suite, MODULE.format(**words), jars)


def declared(workload: Workload, changes: str) -> fl.Pipeline:
    """A workload as a pipeline."""
    pipeline = fl.Pipeline(workload.suite, schedule="@daily", start=day(1))
    for name, table in workload.tables.items():
        pipeline.source(keys=table.keys, partition_by=table.partition_by or table.keys, parts=table.parts)(_source(name, changes))
    for stage in workload.stages.values():
        stage.query.__name__ = stage.name
        parts = max(workload.tables[name].parts for name in stage.inputs) if workload.build_side else 1
        pipeline.stage(keys=stage.keys, parts=parts, refresh="incremental")(stage.query)
    return pipeline


def _source(table: str, changes: str) -> Callable[[SourceEpoch], DataFrame]:
    def read(epoch: SourceEpoch) -> DataFrame:
        found = from_arrow_schema(pq.read_schema(f"{changes}/{day(1)}/{table}.parquet"))
        return epoch.files(changes + "/{epoch:%Y-%m-%d}/" + table + ".parquet", format="parquet", schema=found)

    read.__name__ = table
    return read


class Ours:
    """A Firnline pipeline, epoch by epoch."""

    def __init__(self, project: Project, workload: Workload, session: SparkSession) -> None:
        self._project = project
        self._declared = project.declared(workload.suite)
        self._session = session
        self._workload = workload

    def ingest(self, epoch: int) -> float:
        """Let the sources take in an epoch; the seconds it took."""
        began = time.monotonic()
        for table in self._workload.tables:
            self._advance(table, epoch)
        return time.monotonic() - began

    def run(self, stage: Stage, epoch: int) -> float:
        """Advance a stage through an epoch; the seconds it took."""
        began = time.monotonic()
        self._advance(stage.name, epoch)
        return time.monotonic() - began

    def complete(self, epoch: int) -> float:
        """Let readers see the epoch; the seconds it took."""
        began = time.monotonic()
        complete(self._project, self._declared.graph, self._epoch(epoch))
        return time.monotonic() - began

    def result(self, stage: Stage, epoch: int) -> pa.Table:
        """A stage's rows after an epoch."""
        table = self._project.catalog.iceberg(self._workload.suite, stage.name)
        return scan.state(table, self._epoch(epoch).upper)

    def _advance(self, name: str, epoch: int) -> None:
        list(advance(self._project, self._declared, self._session, name, self._epoch(epoch)))

    def _epoch(self, number: int) -> Epoch:
        start = self._declared.graph.schedule.start
        return Epoch(start + (number - 1) * _DAY, start + number * _DAY)
