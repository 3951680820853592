"""What an erasure removes beside the logs: copies at every place, and notes; a place that is out forbids it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.runtime.forgetting import (
    check_places,
    drop_log,
    finish_drops,
    forget_copies,
    forget_notes,
    forget_pages,
    stray_copies,
)
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.replicate import replicate
from firnline.runtime.replicated import replicated_upto
from firnline.runtime.verify import verify
from firnline.runtime.verify_replicas import verify_replicas
from firnline.tables.determinants import Determinants
from firnline.tables.erasing import replace_all, strays
from firnline.tables.failures import Failure
from firnline.tables.trash import Trash
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.verifying import local
from tests.web_logs import PIPELINE, copies, staged


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    root = tmp_path_factory.mktemp("forgetting")
    return copies(root / "project", PIPELINE.replace("start=0", f'start=0, replicas=["file://{root}/b", "file://{root}/c"]'))


@pytest.fixture
def web(healthy: Callable[[], Project]) -> Project:
    project = healthy()
    for place in places(project):
        shutil.rmtree(place, ignore_errors=True)
    assert not replicate(project, project.graph("web")).failed
    return project


def places(project: Project) -> tuple[Path, Path]:
    root = project.settings.root.parent
    return root / "b", root / "c"


def no_engine() -> object:
    raise AssertionError("nothing here needs Spark")


def data_at(place: Path) -> set[str]:
    return {path.name for path in (place / "web" / "seen").rglob("*.parquet")}


def erased(project: Project) -> None:
    """Let a log be one layer of its last epoch, and nothing else."""
    log = project.log("web", "seen")
    snapshot = staged(project.catalog.iceberg("web", "seen"), "e", 2)
    seen = log.load()
    assert seen is not None
    note = replace(log.sidecar(next(log.entries())), lower=0, attempt="e")
    done = replace_all(project.catalog, log, seen, note, snapshot)
    assert done.verdict is Verdict.FREE
    after = log.load()
    assert after is not None
    for path in strays(project.catalog, after, done.listed):
        project.catalog.remove(path)


def test_copies_of_what_was_erased_go_from_every_place(web: Project) -> None:
    graph = web.graph("web")
    assert [len(data_at(place)) for place in places(web)] == [6, 6]
    others = {place: set((place / "web" / "visits").rglob("*")) for place in places(web)}
    erased(web)
    gone = list(stray_copies(web, graph, ["seen"]))
    assert forget_copies(web, graph, ["seen"]) == len(gone) > 12
    assert [data_at(place) for place in places(web)] == [set(), set()]
    assert list(stray_copies(web, graph, ["seen"])) == []
    assert {place: set((place / "web" / "visits").rglob("*")) for place in places(web)} == others
    assert not replicate(web, graph).failed
    stored = {path.name for path in (local(web.settings.warehouse) / "web" / "seen").rglob("*.parquet")}
    assert [data_at(place) for place in places(web)] == [stored, stored], "what is left is copied anew"
    assert replicated_upto(web, graph)["seen"] == 3
    assert verify_replicas(web, is_deep=True).problems == ()
    assert verify(web).problems == ()


def test_a_place_that_does_not_answer_forbids_it(web: Project) -> None:
    check_places(web, web.graph("web"))
    b, _ = places(web)
    away = b.rename(b.with_name("away"))
    with pytest.raises(FirnlineError, match=r"ERASURE_BLOCKED.*/b"):
        check_places(web, web.graph("web"))
    away.rename(b)
    check_places(web, web.graph("web"))


def test_notes_of_what_was_erased_go_and_those_of_epochs_to_come_stay(web: Project) -> None:
    graph = web.graph("web")
    for name in ("visits", "seen"):
        web.failures("web").note(Failure(name, 3, 4, "a", "CODE", "text", False, "2026-01-01"))
    for epoch in (1, 3):
        Determinants(web.catalog, "web", "visits", epoch).log("who", "ann")
    assert forget_notes(web, graph, ["visits"], 3) == 2
    assert [each.collection for each in web.failures("web").open({})] == ["seen"]
    left = web.catalog.paths(f"{web.catalog.warehouse}/web/_determinants")
    assert [path.split("/")[-2] for path in left] == ["3"]


@pytest.mark.parametrize("point", ["trash.written", "erase.removed"])
def test_whoever_dies_while_a_log_is_dropped_leaves_nothing_that_the_next_does_not_find(web: Project, point: str) -> None:
    graph, folders = web.graph("web"), [local(web.settings.warehouse), *places(web)]

    def kept() -> list[Path]:
        return [path for folder in folders for path in (folder / "web" / "seen").rglob("*") if path.is_file()]

    def dropped() -> None:
        table = web.log("web", "seen").load()
        if table is not None:
            drop_log(web, graph, table)

    mortal = Mortal()
    mortal.kill_at = point
    with replaced(mortal), pytest.raises(Killed):
        dropped()
    known = {path for path in kept() if "replicas" in path.parts}
    assert known
    tidied = list(maintained(web, graph, no_engine, timedelta()))  # type: ignore[arg-type]
    assert [each.error for each in tidied if each.error] == []
    if point == "trash.written":
        assert known <= {*kept()}, "what nobody forgot has its notes"
    finish_drops(web, graph)
    assert bool(kept()) is (point == "trash.written"), "what was not forgotten is whole"
    if kept():
        assert not verify(web).problems
    dropped()
    assert kept() == []
    control = web.catalog.table("web", "_frontier")
    assert control is not None
    assert Trash(web.catalog).records(control) == []
    assert finish_drops(web, graph) == {}


def test_a_log_that_was_renamed_is_dropped_with_all_that_places_have_of_its_folder(web: Project) -> None:
    graph = web.graph("web")
    for place in places(web):
        (place / "web" / "seen" / "data").mkdir(exist_ok=True)
        (place / "web" / "seen" / "data" / "stray.parquet").write_text("ann")
    web.catalog.rename("web", "seen", "views")
    table = web.log("web", "views").load()
    assert table is not None
    drop_log(web, graph, table)
    assert [data_at(place) for place in places(web)] == [set(), set()]
    assert list(stray_copies(web, graph, ["views", "visits"])) == []


def test_pages_with_samples_of_rows_go(web: Project) -> None:
    pages = web.settings.work / "data_docs" / "index.html"
    pages.parent.mkdir()
    pages.write_text("ann")
    forget_notes(web, web.graph("web"), ["visits"], 3)
    assert pages.exists(), "of other collections, too"
    forget_pages(web)
    assert not pages.parent.exists()
