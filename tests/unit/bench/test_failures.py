"""What Spark's event log says about a kill, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.failures import report
from bench.failures.events import Replay, events, replay_after
from bench.failures.measure import Found, Kill, Loss, Slow
from bench.failures.pipeline import CONTRACTS, COPIES, SOURCES, declared
from firnline.model.graph import check


def removed(at: int) -> dict[str, Any]:
    return {"Event": "SparkListenerExecutorRemoved", "Timestamp": at, "Executor ID": "1"}


def task(at: int, attempt: int = 0, stage_attempt: int = 0) -> dict[str, Any]:
    info = {"Attempt": attempt, "Launch Time": at}
    return {"Event": "SparkListenerTaskStart", "Stage Attempt ID": stage_attempt, "Task Info": info}


def test_a_replay_is_a_task_that_is_started_again() -> None:
    told = [removed(9_000), task(9_500, attempt=1), task(10_050), removed(10_100), task(10_200), task(10_400, attempt=1)]
    assert replay_after(told, 10.0, 20.0) == Replay(0.1, 0.4)
    assert replay_after([*told, task(10_300, stage_attempt=1)], 10.0, 20.0).again == 0.3
    assert replay_after(told, 11.0, 20.0) == Replay(None, None)
    assert replay_after([task(30_000, attempt=1)], 10.0, 20.0) == Replay(None, None), "of another experiment"


def test_the_next_driver_replays_with_its_first_task() -> None:
    assert replay_after([task(9_000), task(17_000)], 10.0, 20.0, is_driver=True) == Replay(None, 7.0)


def test_a_driver_that_is_killed_leaves_half_a_line(tmp_path: Path) -> None:
    (tmp_path / "app-1.inprogress").write_text(json.dumps(task(1)) + "\n" + '{"Event": "Spark')
    (tmp_path / "app-2").write_text(json.dumps(task(2)) + "\n")
    assert sorted(each["Task Info"]["Launch Time"] for each in events(tmp_path)) == [1, 2]


def test_every_figure_is_told() -> None:
    kill = Kill("one of three workers", 12.0, 8.0, 5, 5, 100.0, 112.0, Replay(0.1, None))
    found = Found([kill], [Loss("gap", 1.0, 8.0, 10, 0, 10, "a gap")], [Slow(True, 9.0, 8.0)])
    lines = (report.kill_lines(found), report.loss_lines(found), report.slow_lines(found))
    for columns, told in zip((report.KILLS, report.LOSSES, report.SLOW), lines, strict=True):
        assert [len(line) for line in told] == [len(columns)]
    document = json.loads(json.dumps(report.document(found)))
    assert document["equal"]
    assert document["kills"][0]["replay"] == {"noticed": 0.1, "again": None}


def test_each_experiment_has_a_copy_and_each_contract_one() -> None:
    pipeline = declared(1000)
    graph = check(pipeline, dict.fromkeys((*SOURCES, *COPIES), "f" * 32))
    assert {each.name for each in graph.collections} == {*SOURCES, *COPIES}
    assert {name: graph.collection(name).on_loss for name in CONTRACTS} == CONTRACTS
    assert set(CONTRACTS.values()) == {"fail", "gap", "replay"}
