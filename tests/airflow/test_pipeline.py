"""The main job through Airflow: one run per epoch, and no order, repetition or interruption of runs changes a row."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from firnline.airflow.api import FINISHED, Reprocess, Run, Task
from firnline.airflow.following import Step, TaskFailedError, follow, request
from firnline.airflow.server import Server
from firnline.airflow.warden import processes
from firnline.errors import FirnlineError
from firnline.runtime import show
from firnline.runtime.project import Project
from tests.airflow.conftest import epochs_of, processes_of, until
from tests.oracle.amplab import EPOCHS, comparable, expected

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500)]  # the first test that needs them waits for all fifteen drivers

COLLECTIONS = ("rankings", "user_visits", "revenue_by_ip", "revenue_by_prefix", "top_sources")
PATIENCE = 500


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def history(project: Project, pipeline: str) -> dict[str, list[tuple[int, int, str]]]:
    """Every publish of every collection: what must stay as it is."""
    graph = project.graph(pipeline)
    return {
        each.name: [(entry.lower, entry.snapshot, entry.attempt) for entry in project.log(pipeline, each.name).entries()]
        for each in graph.collections
    }


def rows(project: Project, pipeline: str, collection: str, epoch: str) -> list[tuple[Any, ...]]:
    return comparable(show.rows(project, project.graph(pipeline), collection, epoch)[1])


def ended(server: Server, dag: str, run: str) -> Run:
    server.wait(f"run {run}", lambda: server.api.run(dag, run).state in FINISHED, PATIENCE)
    return server.api.run(dag, run)


def backfill(server: Server, dag: str, *, reprocess: Reprocess = "none") -> None:
    """Let all three days run again, the last first and two at once, and wait for their end.

    Airflow on SQLite may refuse (the file is locked), and then take what it has half made for a running backfill: two minutes.
    """
    accepted: list[int] = []

    def is_accepted() -> bool:
        try:
            accepted.append(server.api.backfill(dag, day(1), day(3), backwards=True, max_active_runs=2, reprocess=reprocess))
        except FirnlineError as error:
            if not re.search(r"Airflow answered (409|503)", str(error)):
                raise
            time.sleep(5)
        return bool(accepted)

    server.wait("Airflow to accept the backfill", is_accepted, PATIENCE)
    server.api.unpause(dag)
    server.wait("the backfill", lambda: server.api.is_backfilled(accepted[0]), PATIENCE)


def task(server: Server, dag: str, run: str, name: str) -> Task:
    return next(task for task in server.api.tasks(dag, run) if task.id == name)


def test_a_failing_stage_is_told_with_code_epoch_file_and_line_and_not_tried_again(project: Project, server: Server) -> None:
    server.api.unpause("broken")
    for later in ("slow", "amplab"):  # their drivers start meanwhile
        server.api.unpause(later)
    with pytest.raises(TaskFailedError) as failure:
        list(follow(server, project.graph("broken"), epochs_of(project, "broken")))
    assert failure.value.code == "STAGE_FAILED"
    assert "STAGE_FAILED: source 'readings' at 2026-01-01: " in str(failure.value)
    assert "the thermometer is broken" in str(failure.value)
    assert "include/pipelines/broken.py:9" in str(failure.value)
    run = server.api.runs("broken")[0]
    assert task(server, "broken", run.id, "readings").attempt == 1
    assert task(server, "broken", run.id, "complete").state == "upstream_failed"


def slow_drivers(project: Project) -> set[int]:
    """The JVM, and the Python below it."""
    return {pid for pid, line in processes_of(project.settings.airflow_home).items() if "advance.py slow readings" in line}


def test_an_interrupted_task_goes_on_as_the_same_try(project: Project, server: Server) -> None:
    server.api.unpause("slow")
    server.wait("the driver", lambda: len(slow_drivers(project)) >= 2, PATIENCE)
    first = slow_drivers(project)
    starters = {parent for pid, (parent, _) in processes().items() if pid in first} - first
    for pid in starters:
        os.kill(pid, signal.SIGTERM)
    server.wait("another driver", lambda: len(slow_drivers(project) - first) >= 2, PATIENCE)
    assert not slow_drivers(project) & first
    run = server.api.runs("slow")[0]
    assert task(server, "slow", run.id, "readings").attempt == 1
    log = server.api.log("slow", run.id, "readings", 1)
    assert any(line.startswith("interrupted: ") for line in log)
    assert not any("AirflowException" in line for line in log)


def test_a_task_marked_as_failed_ends_its_driver_and_stays_failed(project: Project, server: Server) -> None:
    server.api.unpause("slow")
    server.wait("the driver", lambda: len(slow_drivers(project)) >= 2, PATIENCE)
    run = server.api.runs("slow")[0]
    server.api.fail("slow", run.id, "readings")
    until(lambda: not slow_drivers(project), 60)
    assert ended(server, "slow", run.id).state == "failed"
    time.sleep(15)  # longer than an interrupted task pauses
    assert task(server, "slow", run.id, "readings").state == "failed"
    assert not slow_drivers(project)


def test_a_warm_task_marked_as_failed_ends_its_queries_and_stays_failed(project: Project, server: Server) -> None:
    beat = project.settings.root / "include" / "pipelines" / "stuck.beat"
    server.api.unpause("stuck")
    server.wait("the query", beat.exists, PATIENCE)
    run = server.api.runs("stuck")[0]
    log = server.api.log("stuck", run.id, "readings", 1)
    assert any(line.startswith("Spark runs on the engine at sc://127.0.0.1:") for line in log)
    server.api.fail("stuck", run.id, "readings")
    until(lambda: time.time() - float(beat.read_text() or time.time()) > 3, 30)
    assert ended(server, "stuck", run.id).state == "failed"


def test_an_epoch_that_is_one_task_runs_and_is_kept_like_any_other(project: Project, server: Server) -> None:
    epochs = epochs_of(project, "whole")
    server.api.unpause("whole")
    *_, steps = follow(server, project.graph("whole"), epochs)
    assert [(step.task, step.outcome) for step in steps] == [("epoch", "computed")] * 2
    before = history(project, "whole")
    assert rows(project, "whole", "totals", "2026-01-02") == [("2026-01-01", 10), ("2026-01-02", 10)]
    run = server.api.runs("whole")[-1]
    server.api.clear("whole", run.id)
    assert ended(server, "whole", run.id).state == "success"
    assert server.api.returned("whole", run.id, "epoch") == "kept"
    assert history(project, "whole") == before


def test_every_epoch_is_one_scheduled_run(server: Server, steps: tuple[Step, ...]) -> None:
    runs = server.api.runs("amplab")
    assert [(run.lower, run.upper, run.kind, run.state) for run in runs] == [
        (day(number), day(number + 1), "scheduled", "success") for number in (1, 2, 3)
    ]
    assert [(step.epoch, step.task, step.outcome) for step in steps] == [
        (epoch, name, "computed" if name != "complete" else None) for epoch in EPOCHS for name in (*COLLECTIONS, "complete")
    ]


def test_runs_at_once_and_backwards_on_an_empty_log_publish_every_epoch_once(project: Project, server: Server) -> None:
    backfill(server, "race")
    assert {run.state for run in server.api.runs("race")} == {"success"}
    for publishes in history(project, "race").values():
        assert sorted(lower for lower, _, _ in publishes) == [epoch.lower for epoch in epochs_of(project, "race")]
    for epoch in EPOCHS:
        pages = expected("rankings", epoch)
        assert rows(project, "race", "rankings", epoch) == pages
        assert rows(project, "race", "pages_by_rank", epoch) == comparable(list(Counter(page[1] for page in pages).items()))


@pytest.mark.parametrize("epoch", EPOCHS)
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_every_epoch_of_every_collection_equals_duckdb(
    project: Project, steps: tuple[Step, ...], collection: str, epoch: str
) -> None:
    assert rows(project, "amplab", collection, epoch) == expected(collection, epoch)


def test_nothing_secret_is_on_the_command_line_of_spark(server: Server) -> None:
    run = server.api.runs("race")[-1]
    command = next(line for line in server.api.log("race", run.id, "rankings", 1) if line.startswith("Spark-Submit cmd: "))
    assert "--master local" in command
    assert not [word for word in ("token", "password", "secret", "jwt", "fernet", "sqlite:") if word in command.lower()]


def test_a_result_is_told_once_and_not_among_the_chatter_of_libraries(server: Server, steps: tuple[Step, ...]) -> None:
    run = server.api.runs("amplab")[0]
    log = server.api.log("amplab", run.id, "rankings", 1)
    assert len([line for line in log if "computed rankings at 2026-01-01: " in line]) == 1
    log += server.api.log("amplab", run.id, "complete", 1)
    assert not any("Loaded FileIO" in line for line in log)


def test_without_a_connection_spark_runs_where_the_settings_say(server: Server) -> None:
    run = server.api.runs("race")[-1]
    log = server.api.log("race", run.id, "rankings", 1)
    assert "no connection nowhere: Spark runs on local[*]" in log
    assert any("spark-submit --master local[*] " in line for line in log)


def test_a_backwards_backfill_over_finished_epochs_changes_nothing(
    project: Project, server: Server, steps: tuple[Step, ...]
) -> None:
    before = history(project, "amplab")
    began = time.monotonic()
    backfill(server, "amplab", reprocess="completed")
    print(f"three kept epochs took {time.monotonic() - began:.1f} s")
    runs = server.api.runs("amplab")
    assert [run.state for run in runs] == ["success"] * 3
    assert {server.api.returned("amplab", run.id, name) for run in runs for name in COLLECTIONS} == {"kept"}
    assert history(project, "amplab") == before


def test_clearing_and_triggering_at_once_changes_nothing(project: Project, server: Server, steps: tuple[Step, ...]) -> None:
    before = history(project, "amplab")
    runs = server.api.runs("amplab")
    for run in runs:
        server.api.clear("amplab", run.id)
    for run in runs[:2]:  # again, while they run
        server.api.clear("amplab", run.id, ("rankings", "top_sources"))
    again = server.api.trigger("amplab", datetime(2026, 1, 2, 12, tzinfo=UTC), (day(2), day(3)))
    assert [ended(server, "amplab", run).state for run in (*(run.id for run in runs), again)] == ["success"] * 4
    log = server.api.log("amplab", again, "top_sources", task(server, "amplab", again, "top_sources").attempt)
    assert "kept: the log already holds top_sources through 2026-01-02" in log
    assert history(project, "amplab") == before


def test_runs_that_name_no_epoch_are_refused_with_a_code(project: Project, server: Server, steps: tuple[Step, ...]) -> None:
    before = history(project, "amplab")
    noon, six = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 6, tzinfo=UTC)
    late = datetime(2026, 1, 3, 12, tzinfo=UTC)
    asked = {
        # With a logical date outside of the DAG's own dates, Airflow makes a run without tasks: it cannot even ask.
        server.api.trigger(
            "amplab", six, (datetime(2025, 12, 31, tzinfo=UTC), day(1)), run="before"
        ): "BEFORE_START: 2025-12-31 is before the start 2026-01-01",
        server.api.trigger("amplab", late, (day(4), day(5)), run="after"): "AFTER_END: 2026-01-04 is not before the end",
        server.api.trigger(
            "amplab", noon, (six, noon), run="between"
        ): "BAD_EPOCH: the data interval [2026-01-01T06:00, 2026-01-01T12:00)",
        server.api.trigger("amplab", None, run="undated"): "BAD_EPOCH: this run has no data interval",
    }
    for run, message in asked.items():
        assert ended(server, "amplab", run).state == "failed"
        for name in ("rankings", "user_visits"):
            refused = task(server, "amplab", run, name)
            assert (refused.state, refused.attempt) == ("failed", 1)
            assert any(message in line for line in server.api.log("amplab", run, name, 1))
    assert history(project, "amplab") == before


def test_a_scheduler_that_dies_is_started_again(project: Project, server: Server, steps: tuple[Step, ...]) -> None:
    def schedulers() -> set[int]:
        lines = processes_of(project.settings.airflow_home)
        return {pid for pid, line in lines.items() if "preloaded scheduler" in line and "warden" not in line}

    first = schedulers()
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    server.wait("another scheduler", lambda: bool(schedulers() - first), 60)


def test_a_lost_run_record_is_asked_for_again(project: Project, server: Server, steps: tuple[Step, ...]) -> None:
    graph = project.graph("amplab")
    epochs = epochs_of(project, "amplab")
    before = history(project, "amplab")
    server.api.forget("amplab", next(run.id for run in server.api.runs("amplab") if run.lower == day(1)))
    request(server, graph, epochs[:1])
    *_, last = follow(server, graph, epochs)
    assert {step.outcome for step in last if step.task in COLLECTIONS and step.epoch == EPOCHS[0]} <= {"kept"}
    assert history(project, "amplab") == before


def test_a_demo_of_finished_epochs_starts_no_airflow(
    project: Project, steps: tuple[Step, ...], environment: dict[str, str]
) -> None:
    def demo(*options: str) -> str:
        command = [sys.executable, "-c", "from firnline.cli import main; main()", "demo", "amplab", *options]
        done = subprocess.run(command, cwd=project.settings.root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = demo()  # while the tests' own Airflow holds the home
    assert "The log already holds 3 epochs of amplab: nothing to recompute" in shown
    assert "amplab.top_sources" in shown
    assert "firnline status amplab" in shown
    document = json.loads(demo("--json"))
    assert document["epochs_held_before"] == 3
    assert document["tasks"] == []
    assert len(document["changes"]) == len(EPOCHS) * len(COLLECTIONS)
    top = comparable([tuple(row.values()) for row in document["rows"]])
    assert [row[0] for row in top] == [row[0] for row in expected("top_sources", "2026-01-03")]
