"""The benchmark of the incremental engine at a tiny scale: all engines and variants run, their answers are equal and reported."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from bench.incremental import report
from bench.incremental.duck import Duck
from bench.incremental.history import History
from bench.incremental.measure import Contest
from bench.incremental.ours import MODULE
from bench.incremental.suites import workload
from tests.project import make_project


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
