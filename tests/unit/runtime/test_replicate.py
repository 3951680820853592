"""What is published is copied to places, checked and recorded; places fail, fill up, rot and come back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.durability import place_id
from firnline.model.graph import Graph
from firnline.runtime.project import Project
from firnline.runtime.repair import planned as plan_of_repair
from firnline.runtime.repair import repair
from firnline.runtime.replicas import Replicas
from firnline.runtime.replicate import planned, replicate
from firnline.runtime.replicated import at_stake, replicated_upto, waiting
from firnline.runtime.verify_replicas import verify_replicas
from firnline.tables.log import PARTS
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Repair
from firnline.world import replaced
from tests.disk import enlarge, small_disk
from tests.happening import At, Killed, die
from tests.project import command
from tests.replicating import folders, lose, no_session, run, url, with_places
from tests.verifying import cut, data_file, flip, local, taken
from tests.web_logs import STORED, publish


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return with_places(tmp_path_factory.mktemp("replicated"))


@pytest.fixture
def project(healthy: Callable[[], Project]) -> Project:
    return healthy()


def held(place: Path) -> set[str]:
    """The paths of copies, without what is noted about them."""
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    return {path for path in files if "replicas/" not in path}


def needed(project: Project, collection: str) -> set[str]:
    """The present files of a log, by what its manifests, lists and sidecars name."""
    log, root = taken(project, "web", collection), local(project.settings.warehouse)
    paths = [log.metadata.path]
    table = project.log("web", collection).load()
    assert table is not None
    paths[0] = table.version
    for revision in log.published():
        paths += [revision.manifest_list.path, *(each.file.path for each in revision.manifests or ())]
        paths += [data.file.path for manifest in revision.manifests or () for data in manifest.data]
        if revision.sidecar is not None:
            paths.append(revision.sidecar.path)
    return {str(local(path).relative_to(root)) for path in paths}


def test_every_file_of_every_log_is_at_as_many_places_as_asked(project: Project) -> None:
    found, (b, c) = run(project), folders(project)
    assert (found.failed, found.waiting, found.recovery_time) == ((), 0, 0.0)
    assert len(found.copied) == 6
    for collection in ("visits", "seen"):
        assert needed(project, collection) <= held(b)
    for path in held(b):
        assert (b / path).read_bytes() == (local(project.settings.warehouse) / path).read_bytes()
    assert all("/_frontier/" in f"/{path}" or path.endswith(".metadata.json") for path in held(c)), "one replica is enough"
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 3}


def test_a_second_run_finds_nothing_to_do_and_only_the_newest_metadata_stays(project: Project) -> None:
    run(project)
    assert run(project).copied == ()
    publish(project, "visits", 3)
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 3}
    found = run(project, recovery_time=0.1)
    assert [(each.collection, each.lower) for each in found.copied] == [("visits", "3")]
    assert len([path for path in held(folders(project)[0]) if "visits/metadata" in path and path.endswith(".json")]) == 1
    assert replicated_upto(project, project.graph("web")) == {"visits": 4, "seen": 3}


def test_copies_give_way_to_epochs_until_the_recovery_time_is_reached(project: Project) -> None:
    publish(project, "visits", 3)  # an epoch that is due and not complete
    publish(project, "visits", 4)
    dry = planned(project, project.graph("web"))
    assert (dry.queued, dry.copied, dry.waiting, dry.recovery_time) == (2, (), 8, 4.0)
    assert at_stake(project, project.graph("web")) == 4.0
    assert run(project).copied == ()
    found = run(project, recovery_time=3.0)
    assert [(each.collection, each.lower) for each in found.copied] == [("visits", "0"), ("visits", "1"), ("seen", "0")]
    assert found.recovery_time < 3.0


@pytest.mark.parametrize("how", ["a file in its way", "not mounted"])
def test_a_place_that_is_out_is_told_and_caught_up_with_later(project: Project, how: str) -> None:
    run(project, replicas=(url(project, 0),))
    b, _ = folders(project)
    away = b.rename(b.with_name("away"))
    b.write_text("in the way") if how == "a file in its way" else b.mkdir()
    publish(project, "visits", 3)
    only = {"replicas": (url(project, 0),), "recovery_time": 0.1}
    found = run(project, **only)
    assert [(each.subject, each.error.code) for each in found.failed] == [(url(project, 0), "REPLICA_UNAVAILABLE")]
    assert (found.copied, found.waiting) == ((), 1)
    assert how != "not mounted" or list(b.iterdir()) == [], "nothing is written where a disk is missing"
    graph = replace(project.graph("web"), replicas=(url(project, 0),))
    (why,) = waiting(project, graph)
    assert (why.collection, why.point) == ("visits", 3)
    assert why.why == f"web.visits waits for {url(project, 0)}, which is unreachable since {why.since}"
    b.unlink() if b.is_file() else b.rmdir()
    away.rename(b)
    assert [each.lower for each in run(project, **only).copied] == ["3"]
    assert waiting(project, graph) == ()


def test_a_full_disk_keeps_what_it_has_and_is_caught_up_with_when_there_is_room(project: Project) -> None:
    graph = replace(project.graph("web"), replicas=(url(project, 0),))
    with small_disk(folders(project)[0], "100k") as b:
        found = replicate(project, graph)
        assert [(each.subject, "No space left" in each.error.what) for each in found.failed] == [(url(project, 0), True)]
        assert 0 < len(found.copied) < 6
        assert found.waiting == 6 - len(found.copied)
        assert verify_replicas(project, is_deep=True).problems == ()
        enlarge(b, "10m")
        after = replicate(project, graph)
        assert (after.failed, after.waiting) == ((), 0)
        assert needed(project, "seen") | needed(project, "visits") <= held(b)


def test_another_place_stands_in_for_one_that_is_out(project: Project) -> None:
    b, c = folders(project)
    b.write_text("in the way")
    found = run(project)
    assert [each.subject for each in found.failed] == [url(project, 0)]
    assert found.waiting == 0
    assert needed(project, "seen") <= held(c)


def test_a_place_of_another_warehouse_is_not_written_to(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    (mark,) = b.glob(f"web/_replicas/{place_id(url(project, 0))}/place.json")
    mark.write_text('{"warehouse": "file:///elsewhere", "id": "1"}')
    found = run(project)
    assert ["another warehouse" in each.error.what for each in found.failed] == [True]


def test_a_disk_that_was_replaced_is_filled_again_once_somebody_says_so(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    shutil.rmtree(b)
    b.mkdir()
    said = command(project.settings.root, "replicate", "web", "--json", code=1)
    assert said["web"]["failed"][0]["error"]["code"] == "REPLICA_UNAVAILABLE"
    assert "--renew" in said["web"]["failed"][0]["error"]["todo"]
    said = command(project.settings.root, "replicate", "web", "--renew", url(project, 0), "--json")
    assert len(said["web"]["copied"]) == 6
    assert needed(project, "seen") <= held(b)


def test_a_damaged_file_is_not_copied_as_if_it_were_good(project: Project) -> None:
    cut(local(data_file(taken(project, "web", "seen"), 1, 1).file.path))
    found = run(project)
    assert [(each.subject, each.error.code) for each in found.failed] == [("web.seen", "LOG_UNREADABLE")]
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 1}


def test_a_log_that_cannot_be_read_keeps_no_other_from_being_copied(project: Project) -> None:
    table = project.log("web", "visits").load()
    assert table is not None
    local(table.version).unlink()
    found = run(project)
    assert [each.subject for each in found.failed] == ["web.visits"]
    assert needed(project, "seen") <= held(folders(project)[0])


def test_a_frontier_that_lost_its_list_is_told_and_the_place_is_not_out(project: Project) -> None:
    local(taken(project, "web", "_frontier").revisions[-1].manifest_list.path).unlink()
    found = run(project)
    assert [(each.subject, each.error.code) for each in found.failed] == [("web._frontier", "LOG_UNREADABLE")]
    assert needed(project, "seen") <= held(folders(project)[0])
    assert Replicas(project, project.graph("web")).outages() == {}


def test_a_warehouse_that_fails_is_no_outage_of_a_place(project: Project) -> None:
    replicas = Replicas(project, project.graph("web"))
    with pytest.raises(FirnlineError, match="STORAGE_UNAVAILABLE"):
        replicas.failed(url(project, 0), FirnlineError("STORAGE_UNAVAILABLE", "full"))
    assert (replicas.out, replicas.outages()) == ({}, {})


@pytest.mark.parametrize("point", ["replicate.copied", "replicate.recorded"])
def test_whoever_dies_is_followed_by_one_that_goes_on(project: Project, point: str) -> None:
    with replaced(At(point, die, 2)), pytest.raises(Killed):
        run(project)
    found = run(project)
    assert (found.failed, found.waiting) == ((), 0)
    assert len(found.copied) == (5 if point == "replicate.copied" else 4)
    assert needed(project, "seen") | needed(project, "visits") <= held(folders(project)[0])


def test_two_at_once_end_as_one(project: Project) -> None:
    with replaced(At("replicate.copied", lambda: run(project))):
        found = run(project)
    assert (found.failed, found.waiting) == ((), 0)
    assert run(project).copied == ()


def levels(graph: Graph, **of: str) -> Graph:
    def changed(name: str, level: str) -> tuple[str, int]:
        return level, 2 if level == "remote" else 1

    collections = []
    for each in graph.collections:
        level, durability = changed(each.name, of.get(each.name, "remote"))
        collections.append(replace(each, level=level, durability=durability))  # type: ignore[arg-type]
    return replace(graph, collections=tuple(collections))


@pytest.mark.parametrize(("level", "before", "after"), [("disk", 3, 3), ("memory", 0, 3), ("remote", 0, 3)])
def test_what_need_not_be_copied_is_not_and_is_safe_when_its_inputs_are(
    project: Project, level: str, before: int, after: int
) -> None:
    graph = levels(project.graph("web"), seen=level)
    assert replicated_upto(project, graph) == {"visits": 0, "seen": before}
    found = replicate(project, graph)
    assert {each.collection for each in found.copied} == ({"visits", "seen"} if level == "remote" else {"visits"})
    assert replicated_upto(project, graph) == {"visits": 3, "seen": after}


def test_unknown_protocols_are_told_with_a_code(project: Project) -> None:
    found = run(project, replicas=("nowhere://x/y",))
    assert [each.error.code for each in found.failed] == ["REPLICA_UNAVAILABLE"]
    replicas = Replicas(project, project.graph("web"))
    with pytest.raises(FirnlineError, match="no replica of 'web'"):
        replicas.renew("file:///elsewhere")


def test_a_damaged_copy_is_noticed_not_counted_and_made_again(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    data = data_file(taken(project, "web", "seen"), 1, 1).file.path
    copy = b / local(data).relative_to(local(project.settings.warehouse))
    flip(copy)
    assert verify_replicas(project).problems == (), "its size is right"
    said = command(project.settings.root, "verify", "web", "--replicas", "--deep", "--json", code=1)
    assert [(each["collection"], each["what"]) for each in said["problems"]] == [("seen", "its content is not what was copied")]
    assert said["withdrawn"] == 1
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 1}
    assert [(each.collection, each.lower) for each in run(project).copied] == [("seen", "1")]
    assert verify_replicas(project, is_deep=True).problems == ()
    assert copy.read_bytes() == local(data).read_bytes()


def test_a_copy_that_is_gone_is_told_and_a_place_that_is_out_loses_nothing(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    (b / local(data_file(taken(project, "web", "seen"), 2, 0).file.path).relative_to(local(project.settings.warehouse))).unlink()
    (bad,) = verify_replicas(project, "web.seen").problems
    assert (bad.collection, bad.place, bad.what) == ("seen", url(project, 0), "the copy is not there")
    away = b.rename(b.with_name("away"))
    found = verify_replicas(project)
    assert (list(found.out), found.problems) == ([url(project, 0)], ())
    away.rename(b)
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 2}


def test_copies_of_a_pipeline_that_does_not_load_are_not_looked_at_and_that_is_told(project: Project) -> None:
    run(project)
    (project.settings.root / "include" / "pipelines" / "web.py").write_text("import nowhere")
    found = verify_replicas(project)
    assert {name: error.code for name, error in found.broken.items()} == {"web": "PIPELINE_UNLOADABLE"}
    assert "PIPELINE_UNLOADABLE" in command(project.settings.root, "verify", "--replicas", code=1)


@pytest.mark.parametrize("how", ["lost", "cut"])
@pytest.mark.parametrize("what", ["manifest", "list", "sidecar", "metadata", "all"])
def test_what_is_not_rows_comes_back_to_the_byte_without_spark(project: Project, what: str, how: str) -> None:
    run(project)
    files = lose(project, what)
    before = {path: path.read_bytes() for path in files}
    snapshot = project.log("web", "seen").head()
    for path in files:
        path.unlink() if how == "lost" else cut(path, 60)
    steps = plan_of_repair(project).steps
    assert {(each.collection, each.how, each.source) for each in steps} == {
        ("seen", "restore", f"from replica {url(project, 0)}")
    }
    found = repair(project, no_session)
    assert found.is_whole, found
    assert {each.step.how for each in found.done} == {"restore"}
    assert {path: path.read_bytes() for path in files} == before
    assert project.log("web", "seen").head() == snapshot, "nothing had to be exchanged"
    assert replicated_upto(project, project.graph("web")) == {"visits": 3, "seen": 3}


def test_the_dry_run_says_from_where(project: Project) -> None:
    run(project)
    lose(project, "manifest")[0].unlink()
    said = command(project.settings.root, "repair", "--dry-run", "--json")
    assert [each["source"] for each in said["steps"]] == [f"from replica {url(project, 0)}"]


def test_a_damaged_copy_is_not_used_and_what_it_held_is_made_again(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    (manifest,) = lose(project, "manifest")
    flip(b / manifest.relative_to(local(project.settings.warehouse)))
    manifest.unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    assert [each.step.what for each in found.done] == ["manifests", "lists"]
    assert replicated_upto(project, project.graph("web"))["seen"] == 1, "a repair was made that no place has"
    assert run(project).failed == ()
    assert replicated_upto(project, project.graph("web"))["seen"] == 3


def test_another_replica_is_used_when_one_is_out_or_lags(project: Project) -> None:
    graph = levels(project.graph("web"))
    every = replace(graph, collections=tuple(replace(each, durability=3) for each in graph.collections))
    replicate(project, every)
    b, _ = folders(project)
    shutil.rmtree(b)
    (manifest,) = lose(project, "manifest")
    manifest.unlink()
    (done,) = repair(project, no_session).done
    assert done.step.source == f"from replica {url(project, 1)}"


def test_a_whole_log_comes_back_but_for_its_rows(project: Project) -> None:
    """Rows need Spark: that is another test."""
    run(project)
    folder = local(project.settings.warehouse) / "web" / "seen"
    data = folder / "data"
    kept = shutil.copytree(data, folder.parent / "kept")
    shutil.rmtree(folder)
    shutil.copytree(kept, data)
    shutil.rmtree(kept)
    found = repair(project, no_session)
    assert found.is_whole, found
    assert replicated_upto(project, project.graph("web"))["seen"] == 0, "its records are gone, too"
    run(project)
    assert replicated_upto(project, project.graph("web"))["seen"] == 3


def test_a_rescaled_log_is_safe_where_its_new_files_are(project: Project) -> None:
    run(project)
    log, warehouse = project.log("web", "seen"), local(project.settings.warehouse)
    table = log.load()
    assert table is not None
    entries = list(log.entries())
    for entry in entries:
        rows = project.catalog.iceberg("web", "seen").scan(row_filter=f"_epoch = {entry.lower}").to_arrow()
        log.stage(f"r{entry.attempt}", entry.lower, rows.set_column(3, STORED.field(3), pa.array([0] * len(rows), pa.int32())))
    staged = {entry.attempt: log.staged(f"r{entry.attempt}") for entry in entries}
    recut = []
    for entry in entries:
        sidecar = log.sidecar(entry)
        whole = sum(sidecar.digests.values(), Digest())
        recut.append(log.recut("r", replace(sidecar, digests={(entry.lower, 0): whole}, parts=1), staged[entry.attempt]))
    out = tuple(file.path for file in log.held(table))
    note = Repair("seen", "r", (), out, (), 0, 0, 0.1, parts=1, recut=tuple(recut))
    change = Exchange(frozenset(out), tuple(staged.values()), properties={PARTS: "1"})
    assert log.exchange(0, None, note, change, 3) is Verdict.FREE
    assert replicated_upto(project, project.graph("web"))["seen"] == 0, "what is copied is not what is read"
    run(project)
    assert replicated_upto(project, project.graph("web"))["seen"] == 3
    b, _ = folders(project)
    assert needed(project, "seen") <= held(b)
    for path in (local(each) for each in recut):
        assert (b / path.relative_to(warehouse)).read_bytes() == path.read_bytes()
    local(recut[0]).unlink()
    assert repair(project, no_session).is_whole


def test_what_a_batch_was_given_since_is_copied_with_the_next_one(project: Project) -> None:
    """As when a snapshot is not kept any more and the oldest that is has its manifests."""
    graph, b = project.graph("web"), folders(project)[0]
    run(project)
    replicas, place = Replicas(project, graph), url(project, 0)
    record = replicas.record("visits", place, "visits0")
    assert record is not None
    given = [file.path for file in record.files if file.path.endswith(".parquet")]
    replicas.keep("visits", record.without(given), is_once=False)
    for path in given:
        (b / path).unlink()
    publish(project, "visits", 3)
    assert len(run(project, recovery_time=0.1).copied) == 1
    assert all((b / path).exists() for path in given)
    assert replicas.record("visits", place, "visits0") != record.without(given)
