"""Every point at which a run may be interrupted x everything that may happen there, on real Spark and Iceberg.

A process of its own runs an epoch and meets the fault; then, or meanwhile, the same epoch is run again. Afterwards every epoch is
there exactly once, equal to what DuckDB makes of the same deliveries, and only what was not published is computed again. One kind
per point is tried with every change; at night, all of them.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.failpoints import GATE, POINTS, VARIABLE, Kind
from firnline.runtime.maintain import Planned, planned, tidied
from firnline.runtime.project import Project
from firnline.settings import FILE
from tests.faults.judging import PATIENCE, PIPELINE, Make, again, check, new_name, started, until
from tests.project import ROOT, make_project
from tests.spark.running import java_below, rows, run_command, run_epoch

OVERTAKEN = "publish.lost"
"""Nobody comes here who is the only one."""
EXPIRED = "expire.committed"
WAVED = "wave.staged"
_OTHERS = (
    "repair.",
    "safepoint.",
    "replicate.",
    "merge.",
    "trash.",
    "expire.",
    "undo.",
    "prune.",
    "erase.",
    "rescale.",
    "rewind.",
    "table.",
    "sink.",
    "branch.",
    "promote.",
    "schema.",
    "rename.",
)
OF_AN_EPOCH = [point for point in POINTS if point != WAVED and not point.startswith(_OTHERS)]
"""What is done beside epochs has tests of its own: ``test_work``, ``test_promote``; the rest of it elsewhere."""
MUCH = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, recovery_budget="0.001s")

    @{name}.source(keys=["id"])
    def numbers(epoch):
        return epoch.spark.range(epoch.lower * 300000, epoch.upper * 300000).selectExpr("id", "id % 100 g")

    @{name}.stage(keys=["g"])
    def totals(numbers):
        return numbers.groupBy("g").agg(F.sum("id").alias("total"))
"""
TRIED_ALWAYS: Kind = "kill"


def _cases() -> list[object]:
    return [_case(point, kind) for point in OF_AN_EPOCH for kind in POINTS[point][1]]


def _case(*case: str) -> object:
    return pytest.param(*case, marks=() if case[-1] == TRIED_ALWAYS else pytest.mark.nightly)


@pytest.mark.parametrize(("point", "kind"), _cases())
def test_an_epoch_is_there_once_and_right_after(
    point: str, kind: Kind, project: Make, spark: SparkSession, tmp_path: Path
) -> None:
    name = new_name()
    made = project(**{name: PIPELINE.format(name=name)})
    gate = tmp_path / "gate"
    overtaken = point == OVERTAKEN
    child = started(made, spark, name, f"stage.audited=twice,{point}={kind}" if overtaken else f"{point}={kind}", gate)
    if overtaken:
        until(gate.exists)
        again(made, spark, name)
        gate.unlink()
    if kind in ("hang", "twice"):
        until(gate.exists)
        again(made, spark, name)
        if kind == "twice":
            gate.unlink()
        else:
            child.kill()
    said, complaint = child.communicate(timeout=PATIENCE)
    if kind in ("kill", "hang"):
        assert child.returncode == -signal.SIGKILL, said + complaint
    elif kind != "raise":
        assert child.returncode == 0, said + complaint
    again(made, spark, name)
    run_epoch(made, spark, name, "1")
    check(made, name)


@pytest.mark.parametrize("kind", [_case(kind) for kind in POINTS[WAVED][1]])
def test_a_retry_computes_only_the_waves_that_were_not_staged(
    kind: Kind, project: Make, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_name()
    made = project(**{name: MUCH.format(name=name)})
    gate = tmp_path / "gate"
    child = started(made, spark, name, f"{WAVED}={kind}@2", gate)
    if kind in ("hang", "twice"):
        until(gate.exists)
    elif kind in ("kill", "raise"):
        child.communicate(timeout=PATIENCE)
    if kind != "delay":
        with caplog.at_level(logging.INFO):
            run_epoch(made, spark, name, "0")
        assert "2 of 3 waves kept" in caplog.text
        assert caplog.text.count("is staged") == 1
    if kind == "twice":
        gate.unlink()
    if kind == "hang":
        child.kill()
    said, complaint = child.communicate(timeout=PATIENCE)
    assert kind in ("kill", "raise", "hang") or child.returncode == 0, said + complaint
    run_epoch(made, spark, name, "0")
    run_epoch(made, spark, name, "1")
    expected = [(g, sum(range(g, 600_000, 100))) for g in range(100)]
    assert sorted(rows(made, made.graph(name), "totals")) == expected
    assert _left(made, name) == [], "no wave is left"


@pytest.mark.parametrize("kind", [_case(kind) for kind in POINTS[EXPIRED][1]])
def test_maintenance_is_done_after(kind: Kind, project: Make, spark: SparkSession, tmp_path: Path) -> None:
    name = new_name()
    made = project(**{name: PIPELINE.format(name=name)})
    started(made, spark, name, "stage.written=kill", tmp_path / "gate").communicate(timeout=PATIENCE)
    assert _left(made, name) == [], "while its epoch is not published, staging is of use"
    again(made, spark, name)
    (left,) = _left(made, name)
    assert left.snapshots == 1
    child = _maintaining(made, name, f"{EXPIRED}={kind}", tmp_path / "gate")
    if kind in ("hang", "twice"):
        until((tmp_path / "gate").exists)
        assert _expired(made, name) == 0
        (tmp_path / "gate").unlink() if kind == "twice" else child.kill()
    said, complaint = child.communicate(timeout=PATIENCE)
    assert child.returncode == (-signal.SIGKILL if kind in ("kill", "hang") else 0), said + complaint
    assert _expired(made, name) == 0
    run_epoch(made, spark, name, "1")
    check(made, name)


def _left(made: Project, name: str) -> list[Planned]:
    """What would be dropped if there were no grace time."""
    return [step for step in planned(made, made.graph(name), timedelta()) if step.what == "expire"]


def _expired(made: Project, name: str) -> int:
    return sum(done.step.snapshots for done in tidied(made, made.graph(name), timedelta()))


def _maintaining(made: Project, name: str, fault: str, gate: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), VARIABLE: fault, GATE: str(gate)}
    command = [sys.executable, "-c", "from firnline.cli import main; main()", "maintain", name, "--grace", "0s"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=made.settings.root, env=environment, text=True, **pipes)


@pytest.mark.nightly
@pytest.mark.parametrize("point", [point for point in OF_AN_EPOCH if point != OVERTAKEN])
def test_a_driver_that_dies_with_its_spark(point: str, tmp_path: Path) -> None:
    made = make_project(tmp_path, (ROOT / FILE).read_text(), cold=PIPELINE.format(name="cold"))
    assert run_command(made, "cold", "1", **{VARIABLE: f"{point}=kill"}).returncode == -signal.SIGKILL
    retried = run_command(made, "cold", "1")
    assert retried.returncode == 0, retried.stdout + retried.stderr
    check(made, "cold")
    assert not java_below(tmp_path), "no driver is left"
