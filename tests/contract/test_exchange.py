"""A repair of a log on every implementation of its port: other files for the same rows, and nobody else's work undone."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.stored_file import StoredFile
from firnline.tables.catalog import Catalog
from firnline.tables.log import Log, staged_by
from firnline.tables.metadata import SIDECAR
from firnline.tables.port import Exchange, Tables
from firnline.tables.rebuilding import rebuild_metadata
from firnline.tables.sidecar import Repair
from tests.contract.logs import file_of, in_a_database, lose, publish, rows, stage, uppers
from tests.simulation.memory import MemoryTables


@pytest.fixture
def log(tables: Tables) -> Log:
    made = Log(tables, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20)):
        publish(made, name, epoch)
    return made


def repair(name: str, *out: StoredFile) -> Repair:
    return Repair("visits", name, ((out[0].first, 0),), tuple(file.path for file in out), (), 2, 2, 0.1)


def exchange(log: Log, name: str, epoch: int, since: int | None = None) -> Verdict:
    out = file_of(log, epoch)
    change = Exchange(frozenset([out.path]), (stage(log, name, epoch),))
    return log.exchange(0, since, repair(name, out), change)


def test_lost_files_are_exchanged_and_the_description_stays(log: Log) -> None:
    before = rows(log)
    lost = file_of(log, 10)
    lose(log, lost)
    with pytest.raises((OSError, KeyError)):
        rows(log)
    assert exchange(log, "r", 10) is Verdict.FREE
    assert rows(log) == before
    head = log.head()
    assert head is not None
    assert head.description == Description(0, 0, 30)
    assert head.fingerprint is not None, "the next epoch still knows what code made the log"


def test_a_repair_is_no_publication_and_older_ones_are_read_through_it(log: Log) -> None:
    exchange(log, "r", 10)
    repaired = log.head()
    assert repaired is not None
    publish(log, "d", 30)
    assert uppers(log) == [40, 30, 20, 10]
    newest, *older = log.entries()
    assert newest.through == (newest.snapshot, 40)
    assert {entry.through for entry in older} == {(repaired.snapshot, 30)}


def test_the_same_repair_twice_is_one(log: Log) -> None:
    before, out = rows(log), file_of(log, 10)
    change = Exchange(frozenset([out.path]), (stage(log, "r", 10),))
    assert [log.exchange(0, None, repair("r", out), change) for _ in range(2)] == [Verdict.FREE] * 2
    assert rows(log) == before


def test_a_publish_in_between_is_kept(log: Log) -> None:
    out = file_of(log, 10)
    change = Exchange(frozenset([out.path]), (stage(log, "r", 10),))
    publish(log, "d", 30)
    before = rows(log)
    assert log.exchange(0, None, repair("r", out), change) is Verdict.FREE
    assert rows(log) == before
    assert uppers(log) == [40, 30, 20, 10]


def test_of_two_repairs_the_second_looks_again_and_leaves_nothing_behind(log: Log) -> None:
    before, out = rows(log), file_of(log, 10)
    late = Exchange(frozenset([out.path]), (stage(log, "late", 10),))
    assert exchange(log, "r", 10) is Verdict.FREE
    assert log.exchange(0, None, repair("late", out), late) is Verdict.MOVED
    assert rows(log) == before
    table = log.load()
    assert table is not None
    assert not set(late.staged) & set(table.snapshots)


def test_a_repair_of_another_generation_is_fenced(log: Log) -> None:
    out = file_of(log, 10)
    change = Exchange(frozenset([out.path]), (stage(log, "r", 10),))
    assert log.exchange(1, None, repair("r", out), change) is Verdict.FENCED


def test_a_lost_manifest_is_written_anew(iceberg: Catalog) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10)):
        publish(log, name, epoch)
    before = rows(log)
    table = iceberg.iceberg("web", "visits")
    head = table.current_snapshot()
    assert head is not None
    (manifest,) = (each for each in head.manifests(table.io) if each.added_snapshot_id == head.snapshot_id)
    iceberg.remove(manifest.manifest_path)
    change = Exchange(manifests=frozenset([manifest.manifest_path]), named=(file_of(log, 10),))
    assert log.exchange(0, None, Repair("visits", "r", (), (), (), 0, 0, 0.1), change) is Verdict.FREE
    assert rows(log) == before


@in_a_database
def test_a_lost_metadata_file_is_written_anew_with_all_that_was_published(iceberg: Catalog) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10)):
        publish(log, name, epoch)
    before, head = rows(log), log.head()
    lost = iceberg.version("web", "visits")
    assert lost is not None
    iceberg.remove(lost)
    with pytest.raises(FirnlineError, match="LOG_UNREADABLE"):
        log.head()
    assert rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    assert rows(log) == before
    again = log.head()
    assert head is not None
    assert again is not None
    assert (again.description, again.fingerprint) == (head.description, head.fingerprint)
    table = log.load()
    assert table is not None
    assert not staged_by(table, "b"), "what was published is not staged any more"
    assert not iceberg.point("web", "visits", lost, "elsewhere"), "of two that repair it, one does"
    publish(log, "c", 20)
    assert uppers(log) == [30, 20, 10]


@in_a_database
@pytest.mark.parametrize("is_previous_there", [True, False])
def test_what_a_lost_race_left_is_no_older_metadata_file(iceberg: Catalog, is_previous_there: bool) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10)):
        publish(log, name, epoch)
    before, lost, previous = rows(log), iceberg.version("web", "visits"), iceberg.pointers.previous("web", "visits")
    assert lost is not None
    assert previous is not None
    document = json.loads(iceberg.read(lost))
    document["properties"]["of"] = "the loser"
    iceberg.write(f"{lost.rpartition('/')[0]}/99999-loser.metadata.json", json.dumps(document).encode())
    for path in (lost,) if is_previous_there else (lost, previous):
        iceberg.remove(path)
    assert rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    table = log.load()
    assert table is not None
    assert "of" not in table.properties
    assert rows(log) == before


@in_a_database
def test_of_several_older_metadata_files_the_newest_is_taken(iceberg: Catalog) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10)):
        publish(log, name, epoch)
    versions = list[str]()
    for number in range(3):
        iceberg.iceberg("web", "visits").transaction().set_properties(number=str(number)).commit_transaction()
        versions.append(str(iceberg.version("web", "visits")))
    for path in versions[1:]:
        iceberg.remove(path)
    assert rebuild_metadata(iceberg, "web", "visits", versions[-1], lambda several: several[0])
    table = log.load()
    assert table is not None
    assert table.properties["number"] == "0"


def test_totals_stay_when_files_are_exchanged(iceberg: Catalog) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    publish(log, "a", 0)

    def totals() -> dict[str, str]:
        head = iceberg.iceberg("web", "visits").current_snapshot()
        assert head is not None
        assert head.summary is not None
        return {name: str(head.summary[f"total-{name}"]) for name in ("data-files", "records")}

    before = totals()
    assert exchange(log, "r", 0) is Verdict.FREE
    assert totals() == before == {"data-files": "1", "records": "2"}


def test_rows_that_were_left_out_are_named_again_and_counted(log: Log) -> None:
    tables: Any = log._catalog
    table = log.load()
    assert table is not None
    head = table.head
    assert head is not None
    (_, entry, _) = log.entries()
    files = log.sidecar(entry).files or ()
    out = Repair("visits", "out", ((10, 0),), tuple(file.path for file in files), (), 2, 0, 0.0, "gap")
    assert log.exchange(0, None, out, Exchange(out=frozenset(out.out))) is Verdict.FREE
    without = log.load()
    assert without is not None
    assert without.head is not None
    back = Repair("visits", "back", ((10, 0),), (), (), 2, 0, 0.0)
    assert log.exchange(0, without.head.id, back, Exchange(back=files)) is Verdict.FREE
    after = log.load()
    assert after is not None
    assert after.head is not None
    if isinstance(tables, MemoryTables):
        assert ("10 first",) not in tables.state(without, without.current, 30)
        assert tables.state(after, after.current, 30) == tables.state(table, table.current, 30)
        return
    counts = [each.summary["total-records"] for each in (head, without.head, after.head)]
    assert counts == ["6", "4", "6"]
    assert len(tables.iceberg("web", "visits").scan().to_arrow()) == 6
    assert Repair.of_json(tables.read(without.head.summary[SIDECAR])).gap == "gap"
