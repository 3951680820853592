"""Metadata, manifests and sidecars are written anew from what other files say, without a JVM; what stays lost is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from firnline.model.gap import Gap, Span
from firnline.plan.verification import Holding
from firnline.runtime import index, rebuild
from firnline.runtime.project import Project
from firnline.runtime.repair import planned, repair
from firnline.runtime.rewind import rewind
from firnline.runtime.verify import verify
from firnline.tables.trash import Trash
from firnline.world import replaced
from tests.happening import At, Killed, die
from tests.project import command
from tests.verifying import cut, data_file, local, taken
from tests.web_logs import copies, publish


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("repaired") / "project")


@pytest.fixture
def project(healthy: Callable[[], Project]) -> Project:
    return healthy()


def no_session() -> NoReturn:
    raise AssertionError("nothing is to be computed")


def rows(project: Project) -> list[tuple[int, int, int]]:
    found = project.catalog.iceberg("web", "seen").scan(selected_fields=("k", "_epoch", "_part")).to_arrow()
    return sorted(zip(*(found[name].to_pylist() for name in ("k", "_epoch", "_part")), strict=True))


def manifest(log: Holding, at: int) -> Path:
    (found,) = log.revisions[at].manifests or ()
    return local(found.file.path)


def sidecar(log: Holding, at: int) -> Path:
    found = log.revisions[at].sidecar
    assert found is not None
    return local(found.path)


DAMAGE: dict[str, tuple[str, Callable[[Holding], list[Path]]]] = {
    "a manifest": ("manifests", lambda log: [manifest(log, 1)]),
    "all manifests": ("manifests", lambda log: [manifest(log, at) for at in range(3)]),
    "the head's list": ("manifests", lambda log: [local(log.revisions[2].manifest_list.path)]),
    "an older list": ("lists", lambda log: [local(log.revisions[0].manifest_list.path)]),
    "all lists": ("manifests", lambda log: [local(each.manifest_list.path) for each in log.revisions]),
    "the head's list and a manifest": (
        "manifests",
        lambda log: [local(log.revisions[2].manifest_list.path), manifest(log, 0)],
    ),
    "a sidecar": ("sidecars", lambda log: [sidecar(log, 1)]),
    "the metadata file": ("metadata", lambda log: [local(log.metadata.path)]),
}


CUT = ("a manifest", "the head's list", "a sidecar", "the metadata file")


@pytest.mark.parametrize(("what", "how"), [*((what, "lost") for what in DAMAGE), *((what, "cut") for what in CUT)])
def test_what_is_not_rows_is_written_anew_without_spark(project: Project, what: str, how: str) -> None:
    before = rows(project)
    entries = [(entry.attempt, entry.lower, entry.description) for entry in project.log("web", "seen").entries()]
    kind, files = DAMAGE[what]
    for file in files(taken(project, "web", "seen")):
        file.unlink() if how == "lost" else cut(file, 60)
    (step,) = planned(project).steps
    assert (step.collection, step.what, step.how) == ("seen", kind, "rebuild")
    found = repair(project, no_session)
    assert found.is_whole, found
    assert rows(project) == before
    assert verify(project).problems == ()
    assert [(entry.attempt, entry.lower, entry.description) for entry in project.log("web", "seen").entries()] == entries
    publish(project, "seen", 3)
    assert verify(project).problems == (), "epochs go on from there"
    table = project.log("web", "seen").load()
    assert table is not None
    assert Trash(project.catalog).named(table), "maintenance knows what each snapshot names"


def test_a_rebuilt_sidecar_says_what_the_lost_one_said(project: Project) -> None:
    log = project.log("web", "seen")
    (_, entry, _) = log.entries()
    before = log.sidecar(entry)
    local(entry.sidecar).unlink()
    repair(project, no_session)
    assert log.sidecar(entry) == replace(before, left=()), "all but whose staging it took over"


def test_a_rebuilt_sidecar_is_of_the_generation_that_published_it(project: Project) -> None:
    log = project.log("web", "seen")
    (_, entry, _) = log.entries()
    before = log.sidecar(entry)
    rewind(project, project.graph("web"), 2, "seen", "ana")
    local(entry.sidecar).unlink()
    assert repair(project, no_session).is_whole
    assert log.sidecar(entry) == replace(before, left=())


def test_a_rebuilt_sidecar_of_a_feeds_events_says_what_was_taken_from_the_outside(project: Project) -> None:
    project.determinants("web", "visits", 0).log("kafka visits", {"upto": 7})
    publish(project, "visits__events", 0)
    log = project.log("web", "visits__events")
    (entry,) = log.entries()
    project.stash.put(index.line_of(log, entry))
    local(entry.sidecar).unlink()
    assert repair(project, no_session).is_whole
    assert log.sidecar(entry).determinants == {"kafka visits": {"upto": 7}}


@pytest.mark.parametrize("what", ["metadata", "list"])
def test_the_frontier_comes_back(project: Project, what: str) -> None:
    before = project.control("web").frontier()
    log = taken(project, "web", "_frontier")
    local(log.metadata.path if what == "metadata" else log.revisions[-1].manifest_list.path).unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    assert project.control("web").frontier() == before


def test_the_frontier_comes_back_as_far_as_it_was_when_a_log_lost_its_metadata_too(project: Project) -> None:
    before = project.control("web").frontier()
    for name in ("_frontier", "seen"):
        local(taken(project, "web", name).metadata.path).unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    assert sorted(each.step.collection for each in found.done) == ["_frontier", "seen"]
    assert project.control("web").frontier() == before


def test_metadata_that_somebody_else_rebuilt_first_is_left_alone(project: Project) -> None:
    control, graph = project.control("web"), project.graph("web")
    local(taken(project, "web", "_frontier").metadata.path).unlink()
    seen_before = taken(project, "web", "_frontier")
    assert repair(project, no_session).is_whole
    gap = Gap("g", "seen", (Span(1, 1, (1,)),), 2, "2026-01-01", "web.seen", "gone")
    control.change(lambda gaps: gaps.opened(gap))
    assert not rebuild.metadata(project, graph, seen_before)
    assert control.gaps().gaps == (gap,)


def test_several_kinds_of_damage_are_repaired_one_after_the_other(project: Project) -> None:
    before, log = rows(project), taken(project, "web", "seen")
    for file in (local(log.metadata.path), manifest(log, 0), local(log.revisions[1].manifest_list.path)):
        file.unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    assert [each.step.what for each in found.done] == ["metadata", "manifests", "lists"]
    assert rows(project) == before


@pytest.mark.parametrize(
    "files",
    [
        lambda log: [sidecar(log, 1), manifest(log, 0)],
        lambda log: [sidecar(log, 1), local(log.revisions[2].manifest_list.path), manifest(log, 2)],
    ],
    ids=["another one's manifest", "the head's list"],
)
def test_nothing_is_computed_where_sidecars_and_manifests_together_name_all_data_files(
    project: Project, files: Callable[[Holding], list[Path]]
) -> None:
    before = rows(project)
    for file in files(taken(project, "web", "seen")):
        file.unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    assert [each.step.what for each in found.done] == ["sidecars", "manifests", "lists"]
    assert rows(project) == before
    assert verify(project).problems == ()


def test_a_lost_data_file_whose_manifest_is_lost_too_is_still_told(project: Project) -> None:
    log = taken(project, "web", "seen")
    manifest(log, 1).unlink()
    local(data_file(log, 1, 1).file.path).unlink()
    steps = planned(project).steps
    assert [step.what for step in steps] == ["manifests"]
    with pytest.raises(AssertionError, match="nothing is to be computed"):
        repair(project, no_session)
    after, lists = planned(project).steps
    assert lists.what == "lists"
    assert (after.what, after.cells) == ("rows", ((1, 1),))


@pytest.mark.parametrize("point", ["repair.judged", "repair.described", "repair.committed"])
def test_a_repair_that_dies_is_done_by_the_next(project: Project, point: str) -> None:
    before = rows(project)
    manifest(taken(project, "web", "seen"), 1).unlink()
    with replaced(At(point, die)), pytest.raises(Killed):
        repair(project, no_session)
    assert repair(project, no_session).is_whole
    assert rows(project) == before


def test_the_command_shows_the_plan_repairs_and_ends_with_nought(project: Project) -> None:
    manifest(taken(project, "web", "seen"), 1).unlink()
    root = project.settings.root
    (step,) = command(root, "repair", "--dry-run", "--json")["steps"]
    assert (step["collection"], step["what"], step["epochs"]) == ("seen", "manifests", ["1"])
    assert "rebuild manifests" in command(root, "repair", "web.seen")
    assert "Nothing to do" in command(root, "repair")


def test_a_pipeline_that_does_not_load_fails_alone_and_only_if_it_is_damaged(project: Project) -> None:
    (project.settings.root / "include" / "pipelines" / "web.py").write_text("import nowhere")
    assert repair(project, no_session).is_whole
    assert planned(project).refusals == ()
    manifest(taken(project, "web", "seen"), 1).unlink()
    found = repair(project, no_session)
    assert [(each.pipeline, each.collection, each.error.code) for each in found.failed] == [
        ("web", "seen", "PIPELINE_UNLOADABLE")
    ]
    assert not found.is_whole
    assert [(each.collection, each.code) for each in planned(project).refusals] == [("seen", "PIPELINE_UNLOADABLE")]
