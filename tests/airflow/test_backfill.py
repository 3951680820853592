"""Airflow's backfill is the rewind button: from its command line and through its API, with every reprocess behaviour."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from firnline.airflow.api import FINISHED
from firnline.airflow.server import Server
from firnline.errors import FirnlineError
from firnline.runtime.approving import approve
from firnline.runtime.project import Project
from tests.airflow.conftest import CHANGING
from tests.airflow.test_pipeline import PATIENCE, day, history, rows, task

pytestmark = [pytest.mark.airflow, pytest.mark.nightly, pytest.mark.timeout(900)]  # a dozen runs, one after the other

DAG = "changing"
DAYS = [f"2026-01-0{number}" for number in (1, 2, 3)]


def created(server: Server, first: int, last: int, *words: str) -> int:
    """``airflow backfill create``; on SQLite it may find a lock, and leave a backfill behind that is half made."""
    command = [sys.executable, "-m", "airflow", "backfill", "create", "--dag-id", DAG, *words]
    command += ["--from-date", day(first).isoformat(), "--to-date", day(last).isoformat()]
    environment = server.home.environment(server.port, server.port)
    before = {each["id"] for each in backfills(server)}

    def is_created() -> bool:
        made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        if made.returncode:
            assert "locked" in made.stderr or "AlreadyRunningBackfill" in made.stderr, made.stderr[-3000:]
            cancel(server)
        return made.returncode == 0

    server.wait("Airflow to take the backfill", is_created, PATIENCE)
    return int(max({each["id"] for each in backfills(server)} - before))


def asked(server: Server, first: int, last: int, **options: Any) -> int:
    """The same through the API."""
    found: list[int] = []

    def is_accepted() -> bool:
        try:
            found.append(server.api.backfill(DAG, day(first), day(last), **options))
        except FirnlineError:
            cancel(server)
        return bool(found)

    server.wait("Airflow to accept the backfill", is_accepted, PATIENCE)
    return found[0]


def cancel(server: Server) -> None:
    for each in backfills(server):
        if each["completed_at"] is None:
            server.api._call("PUT", f"backfills/{each['id']}/cancel")


def backfills(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.api._call("GET", "backfills", params={"dag_id": DAG})["backfills"]
    return found


def done(server: Server, backfill: int) -> list[str]:
    """How the runs ended, by day. Airflow looks for ended backfills every half minute; cancelled, it is over at once."""

    def is_over() -> bool:
        return all(run.state in FINISHED for run in server.api.runs(DAG))

    server.wait("the runs of the backfill", is_over, PATIENCE)
    if not server.api.is_backfilled(backfill):
        server.api._call("PUT", f"backfills/{backfill}/cancel")
    return [run.state for run in server.api.runs(DAG)]


def says(project: Project) -> list[list[Any]]:
    return [[rows(project, DAG, "scaled", label), rows(project, DAG, "total", label)] for label in DAYS]


def expected(*factors: int) -> list[list[Any]]:
    """Every day as it would be, had there always been the code that made it."""
    found = []
    for count, factor in enumerate(factors, start=1):
        scaled = [(DAYS[n], (n + 1) * factor) for n in range(count)]
        found.append([scaled, [(sum(value for _, value in scaled),)]])
    return found


def test_a_backfill_fills_keeps_refuses_replays_and_is_forced(project: Project, server: Server) -> None:
    first = asked(server, 1, 3)
    server.api.unpause(DAG)
    assert done(server, first) == ["success"] * 3
    assert says(project) == expected(2, 2, 2)
    filled = history(project, DAG)

    assert done(server, created(server, 1, 3, "--reprocess-behavior", "completed", "--run-backwards")) == ["success"] * 3
    assert {server.api.returned(DAG, run.id, "epoch") for run in server.api.runs(DAG)} == {"kept"}
    assert history(project, DAG) == filled

    module = project.settings.root / "include" / "pipelines" / f"{DAG}.py"
    module.write_text(textwrap.dedent(CHANGING.replace("* 2", "* 5")))
    assert done(server, asked(server, 2, 3, reprocess="completed")) == ["success", "failed", "failed"]
    failed = server.api.runs(DAG)[1].id
    log = server.api.log(DAG, failed, "epoch", task(server, DAG, failed, "epoch").attempt)
    assert any("CHANGE_NOT_APPROVED" in line and "firnline approve changing" in line for line in log), log
    assert done(server, created(server, 1, 3, "--reprocess-behavior", "none")) == ["success", "failed", "failed"]
    assert history(project, DAG) == filled

    approve(project, project.graph(DAG), "ana", since=project.graph(DAG).schedule.point(DAYS[1]))
    again = asked(server, 1, 3, backwards=True, max_active_runs=2, reprocess="failed")
    with pytest.raises(FirnlineError, match="Airflow answered 409"):
        server.api.backfill(DAG, day(1), day(3), reprocess="completed")
    assert done(server, again) == ["success"] * 3
    assert says(project) == expected(2, 5, 5)
    replayed = history(project, DAG)
    assert [entries[-1] for entries in replayed.values()] == [entries[-1] for entries in filled.values()]
    assert replayed["days"] == filled["days"]

    forced = created(server, 3, 3, "--reprocess-behavior", "completed", "--dag-run-conf", json.dumps({"force": True}))
    assert done(server, forced) == ["success"] * 3
    assert says(project) == expected(2, 5, 5)
    after = history(project, DAG)
    assert [entries[1:] for entries in after.values()] == [entries[1:] for entries in replayed.values()]
    assert all(entries[0] != before[0] for entries, before in zip(after.values(), replayed.values(), strict=True))
    assert project.control(DAG).agreement().rewinds == ()
