"""Manifest lists of snapshots that only a rewind, a merge or their undo still need come back in their place, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from firnline.runtime.branch import create, drop
from firnline.runtime.maintain import tidied, undone
from firnline.runtime.project import Project
from firnline.runtime.repair import planned, repair
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.verify import verify
from firnline.tables.metadata import Metadata, Snapshot
from firnline.tables.trash import Trash
from tests.verifying import cut, local
from tests.web_logs import copies, merge, publish, staged


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("relisted") / "project")


@pytest.fixture
def project(healthy: Callable[[], Project]) -> Project:
    return healthy()


def no_session() -> NoReturn:
    raise AssertionError("nothing is to be computed")


def seen(project: Project) -> Metadata:
    table = project.log("web", "seen").load()
    assert table is not None
    return table


def line(project: Project) -> list[Snapshot]:
    return [*seen(project).main_line()][::-1]


def lists(project: Project) -> list[Path]:
    return [local(each.manifest_list) for each in line(project)]


def named(project: Project) -> list[list[tuple[str, int, int]]]:
    """The data files of each snapshot of the log, the oldest first, as Iceberg's own reader finds them."""
    table = project.catalog.iceberg("web", "seen")
    scans = (table.scan(snapshot_id=each.id).plan_files() for each in line(project))
    return [sorted((task.file.file_path, task.file.record_count, task.file.partition[0]) for task in tasks) for tasks in scans]


def take_back(project: Project, to: int) -> None:
    rewind(project, project.graph("web"), to, "seen", "ana")


def is_mended(project: Project) -> bool:
    found = repair(project, no_session)
    assert found.is_whole, found
    assert [each.step.what for each in found.done] == ["lists"]
    return verify(project).problems == ()


@pytest.mark.parametrize(
    ("lost", "damage"), [((0,), Path.unlink), ((2,), cut), ((3,), Path.unlink), ((1, 2, 3), cut), ((0, 1, 2, 3), Path.unlink)]
)
def test_a_list_before_a_rewind_comes_back_as_it_was(
    project: Project, lost: Sequence[int], damage: Callable[[Path], object]
) -> None:
    take_back(project, 1)
    publish(project, "seen", 1, attempt="again")
    before, snapshots = named(project), len(line(project))
    paths = lists(project)
    for at in lost:
        damage(paths[at])
    assert {local(each.file or "") for each in verify(project).problems} == {paths[at] for at in lost}
    (step,) = planned(project).steps
    assert (step.what, step.how, len(step.lists)) == ("lists", "rebuild", len(lost))
    assert is_mended(project)
    assert named(project) == before
    assert len(line(project)) == snapshots, "no snapshot is added"
    undo(project, project.graph("web"), "ana")
    assert verify(project).problems == ()


def test_a_manifest_that_only_older_lists_name_is_named_anew(project: Project) -> None:
    take_back(project, 1)
    before = named(project)
    (manifest,) = project.catalog.manifests(line(project)[0].manifest_list)
    own = [each.path for each in project.catalog.manifests(line(project)[2].manifest_list) if each != manifest]
    for path in own:
        local(path).unlink()
    assert {each.file for each in verify(project).problems} == set(own)
    assert is_mended(project)
    assert named(project) == before


def merged(project: Project) -> None:
    """The log has one layer of two epochs, whose snapshots are dropped, and two that are older."""
    publish(project, "seen", 3)
    merge(project, "seen", 2)
    list(tidied(project, project.graph("web"), timedelta()))


def errors(project: Project) -> list[str]:
    """What maintenance meets."""
    return [each.error.code for each in tidied(project, project.graph("web"), timedelta()) if each.error]


@pytest.mark.parametrize("lost", [(0,), (0, 1)])
def test_a_list_comes_back_though_what_it_stood_on_is_dropped(project: Project, lost: Sequence[int]) -> None:
    merged(project)
    before = named(project)
    assert [len(files) for files in before] == [6, 8, 6]
    for at in lost:
        lists(project)[at].unlink()
    assert is_mended(project)
    assert named(project) == before


def test_what_nobody_knows_any_more_and_nobody_reads_keeps_nothing_from_being_removed(project: Project) -> None:
    merged(project)
    of_first, *_, of_merge = named(project)
    for at in (0, 1):
        lists(project)[at].unlink()
    for path, *_ in {*of_first} - {*of_merge}:
        local(path).unlink()
    merge(project, "visits")
    assert errors(project) == ["LOG_UNREADABLE"]
    assert is_mended(project)
    assert [len(files) for files in named(project)] == [2, 4, 6]
    assert errors(project) == []


def test_staging_whose_list_is_lost_keeps_nothing_from_being_removed(project: Project) -> None:
    merge(project, "seen")
    made = staged(project.catalog.iceberg("web", "seen"), "dead", 3)
    local(seen(project).snapshots[made].manifest_list).unlink()
    assert errors(project) == []
    assert verify(project).problems == ()


def test_the_end_of_an_older_generation_is_not_made_of_what_is_left(project: Project) -> None:
    take_back(project, 1)
    last = line(project)[2]
    before = named(project)
    local(last.manifest_list).unlink()
    lists(project)[1].unlink()
    for path, *_ in {*before[2]} - {*before[0]}:
        local(path).unlink()
    sidecar = local(last.summary["firnline.sidecar"])
    sidecar.unlink()
    (failed,) = repair(project, no_session).failed
    assert failed.error.code == "NOT_REPAIRABLE"
    assert str(last.id) in failed.error.what


def test_a_list_before_a_merge_comes_back_and_the_merge_is_undone(project: Project) -> None:
    merge(project, "seen")
    for path in lists(project)[:3]:
        path.unlink()
    assert is_mended(project)
    assert [each.layers for each in undone(project, project.graph("web"))] == [3]
    assert verify(project).problems == ()


def test_a_branch_mends_a_list_that_it_shares_where_its_pipeline_finds_it(project: Project) -> None:
    graph = project.graph("web")
    create(project, graph, "what_if", 2, None)
    before = named(project)
    second = project.catalog.manifests(line(project)[1].manifest_list)
    (manifest,) = {*second} - {*project.catalog.manifests(line(project)[0].manifest_list)}
    for path in (lists(project)[0], lists(project)[1]):
        path.unlink()
    assert {each.pipeline for each in verify(project).problems} == {"web", "web__what_if"}
    assert repair(project, no_session, "web__what_if").is_whole
    assert verify(project).problems == ()
    assert named(project) == before
    drop(project, "web", "what_if")
    assert errors(project) == []
    assert local(manifest.path).exists()
    assert named(project) == before


@pytest.mark.parametrize("at", [0, -1])
def test_lists_of_the_control_table_come_back(project: Project, at: int) -> None:
    control = project.control("web")
    control.let_go(lambda _: 0)
    before = control.agreement()
    table = project.catalog.table("web", "_frontier")
    assert table is not None
    local([*table.main_line()][at].manifest_list).unlink()
    assert repair(project, no_session).is_whole
    assert control.agreement() == before
    table = project.catalog.table("web", "_frontier")
    assert table is not None
    assert Trash(project.catalog).named(table)
