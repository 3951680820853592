from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from firnline.model.epoch import Schedule, to_datetime
from firnline.runtime.history import told
from firnline.runtime.lineage import Edge, Lineage, Node
from firnline.runtime.overview import overview
from firnline.runtime.project import Project
from firnline.web.documents import (
    WORST,
    _cell,
    _state,
    lineage_document,
    pipeline_document,
    pipelines_of,
    storage_document,
    summary_document,
)
from firnline.web.runs import Task
from tests.web_logs import copies, of_today


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copies(tmp_path_factory.mktemp("documents") / "project")()


@pytest.mark.parametrize(
    ("state", "task", "shown"),
    [
        ("computed", None, "computed"),
        ("computed", Task("r", "success", "computed"), "computed"),
        ("computed", Task("r", "success", "kept"), "kept"),
        ("computed", Task("r", "running", None), "computed"),  # the log holds it, whoever runs
        ("repaired", Task("r", "success", "kept"), "repaired"),
        ("missing", Task("r", "running", None), "running"),
        ("failed", Task("r", "queued", None), "running"),
        ("missing", Task("r", "failed", None), "missing"),
        ("missing", Task("r", None, None), "missing"),
    ],
)
def test_airflow_says_what_the_log_cannot_know(state: str, task: Task | None, shown: str) -> None:
    assert _state(state, task) == shown  # type: ignore[arg-type]


def test_what_is_late_is_told_anew_once_a_minute(web: Project) -> None:
    graph = of_today(web)
    found = overview(web, graph)

    def told(seconds: float | None) -> tuple[object, object]:
        late = replace(found, status=replace(found.status, late_by=seconds))
        return pipeline_document(graph, late, {})["status"]["late_by"], summary_document(late)["late_by"]

    assert [told(seconds) for seconds in (None, 0.0, 0.1, 60.0, 60.1, 119.9)] == [
        (each, each) for each in (None, 0, 60, 60, 120, 120)
    ]


def test_a_pipeline_is_plain_json_with_its_runs(web: Project) -> None:
    graph = of_today(web)
    document = pipeline_document(graph, overview(web, graph), {})
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert [cell["run"] for cell in document["collections"][0]["cells"]] == [None] * 3
    assert {hold["kind"]: hold["is_releasable"] for hold in document["safety"]["holds"]} == {
        "retention": False,
        "frontier": False,
    }


def test_an_epoch_that_is_one_task_is_the_task_of_every_collection(web: Project) -> None:
    daily = Schedule.parse("@daily", "2026-01-01", None)
    cell = replace(overview(web, of_today(web)).collections[0].cells[0], epoch="2026-01-01", state="computed")
    tasks = {("epoch", to_datetime(daily.start)): Task("r", "success", "kept")}
    for how, *expected in (("per-epoch", "kept", "epoch", "r"), ("per-collection", "computed", "any", None)):
        graph = replace(of_today(web), schedule=daily, tasks=how)
        shown = _cell(graph, "any", cell, tasks)  # type: ignore[arg-type]
        assert [shown["state"], shown["task"], shown["run"]] == expected


def test_a_summary_tells_the_worst_of_each_epoch(web: Project) -> None:
    found = summary_document(overview(web, of_today(web)))
    assert [cell["epoch"] for cell in found["strip"]] == ["0", "1", "2"]
    assert {cell["state"] for cell in found["strip"]} == {"computed"}
    assert set(WORST) >= {"computed", "merged", "repaired", "stale", "gap", "failed", "missing"}


def test_storage_tells_layers_and_amplification_over_time(web: Project) -> None:
    found = storage_document(told(web, web.graph("web")))
    seen = [(each["upper"], each["layers"], each["amplification"]) for each in found["samples"] if each["collection"] == "seen"]
    assert seen[-1] == ("3", 3, 1.0)
    assert found["runs"] == []
    json.dumps(found, allow_nan=False)


def node(collection: str) -> Node:
    return Node(f"{collection}@0", collection, "stage", ("0",), (), None, 1, 1, "d", 0, 1, "a", "f", 0.1, (), 0)


def test_lineage_leaves_out_pipelines_that_may_not_be_seen() -> None:
    nodes = tuple(map(node, ("out", "other.of_theirs", "third.shared")))
    edges = tuple(Edge("out@0", f"{name}@0", 0, "1", 1, 1, "all") for name in ("other.of_theirs", "third.shared"))
    found = Lineage("web", "out", "0", None, "upstream", nodes, edges)
    assert pipelines_of(found) == {"other", "third"}
    document = lineage_document(found, frozenset({"other"}))
    assert [each["collection"] for each in document["nodes"]] == ["out", "third.shared"]
    assert [each["input"] for each in document["edges"]] == ["third.shared@0"]
    assert "of_theirs" not in json.dumps(document)


def test_the_page_asks_nothing_of_other_hosts() -> None:
    static = Path(__file__).parents[3] / "src" / "firnline" / "web" / "static"
    texts = {file.name: file.read_text() for file in static.iterdir()}
    for name, text in texts.items():
        known = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in known, name
        assert "https://" not in known, name
        assert "innerHTML" not in text, name
        assert len(text.splitlines()) < 300, name
