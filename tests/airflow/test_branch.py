"""Branches as a second DAG, with the branch as its parameter; nothing changed here, so that no driver is needed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from firnline.airflow.api import FINISHED
from firnline.airflow.server import Server
from firnline.plan.frontier import Frontier
from firnline.runtime.branch import create, drop
from firnline.runtime.diff import diff, sides
from firnline.runtime.project import Project
from tests.publishing import publish_row

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]
PATIENCE = 300


def test_a_branch_runs_as_a_dag_of_its_own(project: Project, server: Server) -> None:
    graph = project.graph("forked")
    schedule = graph.schedule
    for epoch in schedule.epochs(schedule.start, schedule.point("2026-01-04")):
        publish_row(project, graph, "visits", epoch)
    project.control("forked").advance(Frontier(schedule.point("2026-01-04"), {"visits": 0}))
    create(project, graph, "same", schedule.point("2026-01-02"), None)
    server.wait_until_parsed("forked__branch")

    def ended(branch: str, logical_date: datetime | None) -> tuple[str, str]:
        run = server.api.trigger("forked__branch", logical_date, conf={"branch": branch})
        server.wait(f"run {run}", lambda: server.api.run("forked__branch", run).state in FINISHED, PATIENCE)
        return run, server.api.run("forked__branch", run).state

    def frontier() -> str:
        found = project.control("forked__same").frontier()
        assert found is not None
        return schedule.label(found.upper)

    assert ended("same", datetime(2026, 1, 2, tzinfo=UTC))[1] == "success"
    assert frontier() == "2026-01-03", "through the epoch around the logical date"
    assert ended("same", None)[1] == "success"
    assert frontier() == "2026-01-04", "through all that the pipeline has"
    assert diff(*sides(project, graph, "main", "same")).is_same
    run, state = ended("nobody", None)
    assert state == "failed"
    assert any("NO_SUCH_BRANCH" in line for line in server.api.log("forked__branch", run, "run", 1))
    drop(project, "forked", "same")
