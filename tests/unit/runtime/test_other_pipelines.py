"""What other pipelines and their branches have of this one: they hold its safe point, and an erasure tells of them. No JVM."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import place
from firnline.plan.erasure import check_free
from firnline.plan.frontier import Frontier
from firnline.runtime.branch import create, drop
from firnline.runtime.forgetting import beyond, made_before, waiting_beyond
from firnline.runtime.maintain import tidied
from firnline.runtime.project import Project
from firnline.runtime.safepoint import safe_point
from firnline.tables.control import TABLE
from firnline.tables.erasing import replace_all
from firnline.tables.log import PARTITION_BY, PARTS
from firnline.tables.sidecar import Input, Sidecar
from firnline.tables.trash import Trash
from tests.project import compiled, make_project
from tests.publishing import publish_row
from tests.verifying import local

WEB = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0, keep="1 epochs")

    @web.source(keys=["k"])
    def visits(epoch): ...

    @web.source(keys=["k"])
    def pages(epoch): ...
"""
DAILY = """
    import firnline as fl

    daily = fl.Pipeline("daily", schedule=1, start=0)

    @daily.stage(keys=["k"])
    def report(visits=fl.collection("web.visits")): ...

    @daily.stage(keys=["k"])
    def best(report): ...

    @daily.stage(keys=["k"])
    def titles(pages=fl.collection("web.pages")): ...

    @daily.stage(keys=["k"])
    def planned(report): ...
"""
WEEKLY = """
    import firnline as fl

    weekly = fl.Pipeline("weekly", schedule=1, start=0)

    @weekly.stage(keys=["k"])
    def digest(best=fl.collection("daily.best")): ...
"""
LOGS = {"web": ("visits", "pages"), "daily": ("report", "best", "titles"), "weekly": ("digest",)}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = compiled(make_project(tmp_path, web=WEB, daily=DAILY, weekly=WEEKLY), "web", "daily", "weekly")
    for epoch in range(3):
        published(made, epoch)
    return made


def published(project: Project, epoch: int) -> None:
    for pipeline, collections in LOGS.items():
        for name in collections:
            publish_row(project, project.graph(pipeline), name, Epoch(epoch, epoch + 1))
        project.control(pipeline).advance(Frontier(epoch + 1, dict.fromkeys(collections, 0)))


def test_all_that_other_pipelines_made_of_a_collection_is_told_and_nothing_else(project: Project) -> None:
    graph = project.graph("web")
    inputs = {"daily.best": {"daily.report"}, "daily.report": {"web.visits"}, "weekly.digest": {"daily.best"}}
    assert beyond(project, graph, ["visits"]) == inputs
    assert list(beyond(project, graph, ["pages"])) == ["daily.titles"]
    create(project, project.graph("daily"), "what_if", 2, None)
    assert list(beyond(project, graph, ["pages"])) == ["daily.titles", "daily__what_if.titles"]
    assert beyond(project, project.graph("weekly"), ["digest"]) == {}


def test_what_is_begun_anew_after_an_erasure_is_not_told_of_any_more(project: Project) -> None:
    graph = project.graph("web")
    log = project.log("web", "visits")
    seen = log.load()
    assert seen is not None
    erased = replace(log.sidecar(next(log.entries())), lower=0, attempt="erased")
    assert replace_all(project.catalog, log, seen, erased, None).verdict is Verdict.FREE
    assert made_before(project, graph, ["visits"]) == ["daily.best", "daily.report", "weekly.digest"]
    begin_anew(project, "daily", "best", "report")
    assert made_before(project, graph, ["visits"]) == ["daily.best", "daily.report", "weekly.digest"], "made of what is old"
    begin_anew(project, "daily", "report", "web.visits")
    assert made_before(project, graph, ["visits"]) == ["daily.best", "weekly.digest"]
    begin_anew(project, "daily", "best", "report")
    begin_anew(project, "weekly", "digest", "daily.best")
    assert made_before(project, graph, ["visits"]) == []


def begin_anew(project: Project, pipeline: str, name: str, of: str) -> None:
    """What is left of a stage that was retired, and computed as one layer by who put it back."""
    log = project.log(pipeline, name)
    before = log.load()
    assert before is not None
    assert project.catalog.forget(before)
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {PARTITION_BY: '["k"]', PARTS: "1"})
    head = project.log(*place(pipeline, of)).head()
    assert head is not None
    assert head.snapshot is not None
    inputs = {of: Input(head.description.generation, 3, head.snapshot, 0, "all")}
    sidecar = Sidecar(name, 0, 3, f"{name} anew", Fingerprint("f" * 32), inputs, {}, 0.5, parts=1)
    assert log.publish(0, sidecar, None) is Verdict.FREE


def test_a_branch_of_another_pipeline_holds_where_it_ends(project: Project) -> None:
    graph = project.graph("web")
    create(project, project.graph("daily"), "what_if", 2, None)
    published(project, 3)
    safe = safe_point(project, graph)
    assert safe.at == 2
    (hold,) = (each for each in safe.holds if each.at == 2)
    assert (hold.kind, hold.name) == ("pipeline", "daily__what_if")
    with pytest.raises(FirnlineError, match=r"ERASURE_BLOCKED.*firnline branch drop what_if --pipeline daily"):
        check_free(graph, safe.holds, 4)
    drop(project, "daily", "what_if")
    assert safe_point(project, graph).at == 3


def test_a_branch_whose_code_is_gone_holds_no_more_than_it_read(project: Project, tmp_path: Path) -> None:
    graph, code = project.graph("web"), tmp_path / "try"
    shutil.copytree(project.settings.root / "include", code / "include")
    shutil.copy(project.settings.root / "firnline.toml", code)
    create(project, project.graph("daily"), "what_if", 2, str(code))
    published(project, 3)
    shutil.rmtree(code)
    there = Project.load(project.settings.root)
    (hold,) = (each for each in safe_point(there, graph).holds if each.name == "daily__what_if")
    assert hold.at == 2
    assert "does not load" in hold.release
    assert "firnline branch drop what_if --pipeline daily" in hold.release


def test_what_a_branch_whose_code_is_gone_was_made_from_its_logs_tell(project: Project, tmp_path: Path) -> None:
    graph, code = project.graph("web"), tmp_path / "try"
    begin_anew(project, "daily", "report", "web.visits")
    begin_anew(project, "daily", "best", "report")
    shutil.copytree(project.settings.root / "include", code / "include")
    shutil.copy(project.settings.root / "firnline.toml", code)
    create(project, project.graph("daily"), "what_if", 3, str(code))
    shutil.rmtree(code)
    there = Project.load(project.settings.root)
    found = beyond(there, graph, ["visits"])
    assert found["daily__what_if.report"] == {"web.visits"}
    assert found["daily__what_if.best"] == {"daily__what_if.report"}
    assert made_before(there, graph, ["visits"]) == ["weekly.digest"], "the others read it as it is"


def test_logs_that_other_pipelines_let_go_of_are_told_until_their_files_are_gone(project: Project) -> None:
    graph, catalog = project.graph("web"), project.catalog

    def let_go(name: str) -> str:
        table, control = catalog.table("daily", name), catalog.table("daily", TABLE)
        assert table is not None
        assert control is not None
        Trash(catalog).put_tables(control, [table])
        assert catalog.forget(table)
        return table.location

    begin_anew(project, "daily", "titles", "web.pages")
    begin_anew(project, "daily", "best", "report")
    titles, report = let_go("titles"), let_go("report")
    assert list(waiting_beyond(project, graph, ["pages"])) == [("daily", titles)]
    assert list(waiting_beyond(project, graph, ["visits"])) == [], "what says that it is made of nothing is no concern"
    best = let_go("best")
    assert list(waiting_beyond(project, graph, ["visits"])) == [("daily", best)], "what it was made from tells nothing any more"
    shutil.rmtree(local(report))
    assert list(waiting_beyond(project, graph, ["visits"])) == [("daily", report), ("daily", best)], "nor does this one"
    list(tidied(project, project.graph("daily"), timedelta()))
    assert list(waiting_beyond(project, graph, ["visits", "pages"])) == []
