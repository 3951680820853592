"""A promotion that is killed anywhere: readers see all of it or nothing, and the same command finishes it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.failpoints import VARIABLE
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from firnline.settings import FILE
from tests.project import ROOT, environment, firnline, make_project
from tests.spark.running import rows, run_command

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    sums = fl.Pipeline("sums", schedule=1, start=0)

    @sums.source(keys=["k"])
    def numbers(epoch):
        return epoch.spark.createDataFrame([(10 * epoch.lower + n, n % 2) for n in range(4)], "k bigint, g bigint")

    @sums.stage(keys=["k"])
    def large(numbers):
        return numbers.where("k >= {least}")

    @sums.stage(keys=["g"])
    def totals(large):
        return large.groupBy("g").agg(F.sum("k").alias("k"))
"""
POINTS = ("stage.written", "publish.committed@4", "promote.published", "promote.completed", "frontier.committed@2")


def _totals(least: int, epochs: int) -> list[tuple[int, int]]:
    kept = [(n % 2, 10 * epoch + n) for epoch in range(epochs) for n in range(4) if 10 * epoch + n >= least]
    return [(group, sum(k for of, k in kept if of == group)) for group in (0, 1)]


@pytest.mark.nightly
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_promotion_is_finished_by_the_next(tmp_path: Path, point: str) -> None:
    project = make_project(tmp_path, (ROOT / FILE).read_text(), sums=PIPELINE.format(least=0))
    other = tmp_path / ".other"
    other.mkdir()
    make_project(other, sums=PIPELINE.format(least=2))
    assert run_command(project, "sums", "1").returncode == 0
    firnline(tmp_path, "branch", "create", "b", "--from", "1", "--code", str(other))
    firnline(tmp_path, "branch", "run", "b", "--json")
    make_project(tmp_path, (ROOT / FILE).read_text(), sums=PIPELINE.format(least=2))
    name, _, number = point.partition("@")
    armed = {**environment(), VARIABLE: f"{name}=kill" + (f"@{number}" if number else "")}
    command = [sys.executable, "-c", "from firnline.cli import main; main()", "promote", "b", "--json"]
    died = subprocess.run(command, cwd=tmp_path, env=armed, capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    project = Project.load(tmp_path)
    graph = project.graph("sums")
    assert rows(project, graph, "totals") in (_totals(0, 2), _totals(2, 3)), "all of it or nothing"
    firnline(tmp_path, "promote", "b", "--json")
    assert rows(project, graph, "totals") == _totals(2, 3)
    assert [entry.lower for entry in project.log("sums", "large").entries()] == [2, 1, 0]
    assert firnline(tmp_path, "promote", "b", "--json")["changed"] == []
    assert verify(project).problems == ()
