"""Firnline in Airflow's own words: assets and their events, deadlines, and an engine that is down."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.airflow.following import Step, follow
from firnline.airflow.server import Server
from firnline.engine.server import Engine
from firnline.runtime.project import Project
from tests.airflow.conftest import OPENLINEAGE, epochs_of
from tests.oracle.amplab import EPOCHS, expected

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500)]

PATIENCE = 120


def test_every_complete_epoch_is_an_event_of_each_collection(server: Server, steps: tuple[Step, ...]) -> None:
    events = sorted(server.api._pages("assets/events", "asset_events"), key=lambda event: str(event["timestamp"]))
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["source_dag_id"] == "amplab":
            told.setdefault(event["name"], {}).setdefault(event["extra"]["epoch"], event["extra"])
    assert set(told) == {f"amplab.{name}" for name in {step.task for step in steps} - {"complete"}}
    for by_epoch in told.values():
        assert sorted(by_epoch) == list(EPOCHS)
    first = told["amplab.rankings"][EPOCHS[0]]
    assert first["rows"] == len(expected("rankings", EPOCHS[0]))
    assert first["frontier"] >= EPOCHS[1], "the next epoch may be complete by then, too"
    assert first["parts_recomputed"] >= 1
    assert first["bytes"] > 0


def test_a_dag_that_is_scheduled_on_a_collection_runs_and_finds_the_frontier(server: Server, steps: tuple[Step, ...]) -> None:
    def ended() -> bool:
        return any(run.state == "success" for run in server.api.runs("after_amplab"))

    server.wait("the DAG that follows", ended, PATIENCE)
    run = next(run for run in server.api.runs("after_amplab") if run.state == "success")
    assert run.kind == "asset_triggered"
    assert server.api.returned("after_amplab", run.id, "look") in (*EPOCHS[1:], "2026-01-04")


def test_an_epoch_that_is_not_complete_in_time_is_told(server: Server) -> None:
    server.api.unpause("slow")
    server.wait("a run", lambda: bool(server.api.runs("slow")), PATIENCE)
    run = server.api.runs("slow")[0].id

    def missed() -> list[bool]:
        path = f"/ui/dags/slow/dagRuns/{run}/deadlines"
        return [each["missed"] for each in server.api._client.get(path).json()["deadlines"]]

    server.wait("the deadline", lambda: missed() == [True], PATIENCE)

    def is_told() -> bool:
        return any("late: the run" in log.read_text(errors="replace") for log in server.home.logs.rglob("*.log"))

    server.wait("the callback", is_told, PATIENCE)


def test_without_its_engine_a_task_starts_a_driver_and_says_so(project: Project, server: Server) -> None:
    engine = Engine(project.settings)
    engine.stop(0)
    try:
        server.api.unpause("fallen")
        *_, steps = follow(server, project.graph("fallen"), epochs_of(project, "fallen"))
    finally:
        engine.start()
    assert [(step.task, step.outcome) for step in steps] == [("epoch", "computed")]
    log = server.api.log("fallen", server.api.runs("fallen")[0].id, "epoch", 1)
    assert "no engine of this project runs: instead, a Spark driver of its own starts on local[*]" in log
    assert any("spark-submit --master local[*] " in line for line in log)


def test_openlineage_hears_what_an_epoch_was_made_from_and_what_checks_said(
    project: Project, server: Server, steps: tuple[Step, ...]
) -> None:
    file = server.home.path / OPENLINEAGE
    events = [json.loads(line) for line in file.read_text().splitlines()]
    folders = {each["name"] for event in events if event["job"]["name"] == "amplab.rankings" for each in event["inputs"]}
    assert folders == {str(project.settings.root / "include" / "landing" / "amplab" / epoch) for epoch in EPOCHS}
    told = [event for event in events if event["job"]["name"] == "amplab.revenue_by_ip"]
    assert {event["eventType"] for event in told} == {"START", "COMPLETE"}
    first = [event for event in told if event["run"]["facets"]["nominalTime"]["nominalStartTime"].startswith(EPOCHS[0])]
    event = next(event for event in first if event["eventType"] == "COMPLETE")

    assert {each["namespace"] for each in (*event["inputs"], *event["outputs"])} == {project.settings.warehouse}
    inputs = {each["name"]: each for each in event["inputs"]}
    assert sorted(inputs) == ["amplab.rankings", "amplab.revenue_by_ip", "amplab.user_visits"]
    suite = json.loads((project.settings.root / "include" / "expectations" / "revenue_is_sane.json").read_text())
    asserted = inputs["amplab.revenue_by_ip"]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(each["assertion"], each["column"], each["success"]) for each in asserted] == [
        (each["type"], each["kwargs"]["column"], True) for each in suite["expectations"]
    ]
    (output,) = event["outputs"]
    assert output["name"] == "amplab.revenue_by_ip"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == len(expected("revenue_by_ip", EPOCHS[0]))
    fields = output["facets"]["columnLineage"]["fields"]
    assert {name: [f"{each['name']}.{each['field']}" for each in of["inputFields"]] for name, of in fields.items()} == {
        "source_ip": ["amplab.user_visits.source_ip"],
        "revenue": ["amplab.user_visits.ad_revenue"],
        "rank": ["amplab.rankings.page_rank"],
        "visits": [],
    }


def test_a_tasks_page_says_how_its_stage_is_computed(server: Server, steps: tuple[Step, ...]) -> None:
    def doc() -> str:
        return str(server.api._client.get("/api/v2/dags/amplab/tasks/top_sources").json()["doc_md"])

    server.wait("the DAG to be parsed again", lambda: "It is computed from what changed" in doc(), PATIENCE)
    assert "**first 10 by revenue" in doc()
