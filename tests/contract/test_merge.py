"""A merge of layers on every implementation of the log's port: fewer files for the same state, and nobody else's work undone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.plan.verification import problems_of
from firnline.tables.catalog import Catalog
from firnline.tables.expiry import abandoned
from firnline.tables.inventory import inventory
from firnline.tables.layers import newest_exchange, subsumed
from firnline.tables.log import ATTEMPT, Log, staged_by
from firnline.tables.port import Exchange, Tables
from firnline.tables.rebuilding import rebuild_metadata
from firnline.tables.sidecar import Repair, Sidecar
from firnline.world import replaced
from tests.contract.logs import STORED, file_of, in_a_database, lose, publish, rows, stage, uppers
from tests.happening import At, Killed, die
from tests.simulation.memory import MemoryTables


@pytest.fixture
def log(tables: Tables) -> Log:
    made = Log(tables, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20), ("d", 30)):
        publish(made, name, epoch)
    return made


class Planned:
    """A merge of [lower, upper) that is staged and not in the log yet."""

    def __init__(self, log: Log, name: str, lower: int, upper: int, code: str = "f") -> None:
        table = log.load()
        assert table is not None
        newest = newest_exchange(table)
        self.log, self.since = log, None if newest is None else newest.id
        inside = [entry for entry in log.entries() if lower <= entry.lower and entry.description.upper <= upper]
        self.out = frozenset(file.path for file in log.held(table) if lower <= file.first < upper)
        values = [f"{epoch} {which}" for epoch in range(lower, upper, 10) for which in ("first", "second")]
        self.staged = _stage(log, name, values, upper - 10)
        digests = {(upper - 10, 0): Digest(len(values), 0, 0, 0)}
        attempts = tuple(entry.attempt for entry in inside)
        fingerprint = Fingerprint(code * 32, "p" * 32)
        self.note = Sidecar(
            "visits", lower, upper, name, fingerprint, {}, digests, 3.0, merged=attempts, out=tuple(sorted(self.out))
        )

    def exchange(self) -> Verdict:
        return self.log.exchange(0, self.since, self.note, Exchange(self.out, (self.staged,)))


def _stage(log: Log, name: str, values: list[str], epoch: int) -> int:
    tables: Any = log._catalog
    if isinstance(tables, MemoryTables):
        tables.stage_by_spark("web", "visits", [((value,), epoch, 1) for value in values], {ATTEMPT: name})
    else:
        found = pa.Table.from_pylist([{"k": each, "_epoch": epoch, "_diff": 1, "_part": 0} for each in values], schema=STORED)
        tables.iceberg("web", "visits").append(found, snapshot_properties={ATTEMPT: name}, branch=None)
    return log.staged(name)


def merge(log: Log, name: str, lower: int, upper: int) -> Verdict:
    return Planned(log, name, lower, upper).exchange()


def ranges(log: Log) -> list[tuple[int, int]]:
    return [(entry.lower, entry.description.upper) for entry in log.entries()]


def since(log: Log) -> int:
    head = log.head()
    assert head is not None
    return head.description.since


def test_a_merge_stands_for_the_layers_inside_its_range(log: Log) -> None:
    before = rows(log)
    assert merge(log, "m", 0, 20) is Verdict.FREE
    assert rows(log) == before
    assert ranges(log) == [(30, 40), (20, 30), (0, 20)]
    head, table = log.head(), log.load()
    assert head is not None
    assert table is not None
    assert head.description == Description(0, 20, 40)
    *newer, merged = log.entries()
    assert {entry.through for entry in newer} == {merged.through} == {(head.snapshot, 40)}, "nobody reads what may be gone"
    sidecar = log.sidecar(merged)
    assert (sidecar.merged, len(sidecar.out)) == (("b", "a"), 2)
    assert [file.rows for file in sidecar.files or ()] == [4]
    assert {table.snapshots[each].summary[ATTEMPT] for each in subsumed(table)} == {"a", "b"}
    assert len(log.held(table)) == 3


def test_the_next_publish_carries_on_what_is_merged(log: Log) -> None:
    merge(log, "m", 0, 20)
    publish(log, "e", 40)
    head = log.head()
    assert head is not None
    assert head.description == Description(0, 20, 50)
    assert ranges(log)[0] == (40, 50)


def test_merges_of_merges_stand_for_all_of_it(log: Log) -> None:
    before = rows(log)
    merge(log, "m", 20, 40)
    assert since(log) == 40
    merge(log, "n", 0, 20)
    assert since(log) == 40, "what is merged stays merged"
    assert ranges(log) == [(20, 40), (0, 20)]
    merge(log, "o", 0, 40)
    assert ranges(log) == [(0, 40)]
    assert rows(log) == before
    table = log.load()
    assert table is not None
    assert len(log.held(table)) == 1
    assert len(subsumed(table)) == 6


def test_the_head_knows_what_code_made_its_newest_epoch(log: Log) -> None:
    assert Planned(log, "m", 0, 20, code="o").exchange() is Verdict.FREE
    head = log.head()
    assert head is not None
    assert head.fingerprint == Fingerprint("f" * 32, "p" * 32)
    assert Planned(log, "n", 0, 40, code="n").exchange() is Verdict.FREE
    head = log.head()
    assert head is not None
    assert head.fingerprint == Fingerprint("n" * 32, "p" * 32)


def test_a_publish_in_between_is_kept(log: Log) -> None:
    planned = Planned(log, "m", 0, 40)
    publish(log, "e", 40)
    before = rows(log)
    assert planned.exchange() is Verdict.FREE
    assert rows(log) == before
    assert ranges(log) == [(40, 50), (0, 40)]


def test_of_two_merges_one_is_done(log: Log) -> None:
    before = rows(log)
    late = Planned(log, "late", 10, 30)
    assert merge(log, "m", 0, 20) is Verdict.FREE
    assert late.exchange() is Verdict.MOVED
    assert rows(log) == before
    table = log.load()
    assert table is not None
    assert late.staged not in table.snapshots


def test_of_a_merge_and_a_repair_one_is_done(log: Log) -> None:
    before, lost = rows(log), file_of(log, 10)
    late = Planned(log, "late", 0, 40)
    note = Repair("visits", "r", ((10, 0),), (lost.path,), (), 2, 2, 0.1)
    assert log.exchange(0, None, note, Exchange(frozenset([lost.path]), (stage(log, "r", 10),))) is Verdict.FREE
    assert late.exchange() is Verdict.MOVED
    assert merge(log, "m", 0, 40) is Verdict.FREE
    again = Exchange(frozenset([lost.path]), (stage(log, "s", 10),))
    assert log.exchange(0, None, note, again) is Verdict.FREE, "it was done once, and stays done"
    other = Repair("visits", "s", ((10, 0),), (lost.path,), (), 2, 2, 0.1)
    assert log.exchange(0, None, other, again) is Verdict.MOVED, "what it repaired is merged"
    assert rows(log) == before


def test_the_same_merge_twice_is_one(log: Log) -> None:
    before, planned = rows(log), Planned(log, "m", 0, 20)
    assert planned.exchange() is Verdict.FREE
    merge(log, "n", 20, 40)
    assert planned.exchange() is Verdict.FREE
    assert rows(log) == before


@pytest.mark.parametrize("point", ["merge.judged", "merge.described", "merge.committed"])
def test_a_merge_that_dies_anywhere_is_there_or_not(log: Log, point: str) -> None:
    before, planned = rows(log), Planned(log, "m", 0, 40)
    with replaced(At(point, die)), pytest.raises(Killed):
        planned.exchange()
    assert rows(log) == before
    assert ranges(log) == ([(0, 40)] if point == "merge.committed" else [(30, 40), (20, 30), (10, 20), (0, 10)])
    if point != "merge.committed":
        assert merge(log, "n", 0, 40) is Verdict.FREE
    assert rows(log) == before


def test_staging_of_a_merge_is_swept_once_it_cannot_be_used_any_more(tables: Tables) -> None:
    log = Log(tables, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20), ("d", 30)):
        publish(log, name, epoch)
    values = [((f"{epoch} x",), epoch, 1) for epoch in (0,)]
    found = values if isinstance(tables, MemoryTables) else pa.Table.from_pylist([], schema=STORED)
    log.stage("alive", 0, found, "merge")
    table = log.load()
    assert table is not None
    assert abandoned(table) == []
    merge(log, "m", 0, 20)
    table = log.load()
    assert table is not None
    assert abandoned(table) == staged_by(table, "alive")


@pytest.fixture
def merged(iceberg: Catalog) -> Log:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20)):
        publish(log, name, epoch)
    planned = Planned(log, "m", 0, 20)
    publish(log, "d", 30)
    assert planned.exchange() is Verdict.FREE
    publish(log, "e", 40)
    return log


def test_a_merged_log_is_well(merged: Log, iceberg: Catalog) -> None:
    found = inventory(iceberg, "web", "visits")
    assert problems_of(found) == []
    assert [(layer.summary.lower, layer.summary.upper) for layer in found.layers() if layer.summary] == [
        (0, 20),
        (20, 30),
        (30, 40),
        (40, 50),
    ]
    assert found.cells() == [(10, 0), (20, 0), (30, 0), (40, 0)]
    table = merged.load()
    assert table is not None
    for path in merged.sidecar(list(merged.entries())[-1]).out:
        iceberg.remove(path)
    assert problems_of(inventory(iceberg, "web", "visits")) == [], "what a merge took out is nobody's loss"
    assert len(rows(merged)) == 10


def test_what_a_merge_stands_for_may_be_forgotten(merged: Log, iceberg: Catalog) -> None:
    before, table = rows(merged), merged.load()
    assert table is not None
    iceberg.drop(table, sorted(subsumed(table)))
    assert uppers(merged) == [50, 40, 30, 20]
    assert rows(merged) == before
    assert problems_of(inventory(iceberg, "web", "visits")) == []
    merge(merged, "n", 0, 50)
    table = merged.load()
    assert table is not None
    iceberg.drop(table, sorted(subsumed(table)))
    assert ranges(merged) == [(0, 50)]
    publish(merged, "f", 50)
    assert ranges(merged) == [(50, 60), (0, 50)]
    assert problems_of(inventory(iceberg, "web", "visits")) == []


def test_a_lost_merged_file_is_told_with_its_part(merged: Log, iceberg: Catalog) -> None:
    *_, oldest = merged.entries()
    (file,) = merged.sidecar(oldest).files or ()
    lose(merged, file)
    (problem,) = problems_of(inventory(iceberg, "web", "visits"))
    assert (problem.kind, problem.epochs, problem.parts, problem.about) == ("missing", (10,), (0,), "data")


@in_a_database
def test_metadata_is_written_anew_from_a_merge_where_what_it_stands_for_is_gone(merged: Log, iceberg: Catalog) -> None:
    before, merge = rows(merged), merged.sidecar(list(merged.entries())[-1])
    table = merged.load()
    assert table is not None
    files = sorted(path for path in iceberg.read_all(f"{table.location}/metadata") if path.endswith(".metadata.json"))
    for path in (*merge.out, *files[1:]):  # the first of them knows of no epoch
        iceberg.remove(path)
    rebuild_metadata(iceberg, "web", "visits", table.version, lambda several: several[0])
    assert rows(merged) == before
    assert ranges(merged) == [(40, 50), (30, 40), (20, 30), (0, 20)]
    assert since(merged) == 20
    with pytest.raises(FirnlineError, match="COMMIT_CONTENDED"):
        iceberg.exchange(table, {}, Exchange())
