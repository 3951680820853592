"""Maintenance without an engine: what is left over goes, what merges stand for is forgotten, and what was done is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.runtime.history import remember, runs, told
from firnline.runtime.maintain import Budget, grace_of, is_tidy, maintained, planned, tidied, undone
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.runtime.verify import verify
from firnline.tables.failures import Failure
from tests.project import command
from tests.web_logs import copies, merge, publish, staged

NOW = timedelta()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("maintained") / "project")


@pytest.fixture
def web(healthy: Callable[[], Project]) -> Project:
    return healthy()


def no_engine() -> object:
    raise AssertionError("nothing here needs Spark")


def test_three_small_epochs_need_no_maintenance(web: Project) -> None:
    graph = web.graph("web")
    assert is_tidy(web, graph, NOW)
    assert list(maintained(web, graph, no_engine, NOW)) == []  # type: ignore[arg-type]
    assert runs(web, "web") == [], "a run that did nothing is not worth remembering"


def test_what_merges_stand_for_is_dropped_removed_and_forgotten(web: Project) -> None:
    graph = web.graph("web")
    web.failures("web").note(Failure("seen", 1, 2, "a", "CODE", "text", False, "2026-01-01"))
    web.failures("web").note(Failure("visits", 1, 2, "a", "CODE", "text", False, "2026-01-01"))
    merge(web, "seen")
    before = verify(web)
    assert before.problems == ()
    plan = planned(web, graph, NOW)
    assert [(step.collection, step.what, step.snapshots) for step in plan if step.what == "expire"] == [("seen", "expire", 3)]
    assert not is_tidy(web, graph, NOW)
    assert [step for step in planned(web, graph, timedelta(days=1)) if step.what != "prune"] == [], "it may still be undone"
    done = list(maintained(web, graph, no_engine, NOW))  # type: ignore[arg-type]
    assert [each.error for each in done if each.error] == []
    whats = {each.step.what: each.step for each in done}
    assert list(whats) == ["expire", "delete", "prune"]
    assert (whats["delete"].files, whats["delete"].bytes > 0) == (6 + 3 + 3 + 3 + 6, True), (
        "six data files, manifests, lists and sidecars of three epochs, and what their staging left"
    )
    assert is_tidy(web, graph, NOW)
    after = verify(web)
    assert after.problems == ()
    assert [each.collection for each in web.failures("web").open({})] == ["visits"]
    known = {(each.lower, each.upper, each.attempt) for each in web.ledger.publications("web", "seen")}
    assert known == {(0, 3, "seenm")}
    assert [part.rows for part in web.ledger.parts("web", "seen")] == [3, 6]
    (run,) = runs(web, "web")
    assert (run.snapshots, run.merges, run.rewritten) == (3, 0, 0)
    assert run.freed >= whats["delete"].bytes
    assert [sample.layers for sample in run.after] == [1, 3]


def test_a_log_that_cannot_be_read_keeps_its_files_and_the_rest_is_done(web: Project) -> None:
    graph = web.graph("web")
    merge(web, "seen")
    staged(web.catalog.iceberg("web", "visits"), "dead", 0)
    table = web.log("web", "visits").load()
    assert table is not None
    assert table.head is not None
    web.catalog.remove(table.head.manifest_list)
    done = list(tidied(web, graph, NOW))
    assert [each.error.code for each in done if each.error] == ["LOG_UNREADABLE"]
    assert {each.step.what for each in done if each.error is None} >= {"expire", "prune"}


@pytest.mark.parametrize("left", [None, 200])
def test_a_log_whose_metadata_is_lost_or_cut_is_told_and_the_rest_is_done(web: Project, left: int | None) -> None:
    graph = web.graph("web")
    merge(web, "seen")
    table = web.log("web", "visits").load()
    assert table is not None
    content = web.catalog.read(table.version)
    web.catalog.remove(table.version)
    if left is not None:
        web.catalog.write(table.version, content[:left])
    assert not is_tidy(web, graph, NOW)
    assert ("merge", "") in {(each.what, each.collection) for each in planned(web, graph, NOW)}
    done = list(maintained(web, graph, no_engine, NOW))  # type: ignore[arg-type]
    told = [(each.step.what, each.step.collection) for each in done if each.error]
    assert told == [("merge", ""), ("expire", "visits"), ("delete", "seen")], "what it names is not known"
    assert [(each.step.what, each.step.collection) for each in done if each.error is None] == [
        ("expire", "seen"),
        ("prune", "seen"),
    ]


def test_what_a_rewind_took_back_is_forgotten_once(web: Project) -> None:
    graph, ledger = web.graph("web"), web.ledger
    before = (ledger.publications("web"), ledger.inputs("web"), ledger.parts("web"))
    rewind(web, graph, 2, None, "ana")
    ledger.forget("web")
    ledger.record(*before)  # as if it had not answered then
    pruned = [each.step for each in tidied(web, graph, timedelta(days=9)) if each.step.what == "prune"]
    assert [(step.collection, step.entries) for step in pruned] == [("seen", 3), ("visits", 3)]
    assert is_tidy(web, graph, timedelta(days=9))
    for name in ("seen", "visits"):
        log = web.log("web", name)
        assert {(each.generation, each.lower) for each in ledger.every("web", name)} == {(1, 0), (1, 1)}
        assert len(ledger.parts("web", name)) == 4, "those of what is left came with it"
        assert [entry.lower for entry in log.entries()] == [1, 0]
    publish(web, "visits", 2)
    assert is_tidy(web, graph, timedelta(days=9)), "what the ledger does not know yet is nothing to forget"


def test_nothing_begins_after_its_time(web: Project) -> None:
    merge(web, "seen")
    assert list(tidied(web, web.graph("web"), NOW, Budget.of(seconds=0))) == []


def test_a_merge_is_undone_by_command_and_told_before(web: Project) -> None:
    merge(web, "seen")
    root = web.settings.root
    plan = command(root, "maintain", "web", "--dry-run", "--grace", "0s", "--json")
    assert [(step["collection"], step["what"]) for step in plan["steps"]] == [("seen", "expire"), ("seen", "prune")]
    assert len(list(web.log("web", "seen").entries())) == 1, "nothing is changed"
    said = command(root, "maintain", "--undo")
    assert "web.seen" in said
    assert [entry.lower for entry in web.log("web", "seen").entries()] == [2, 1, 0]
    assert verify(web).problems == ()
    assert undone(web, web.graph("web")) == []


def test_the_command_says_what_it_did_and_refuses_what_it_cannot_read(web: Project) -> None:
    merge(web, "seen")
    root = web.settings.root
    done = command(root, "maintain", "--grace", "0s", "--json")
    assert done["files_freed"] >= 21
    assert done["failed"] == []
    assert "Nothing to do." in command(root, "maintain", "--bytes", "10GB", "--minutes", "1")
    for wrong in (("--bytes", "much"), ("--grace", "soon")):
        command(root, "maintain", *wrong, code=2)


def test_charts_are_drawn_from_runs_and_logs(web: Project, tmp_path: Path) -> None:
    graph = web.graph("web")
    merge(web, "seen")
    list(maintained(web, graph, no_engine, NOW))  # type: ignore[arg-type]
    found = told(web, graph)
    assert {sample.collection for sample in found.samples} == {"seen", "visits"}
    assert found.frontier == 3
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    for path in (page, picture):
        assert "The report is in" in command(web.settings.root, "maintain", "--report", str(path))
    text = page.read_text()
    assert "<svg" in text
    assert "read amplification" in text
    assert "http" not in text.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", ""), "the page needs nothing else"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_only_the_last_runs_are_remembered(web: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    merge(web, "seen")
    list(maintained(web, web.graph("web"), no_engine, NOW))  # type: ignore[arg-type]
    (run,) = runs(web, "web")
    monkeypatch.setattr("firnline.runtime.history.KEPT", 2)
    for _ in range(3):
        remember(web, "web", run)
    assert len(runs(web, "web")) == 2


def test_the_grace_time_is_a_setting(web: Project) -> None:
    assert grace_of(web) == timedelta(days=1)
    assert grace_of(web, timedelta()) == timedelta()
