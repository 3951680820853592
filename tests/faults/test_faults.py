"""Every point at which a run may be interrupted x everything that may happen there, on real Spark and Iceberg.

A process of its own runs an epoch and meets the fault; then, or meanwhile, the same epoch is run again. Afterwards every epoch is
there exactly once, equal to what DuckDB makes of the same deliveries, and only what was not published is computed again. One kind
per point is tried with every change; at night, all of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import duckdb
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.failpoints import GATE, POINTS, VARIABLE, Kind
from firnline.runtime.project import Project
from firnline.settings import FILE
from firnline.tables.log import SIDECAR
from tests.project import ROOT, make_project
from tests.spark.running import java_below, rows, run_command, run_epoch

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
OVERTAKEN = "publish.lost"
"""Nobody comes here who is the only one."""
TRIED_ALWAYS: Kind = "kill"
_names = count()
Make = Callable[..., Project]
_PATIENCE = 120


def _cases() -> list[object]:
    cases = [(point, kind) for point, (_, kinds) in POINTS.items() for kind in kinds]
    return [pytest.param(*case, marks=() if case[1] == TRIED_ALWAYS else pytest.mark.nightly) for case in cases]


@pytest.mark.parametrize(("point", "kind"), _cases())
def test_an_epoch_is_there_once_and_right_after(
    point: str, kind: Kind, project: Make, spark: SparkSession, tmp_path: Path
) -> None:
    name = f"faults_{os.getpid()}_{next(_names)}"
    made = project(**{name: PIPELINE.format(name=name)})
    gate = tmp_path / "gate"
    overtaken = point == OVERTAKEN
    child = _started(made, spark, name, f"stage.audited=twice,{point}={kind}" if overtaken else f"{point}={kind}", gate)
    if overtaken:
        _until(gate.exists)
        _again(made, spark, name)
        gate.unlink()
    if kind in ("hang", "twice"):
        _until(gate.exists if kind == "twice" else lambda: _stands_still(child))
        _again(made, spark, name)
        if kind == "twice":
            gate.unlink()
        else:
            child.kill()
    said, complaint = child.communicate(timeout=_PATIENCE)
    if kind in ("kill", "hang"):
        assert child.returncode == -signal.SIGKILL, said + complaint
    elif kind != "raise":
        assert child.returncode == 0, said + complaint
    _again(made, spark, name)
    run_epoch(made, spark, name, "1")
    _check(made, name)


@pytest.mark.nightly
@pytest.mark.parametrize("point", [point for point in POINTS if point != OVERTAKEN])
def test_a_driver_that_dies_with_its_spark(point: str, tmp_path: Path) -> None:
    made = make_project(tmp_path, (ROOT / FILE).read_text(), cold=PIPELINE.format(name="cold"))
    assert run_command(made, "cold", "1", **{VARIABLE: f"{point}=kill"}).returncode == -signal.SIGKILL
    again = run_command(made, "cold", "1")
    assert again.returncode == 0, again.stdout + again.stderr
    _check(made, "cold")
    assert not java_below(tmp_path), "no driver is left"


def _started(made: Project, spark: SparkSession, name: str, fault: str, gate: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, VARIABLE: fault, GATE: str(gate)}
    command = [sys.executable, "-m", "tests.faults.child", str(made.settings.root), _remote(spark), name, "0"]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _remote(spark: SparkSession) -> str:
    builder = spark.client._builder
    return f"sc://{builder.endpoint}/;token={builder.get('token')}"


def _again(made: Project, spark: SparkSession, name: str) -> None:
    """The retry computes what was not published, and nothing else."""
    heads = {each: made.log(name, each).head() for each in COLLECTIONS}
    before = {each for each, head in heads.items() if head is not None and head.description.upper > 0}
    outcomes = run_epoch(made, spark, name, "0")
    assert {outcome.collection for outcome in outcomes if outcome.how == "kept"} == before
    assert {outcome.collection for outcome in outcomes} == set(COLLECTIONS)


def _check(made: Project, name: str) -> None:
    graph = made.graph(name)
    for epochs in (1, 2):
        expected = duckdb.sql(ORACLE.format(epochs=epochs)).fetchall()
        assert rows(made, graph, "totals", str(epochs - 1)) == sorted(expected)
    for each in made.catalog.names(name) - {"_frontier"}:
        log = made.log(name, each)
        entries = list(log.entries())
        assert [entry.lower for entry in entries] == [1, 0], each
        for entry in entries:
            assert log.sidecar(entry).attempt == entry.attempt
        table = log.load()
        assert table is not None
        left = [snapshot for snapshot in table.snapshots.values() if SIDECAR not in snapshot.summary]
        assert len(left) <= 1, "only what the interrupted attempt had staged may be left"
    assert made.flusher.drain(30)
    assert {(entry.collection, entry.lower) for entry in made.ledger.publications(name)} >= {("totals", 0), ("totals", 1)}
    frontier = made.control(name).frontier()
    assert frontier is not None
    assert frontier.upper == 2


def _stands_still(child: subprocess.Popen[str]) -> bool:
    """A hanging process tells nobody: it has started long ago, and nothing of it moves."""
    assert child.poll() is None, child.communicate()

    def ticks() -> int:
        status = Path(f"/proc/{child.pid}/stat").read_text().split()
        return int(status[13]) + int(status[14])

    before = ticks()
    time.sleep(3)
    return before > 200 and ticks() - before <= 2


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
