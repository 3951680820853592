"""Benchmarks at a tiny scale: all that they compare runs, is equal and is reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from bench.dedup import measure as dedup
from bench.dedup import pipeline as dedup_pipeline
from bench.dedup import report as dedup_report
from bench.incremental import report
from bench.incremental.duck import Duck
from bench.incremental.history import History
from bench.incremental.measure import Contest
from bench.incremental.ours import MODULE
from bench.incremental.suites import workload
from bench.recovery import pipeline, repairs, retries
from bench.recovery import report as recovery_report
from tests.project import ROOT, make_project


def test_all_engines_agree_and_are_reported(lake: tuple[Path, SparkSession], tmp_path: Path) -> None:
    of = workload("tpch", 0.002)
    place = tmp_path / "bench"
    place.mkdir()
    history = History(place, of)
    module = MODULE.format(suite=of.suite, scale=of.scale, changes=history.folder)
    settings = f'work = "{lake[0]}"\nroots = ["{history.folder}"]\n'
    project = make_project(tmp_path / "project", settings, tpch=module)
    duck = Duck(place / "duck.db", of, history)
    contest = Contest(of, history, project, lake[1], duck, lambda _: None)
    contest.begin()
    cells = contest.cells(0.02, runs=1, warm_up=0)
    duck.close()
    assert [cell.differences for cell in cells] == [[]]
    assert all(len(series.seconds) == 1 for series in cells[0].series)
    assert {series.engine for series in cells[0].series} == {"ours", "full", "merge", "duckdb"}
    assert json.loads(json.dumps(report.document(cells, {})))["cells"][0]["equal"]
    assert [line[-1] for line in report.lines(cells)] == ["yes"]
    report.plot(cells, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_lost_files_and_ended_epochs_come_back_and_are_reported(
    lake: tuple[Path, SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few that the epoch is cut into as many waves as it can be, however long the epoch before it took.
    monkeypatch.setattr("firnline.runtime.waves.FEW", 2000 // retries.WAVES)
    shares = (0.5,)
    module = pipeline.MODULE.format(visits=2000, copies=retries.copies(1, shares))
    project = make_project(tmp_path, f'work = "{lake[0]}"\n', recovery=module)
    said: list[str] = []
    repaired = repairs.measured(project, lake[1], 1, said.append, lost_parts=(1, pipeline.PARTS), warm_up=0)
    assert [(each.lost, each.parts) for each in repaired[:2]] == [("joined", 1), ("joined", 16)]
    assert len(repaired) == 6
    assert [each.differences for each in repaired] == [[]] * 6
    assert all(sum(each.rows_lost) for each in repaired)
    assert [each.amplification for each in repaired[:2]] == [1.0, 1.0], "a part of a keyed join comes from the same parts"
    retried = retries.measured(project, lake[1], 1, said.append, shares=shares, has_warm_up=False)
    assert [each.differences for each in retried] == [[]] * 2
    assert all(waves >= retries.WAVES for each in retried for waves in each.waves)
    assert [each.kept for each in retried] == [[round(each.share * waves) for waves in each.waves] for each in retried]
    lines = [*recovery_report.repair_lines(repaired)], [*recovery_report.retry_lines(retried)]
    assert [{len(line) for line in some} for some in lines] == [{len(recovery_report.REPAIRS)}, {len(recovery_report.RETRIES)}]
    document = json.loads(json.dumps(recovery_report.document(repaired, retried)))
    assert [len(document[each]) for each in ("repairs", "retries")] == [6, 2]
    assert said


def test_ids_are_looked_up_and_reported(lake: tuple[Path, SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = dedup_pipeline.MODULE.format(seen=3000, new=300)
    project = make_project(tmp_path, f'work = "{lake[0]}"\n', dedup_bench=module)
    found = dedup.compared(project, lake[1], 3000, 300, 1, lambda _: None)
    assert found.differences == []
    assert [len(each.seconds) for case in found.cases for each in (case.ours, case.full)] == [1] * 4
    assert [len(line) for line in dedup_report.lines(found)] == [len(dedup_report.COLUMNS)] * 2
    assert json.loads(json.dumps(dedup_report.document(found)))["equal"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "command",
    [
        "overhead --rows 1000 --runs 1",
        "maintenance --rows 1000 --epochs 4",
        "whatif --rows 1000 --epochs 3 --runs 1",
        "catchup --epochs 3 --rows 50 --runs 1",
    ],
)
def test_a_command_runs_to_its_end(command: str) -> None:
    """What a command measures at its own size takes too long for a test; that it can be run, not."""
    called = [sys.executable, "-c", "from firnline.cli import main; main()", "bench", *command.split(), "--json"]
    ran = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)
