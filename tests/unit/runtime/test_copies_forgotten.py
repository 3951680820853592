"""Copies that nothing needs any more: forgotten once what stands for them is there, and not before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.runtime.maintain import is_tidy, tidied
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.replicas import Replicas
from firnline.runtime.replicate import forget
from firnline.runtime.replicated import replicated_upto
from firnline.runtime.verify import verify
from firnline.runtime.verify_replicas import verify_replicas
from firnline.tables.control import TABLE
from firnline.tables.layers import newest_exchange
from firnline.tables.log import ATTEMPT
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Sidecar
from firnline.tables.trash import Trash
from tests.replicating import folders, lose, no_session, run, with_places
from tests.verifying import data_file, flip, local, taken
from tests.web_logs import STORED, publish


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return with_places(tmp_path_factory.mktemp("replicated"))


@pytest.fixture
def project(healthy: Callable[[], Project]) -> Project:
    return healthy()


def test_copies_are_forgotten_only_when_what_stands_for_them_is_there(project: Project) -> None:
    graph = project.graph("web")
    run(project)
    b, _ = folders(project)
    (manifest,) = lose(project, "manifest")
    inner = manifest.relative_to(local(project.settings.warehouse))
    flip(b / inner)
    manifest.unlink()
    repair(project, no_session)
    assert (b / inner).exists()
    old = data_file(taken(project, "web", "visits"), 0, 0).file.path
    publish(project, "seen", 3)
    assert forget(project, graph, [f"file://{manifest}"]) == {f"file://{manifest}"}, "no record speaks of it"
    newest = next(project.log("web", "visits").entries())
    assert newest.attempt == "visits2"
    away = b.rename(b.with_name("away"))
    assert forget(project, graph, [old]) == set(), "its place does not answer"
    away.rename(b)
    assert forget(project, graph, [old]) == {old}
    assert not (b / local(old).relative_to(local(project.settings.warehouse))).exists()
    assert verify_replicas(project).problems == ()


def test_copies_are_forgotten_at_a_place_that_is_not_needed_any_more(project: Project) -> None:
    graph, (b, c) = project.graph("web"), folders(project)
    b.write_text("in the way")
    run(project)
    (manifest,) = lose(project, "manifest")
    inner = manifest.relative_to(local(project.settings.warehouse))
    manifest.unlink()
    away = c.rename(c.with_name("away"))
    assert repair(project, no_session).is_whole
    b.unlink()
    assert run(project).waiting == 0
    away.rename(c)
    assert (c / inner).exists()
    assert forget(project, graph, [f"file://{manifest}"]) == {f"file://{manifest}"}
    assert not (c / inner).exists()
    assert verify_replicas(project).problems == ()


def merge(project: Project, name: str, lower: int, upper: int) -> list[str]:
    """Merge layers of ``visits``; the data files that went out."""
    log = project.log("web", "visits")
    table = log.load()
    assert table is not None
    newest = newest_exchange(table)
    inside = [entry for entry in log.entries() if lower <= entry.lower and entry.description.upper <= upper]
    out = sorted(file.path for file in log.held(table) if lower <= file.first < upper)
    rows = [
        {"k": n, "_epoch": upper - 1, "_diff": 1, "_part": part}
        for epoch in range(lower, upper)
        for part in (0, 1)
        for n in range(part + 1)
    ]
    project.catalog.iceberg("web", "visits").append(
        pa.Table.from_pylist(rows, schema=STORED), snapshot_properties={ATTEMPT: name}, branch=None
    )
    counted = {(upper - 1, part): Digest((part + 1) * (upper - lower), (part + 1) * (upper - lower), 0, part) for part in (0, 1)}
    attempts = tuple(entry.attempt for entry in inside)
    note = Sidecar("visits", lower, upper, name, Fingerprint("f" * 32, "p"), {}, counted, 1.0, merged=attempts, out=tuple(out))
    change = Exchange(frozenset(out), (log.staged(name),))
    assert log.exchange(0, None if newest is None else newest.id, note, change) is Verdict.FREE
    return out


def test_a_merge_is_copied_and_then_what_it_stands_for_is_forgotten(project: Project) -> None:
    graph, (b, _) = project.graph("web"), folders(project)
    run(project)
    out = merge(project, "m", 0, 2)
    assert verify(project).problems == ()
    assert replicated_upto(project, graph)["visits"] == 2, "what is consolidated is not gone behind"
    assert forget(project, graph, out) == set(), "the merge is not there yet"
    found = run(project)
    assert [(each.collection, each.lower, each.upper) for each in found.copied] == [("visits", "0", "2")]
    assert replicated_upto(project, graph)["visits"] == 3
    assert verify_replicas(project, is_deep=True).problems == ()
    assert forget(project, graph, out) == set(out)
    below = local(project.settings.warehouse)
    assert not any((b / local(path).relative_to(below)).exists() for path in out)
    assert verify_replicas(project, is_deep=True).problems == ()
    assert run(project).copied == ()
    for path in out:
        local(path).unlink()
    publish(project, "visits", 3)
    run(project, recovery_time=0.1)
    assert replicated_upto(project, graph)["visits"] == 4
    log = taken(project, "web", "visits")
    lists = [local(each.manifest_list.path) for each in log.unsuperseded()]
    manifests = [local(manifest.file.path) for each in log.published() for manifest in each.manifests or ()]
    before = {path: path.read_bytes() for path in (*lists, *manifests)}
    for path in before:
        path.unlink()
    done = repair(project, no_session)
    assert done.is_whole, done
    assert {each.step.how for each in done.done} == {"restore"}
    assert {path: path.read_bytes() for path in before} == before


def test_maintenance_removes_files_with_their_copies_or_not_yet(project: Project) -> None:
    graph, (b, _) = project.graph("web"), folders(project)
    warehouse = local(project.settings.warehouse)
    run(project)
    out = [local(path).relative_to(warehouse) for path in merge(project, "m", 0, 3)]

    def stored() -> list[int]:
        done = list(tidied(project, graph, timedelta()))
        assert [each.error for each in done if each.error] == []
        assert verify(project).problems == ()
        return [sum((place / path).exists() for path in out) for place in (warehouse, b)]

    assert stored() == [len(out)] * 2, "the merge is not copied yet"
    run(project)
    b.rename(b.with_name("away"))
    assert stored() == [len(out), 0], "the place does not answer"
    b.with_name("away").rename(b)
    assert stored() == [0, 0]
    assert verify_replicas(project, is_deep=True).problems == ()
    assert is_tidy(project, graph, timedelta())


def test_copies_of_a_retired_log_go_with_its_files(project: Project) -> None:
    run(project)
    b, c = folders(project)
    assert any((b / "web" / "seen").rglob("*.parquet"))
    log = project.log("web", "seen").load()
    assert log is not None
    control = project.catalog.table("web", TABLE)
    assert control is not None
    Trash(project.catalog).put_tables(control, [log])
    assert project.catalog.forget(log)
    away = b.rename(b.with_name("away"))
    list(tidied(project, project.graph("web"), timedelta(0)))
    assert Trash(project.catalog).records(control), "a place that does not answer keeps what tells of it"
    away.rename(b)
    list(tidied(project, project.graph("web"), timedelta(0)))
    assert Trash(project.catalog).records(control) == []
    assert [path for place in (b, c) for path in (place / "web" / "seen").rglob("*") if path.is_file()] == []
    assert any((b / "web" / "visits").rglob("*.parquet"))


def test_a_copy_that_could_not_be_removed_stays_recorded(project: Project) -> None:
    run(project)
    b, _ = folders(project)
    copy = next((b / "web" / "seen").rglob("*.parquet"))
    path = str(copy.relative_to(b))
    copy.unlink()
    copy.mkdir()
    graph = project.graph("web")
    with pytest.raises(FirnlineError, match="REPLICA_UNAVAILABLE"):
        forget(project, graph, [f"{project.catalog.warehouse}/{path}"])
    recorded = Replicas(project, graph).records("seen", graph.replicas[0]).values()
    assert path in {file.path for record in recorded for file in record.files}
