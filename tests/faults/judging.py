"""The pipeline that is made to fail, its retry, and what must be true of it at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import duckdb
from pyspark.sql.connect.session import SparkSession

from firnline.failpoints import GATE, VARIABLE
from firnline.runtime.project import Project
from firnline.tables.metadata import SIDECAR
from tests.project import ROOT
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["k"], parts=2)
    def numbers(epoch):
        assert epoch.logged("outside", lambda: 10) == 10
        rows = [(epoch.lower * 10 + n, n % 3, float(n)) for n in range(10)]
        return epoch.spark.createDataFrame(rows, "k bigint, g bigint, x double")

    @{name}.stage(keys=["g"])
    def totals(numbers):
        return numbers.groupBy("g").agg(F.sum("x").alias("x"), F.count("*").alias("n"))
"""
ORACLE = """
    SELECT n % 3 AS g, sum(n::DOUBLE) AS x, count(*) AS n
    FROM range(10) AS numbers(n), range({epochs}) GROUP BY ALL ORDER BY ALL
"""
COLLECTIONS = ("numbers", "totals")
PATIENCE = 120
"""Seconds."""
Make = Callable[..., Project]
_names = count()


def new_name() -> str:
    """A pipeline's name that no other test has."""
    return f"faults_{os.getpid()}_{next(_names)}"


def again(made: Project, spark: SparkSession, name: str) -> None:
    """The retry computes what was not published, and nothing else."""
    heads = {each: made.log(name, each).head() for each in COLLECTIONS}
    before = {each for each, head in heads.items() if head is not None and head.description.upper > 0}
    outcomes = run_epoch(made, spark, name, "0")
    assert {outcome.collection for outcome in outcomes if outcome.how == "kept"} == before
    assert {outcome.collection for outcome in outcomes} == set(COLLECTIONS)


def check(made: Project, name: str, epochs: int = 2) -> None:
    """Every epoch is there exactly once, right, and known to readers and the ledger."""
    graph = made.graph(name)
    for upper in range(1, epochs + 1):
        expected = duckdb.sql(ORACLE.format(epochs=upper)).fetchall()
        assert rows(made, graph, "totals", str(upper - 1)) == sorted(expected)
    for each in made.catalog.names(name) - {"_frontier"}:
        log = made.log(name, each)
        entries = list(log.entries())
        assert [entry.lower for entry in entries] == list(reversed(range(epochs))), each
        for entry in entries:
            assert log.sidecar(entry).attempt == entry.attempt
        table = log.load()
        assert table is not None
        left = [snapshot for snapshot in table.snapshots.values() if SIDECAR not in snapshot.summary]
        assert len(left) <= 1, "only what the interrupted attempt had staged may be left"
    assert made.flusher.drain(30)
    known = {(entry.collection, entry.lower) for entry in made.ledger.publications(name)}
    assert known >= {("totals", lower) for lower in range(epochs)}
    frontier = made.control(name).frontier()
    assert frontier is not None
    assert frontier.upper == epochs


def remote(spark: SparkSession) -> str:
    """Where another process finds the Spark of this one."""
    builder = spark.client._builder
    return f"sc://{builder.endpoint}/;token={builder.get('token')}"


def started(made: Project, spark: SparkSession, name: str, fault: str, gate: Path, act: str = "run") -> subprocess.Popen[str]:
    """Something done to a pipeline in a process of its own, which meets a fault."""
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, VARIABLE: fault, GATE: str(gate)}
    command = [sys.executable, "-m", "tests.faults.child", str(made.settings.root), remote(spark), name, act]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something, not for ever."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
