"""Logs compared with storage, without a JVM: damage is told with its collection, epoch and part, the rest is looked at too."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.plan.frontier import Frontier
from firnline.plan.verification import Holding
from firnline.runtime.project import Project
from firnline.runtime.verify import Verified, verify
from tests.project import command
from tests.verifying import all_told, cut, data_file, flip, local, taken
from tests.web_logs import copies, publish, staged


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("healthy") / "project")


@pytest.fixture
def project(healthy: Callable[[], Project]) -> Project:
    return healthy()


def seen(project: Project) -> Holding:
    return taken(project, "web", "seen")


def rest_is_verified(found: Verified) -> bool:
    return found.collections == 3


def test_healthy_logs_have_no_problem(project: Project) -> None:
    found = verify(project)
    assert found.problems == ()
    assert found.collections == 3, "the control table is one, too"
    assert found.files > 2 * 3 * 2
    assert found.bytes > 0
    assert found.staged == 0
    assert found.unreferenced == 2 * 3 * 2, "the manifest and the list of each staged snapshot"


def test_a_pipeline_and_a_collection_can_be_asked_for(project: Project) -> None:
    assert verify(project, "web").collections == 3
    assert verify(project, "web.seen").collections == 1
    with pytest.raises(FirnlineError, match="NO_SUCH_PIPELINE"):
        verify(project, "shop")
    with pytest.raises(FirnlineError, match="NO_SUCH_COLLECTION"):
        verify(project, "web.other")


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (Path.unlink, "missing"),
        (cut, "truncated"),
        (lambda path: path.write_bytes(path.read_bytes() + b"more"), "altered"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "unreadable"),
    ],
)
def test_a_damaged_data_file_is_told_with_its_epoch_and_part(
    project: Project, damage: Callable[[Path], object], kind: str
) -> None:
    file = data_file(seen(project), 1, 1).file.path
    damage(local(file))
    found = verify(project)
    assert all_told(found) == [("seen", kind, (1,), (1,))]
    assert found.problems[0].file == file
    assert rest_is_verified(found)


def test_a_data_file_with_other_rows_of_the_same_length_is_altered(project: Project) -> None:
    files = {part: local(data_file(seen(project), 1, part).file.path) for part in (0, 1)}
    small, large = sorted(files, key=lambda part: files[part].stat().st_size)
    other, size = files[small].read_bytes(), files[large].stat().st_size
    at = len(other) - 8 - int.from_bytes(other[-8:-4], "little")
    files[large].write_bytes(other[:at] + bytes(size - len(other)) + other[at:])
    assert all_told(verify(project)) == [("seen", "altered", (1,), (large,))]


@pytest.mark.parametrize(("damage", "kind"), [(Path.unlink, "missing"), (cut, "truncated")])
def test_a_damaged_manifest_is_told_with_all_that_it_named(project: Project, damage: Callable[[Path], object], kind: str) -> None:
    (manifest,) = seen(project).revisions[1].manifests or ()
    damage(local(manifest.file.path))
    found = verify(project)
    assert all_told(found) == [("seen", kind, (1,), (0, 1))]
    assert rest_is_verified(found)


def test_a_manifest_with_a_flipped_byte_is_unreadable(project: Project) -> None:
    (manifest,) = seen(project).revisions[1].manifests or ()
    flip(local(manifest.file.path))
    assert all_told(verify(project)) == [("seen", "unreadable", (1,), (0, 1))]


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(
    ("damage", "kind"), [(Path.unlink, "missing"), (cut, "truncated"), (lambda path: cut(path, 1), "truncated")]
)
def test_a_damaged_manifest_list_does_not_hide_other_damage(
    project: Project, at: int, damage: Callable[[Path], object], kind: str
) -> None:
    log = seen(project)
    damage(local(log.revisions[at].manifest_list.path))
    local(data_file(log, 0, 0).file.path).unlink()
    found = verify(project)
    assert sorted(all_told(found)) == sorted([("seen", kind, (at,), (0, 1)), ("seen", "missing", (0,), (0,))])
    assert rest_is_verified(found)


def test_without_any_manifest_list_the_data_files_are_unknown(project: Project) -> None:
    for revision in seen(project).revisions[:2]:
        local(revision.manifest_list.path).unlink()
    assert all_told(verify(project)) == [("seen", "missing", (epoch,), (0, 1)) for epoch in (0, 1)]
    local(seen(project).revisions[2].manifest_list.path).unlink()
    assert all_told(verify(project)) == [("seen", "missing", (epoch,), (0, 1)) for epoch in (0, 1, 2)]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(None, "missing"), (b"", "unreadable"), (b"[]", "unreadable"), (b'{"version": 2', "unreadable")],
)
def test_a_damaged_sidecar_is_told_with_its_epoch(project: Project, content: bytes | None, kind: str) -> None:
    sidecar = seen(project).revisions[1].sidecar
    assert sidecar is not None
    if content is None:
        local(sidecar.path).unlink()
    else:
        local(sidecar.path).write_bytes(content)
    found = verify(project)
    assert all_told(found) == [("seen", kind, (1,), ())]
    assert rest_is_verified(found)


@pytest.mark.parametrize("name", ["attempt", "lower", "upper", "fingerprint", "plan"])
def test_a_sidecar_that_disagrees_with_its_summary_is_inconsistent(project: Project, name: str) -> None:
    sidecar = seen(project).revisions[1].sidecar
    assert sidecar is not None
    document = json.loads(local(sidecar.path).read_bytes())
    document[name] = 7 if name in ("lower", "upper") else "other"
    local(sidecar.path).write_text(json.dumps(document))
    assert all_told(verify(project)) == [("seen", "inconsistent", (1,), (0, 1))]


def test_digests_that_do_not_add_up_to_the_summary_are_inconsistent(project: Project) -> None:
    sidecar = seen(project).revisions[1].sidecar
    assert sidecar is not None
    document = json.loads(local(sidecar.path).read_bytes())
    document["digests"][0]["rows"] += 1
    document["digests"][1]["weight"] -= 1
    local(sidecar.path).write_text(json.dumps(document))
    assert [problem.what.split()[0] for problem in verify(project).problems] == ["rows", "weight"]


def test_rows_that_no_file_holds_are_inconsistent(project: Project) -> None:
    publish(project, "seen", 3, {(3, part): Digest(1, 1, 0, 0) for part in (0, 1, 2)})
    assert all_told(verify(project)) == [("seen", "inconsistent", (3,), (2,))]


@pytest.mark.parametrize(("content", "kind"), [(None, "missing"), (b"{", "unreadable"), (b"{}", "unreadable")])
@pytest.mark.parametrize("collection", ["seen", "_frontier"])
def test_without_its_metadata_file_a_log_cannot_be_read_and_the_rest_is_verified(
    project: Project, collection: str, content: bytes | None, kind: str
) -> None:
    version = project.catalog.version("web", collection)
    assert version is not None
    local(data_file(taken(project, "web", "visits"), 0, 0).file.path).unlink()
    if content is None:
        local(version).unlink()
    else:
        local(version).write_bytes(content)
    found = verify(project)
    assert sorted(all_told(found)) == sorted([(collection, kind, (), ()), ("visits", "missing", (0,), (0,))])
    assert rest_is_verified(found)


def test_a_metadata_file_that_contradicts_itself_is_unreadable(project: Project) -> None:
    version = project.catalog.version("web", "seen")
    assert version is not None
    document = json.loads(local(version).read_bytes())
    local(version).write_text(json.dumps({**document, "current-snapshot-id": 7}))
    assert all_told(verify(project)) == [("seen", "unreadable", (), ())]


def test_a_log_whose_folder_is_gone_is_missing(project: Project) -> None:
    version = project.catalog.version("web", "seen")
    assert version is not None
    shutil.rmtree(local(version).parent.parent)
    assert all_told(verify(project)) == [("seen", "missing", (), ())]


def test_what_is_staged_and_what_nobody_names_is_no_damage(project: Project) -> None:
    before = verify(project).unreferenced
    table = project.catalog.iceberg("web", "seen")
    staged(table, "dead", 3)
    log = seen(project)
    (manifest,) = log.revisions[-1].manifests or ()
    local(manifest.data[0].file.path).unlink()
    stray = local(f"{table.location()}/data/stray.parquet")
    stray.write_bytes(b"12345")
    found = verify(project)
    assert found.problems == ()
    assert found.staged == 1
    assert [(each.kind, each.epochs, each.parts) for each in found.staged_problems] == [("missing", (3,), (0,))]
    assert found.unreferenced == before + 1


def test_a_frontier_beyond_a_log_is_inconsistent(project: Project) -> None:
    project.control("web").advance(Frontier(4, {"visits": 0, "seen": 0, "gone": 0}))
    publish(project, "visits", 3)
    found = verify(project)
    assert sorted(all_told(found)) == [("gone", "missing", (), ()), ("seen", "inconsistent", (3,), ())]
    assert all_told(verify(project, "web.seen")) == [("seen", "inconsistent", (3,), ())]
    assert all_told(verify(project, "web.visits")) == []


def test_holes_doubles_and_foreign_snapshots_are_inconsistent(project: Project) -> None:
    version = project.catalog.version("web", "seen")
    assert version is not None
    document = json.loads(local(version).read_bytes())
    summaries = [snapshot["summary"] for snapshot in document["snapshots"]]
    second, third = (each for each in summaries if each.get("firnline.lower") in ("1", "2"))
    second["firnline.upper"] = "5"
    del third["firnline.lower"]
    local(version).write_text(json.dumps(document))
    whats = [problem.what for problem in verify(project, "web.seen").problems]
    assert any("upper is 2 by the sidecar and 5 by the summary" in what for what in whats)
    assert any("is not Firnline's" in what for what in whats)
    third["firnline.lower"] = "2"
    local(version).write_text(json.dumps(document))
    assert any("there is an overlap: one snapshot ends at 5" in problem.what for problem in verify(project, "web.seen").problems)


def test_a_footer_longer_than_the_tail_is_read_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firnline.tables.inventory._TAIL", 12)
    assert data_file(seen(project), 0, 1).found == 2


def test_the_command_says_all_well_or_what_is_wrong(project: Project) -> None:
    root = project.settings.root
    assert command(root, "verify").startswith("all well: 3 collections, ")
    local(data_file(seen(project), 1, 1).file.path).unlink()
    (problem,) = command(root, "verify", "web.seen", "--json", code=1)["problems"]
    assert (problem["collection"], problem["epochs"], problem["parts"], problem["kind"]) == ("seen", ["1"], [1], "missing")
    assert "1 problem in 3 collections" in command(root, "verify", code=1)
    (root / "include" / "pipelines" / "web.py").write_text("import nothing_of_this_name")
    assert command(root, "verify", "web", "--json", code=1)["problems"] == [problem], "code that does not load is in no way"
