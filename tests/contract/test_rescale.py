"""A rescale of a log on every implementation of its port: the same rows in other parts, and no row in a part that is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from firnline.model.description import Description, Verdict
from firnline.model.digest import Digest
from firnline.plan.verification import expected_digests, problems_of
from firnline.tables.catalog import Catalog
from firnline.tables.erasing import replace_all, strays
from firnline.tables.expiry import abandoned
from firnline.tables.inventory import inventory
from firnline.tables.layers import RESCALE, newest_exchange
from firnline.tables.log import ATTEMPT, PARTS, Entry, Log, cut_into, entries_of
from firnline.tables.metadata import SIDECAR, Metadata
from firnline.tables.port import Exchange, Tables
from firnline.tables.rebuilding import rebuild_metadata
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.trash import Trash, file_key
from firnline.world import replaced
from tests.contract.logs import STORED, attempt, in_a_database, lose, rows, uppers
from tests.happening import At, Killed, die
from tests.simulation.memory import MemoryTables

WORDS = ("first", "second", "third", "fourth")


def made(tables: Tables) -> Log:
    log = Log(tables, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {PARTS: "2"})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20)):
        assert publish(log, name, epoch, 2) is Verdict.FREE
    return log


@pytest.fixture
def log(tables: Tables) -> Log:
    return made(tables)


def loaded(log: Log) -> Metadata:
    table = log.load()
    assert table is not None
    return table


def stage(log: Log, name: str, epoch: int, parts: int, kind: str | None = None) -> int:
    """Stage four rows of one epoch, each in a part of its own if there are so many."""
    if isinstance(log._catalog, MemoryTables):
        found: Any = [((f"{epoch} {word}",), epoch, 1) for word in WORDS]
    else:
        some = [{"k": f"{epoch} {word}", "_epoch": epoch, "_diff": 1, "_part": part % parts} for part, word in enumerate(WORDS)]
        found = pa.Table.from_pylist(some, schema=STORED)
    log.stage(name, epoch, found, kind)
    return log.staged(name)


def digests(epoch: int, parts: int) -> dict[tuple[int, int], Digest]:
    each = 4 // min(parts, 4)
    return {(epoch, part): Digest(each, each, each, each) for part in range(min(parts, 4))}


def published(name: str, epoch: int, parts: int) -> Sidecar:
    return replace(attempt(epoch, epoch + 10, name), digests=digests(epoch, parts), parts=parts)


def publish(log: Log, name: str, epoch: int, parts: int) -> Verdict:
    return log.publish(0, published(name, epoch, parts), stage(log, name, epoch, parts))


class Rescaling:
    """A rescale as it goes on: what is staged stays for the next look."""

    def __init__(self, log: Log, name: str, parts: int) -> None:
        self.log, self.name, self.parts = log, name, parts
        self.staged: dict[str, int] = {}
        self.recut: set[str] = set()
        self.look()

    def look(self) -> None:
        table = self.table = loaded(self.log)
        for entry in entries_of(table):
            if entry.attempt not in self.staged:
                self.staged[entry.attempt] = stage(self.log, f"{self.name}{entry.attempt}", entry.lower, self.parts, RESCALE)
            sidecar = replace(self.log.sidecar(entry), digests=digests(entry.lower, self.parts), parts=self.parts)
            self.recut.add(self.log.recut(self.name, sidecar, self.staged[entry.attempt]))

    def exchange(self) -> Verdict:
        newest, head = newest_exchange(self.table), self.table.head
        assert head is not None
        out = frozenset(file.path for file in self.log.held(self.table))
        recut = tuple(sorted(self.recut))
        note = Repair("visits", self.name, (), tuple(sorted(out)), (), 0, 0, 0.1, parts=self.parts, recut=recut)
        change = Exchange(out, tuple(self.staged.values()), properties={PARTS: str(self.parts)})
        upper = Description.of_properties(head.summary).upper
        return self.log.exchange(0, None if newest is None else newest.id, note, change, upper)


def rescale(log: Log, name: str, parts: int) -> Verdict:
    return Rescaling(log, name, parts).exchange()


def cells(log: Log) -> list[tuple[int, int]]:
    return sorted(cell for entry in log.entries() for cell in log.sidecar(entry).digests)


def test_a_rescaled_log_holds_the_same_rows_and_epochs_in_other_parts(log: Log) -> None:
    before, was, heads = rows(log), list(log.entries()), log.head()
    assert cells(log) == [(epoch, part) for epoch in (0, 10, 20) for part in range(2)]
    assert rescale(log, "r", 4) is Verdict.FREE
    assert cut_into(loaded(log)) == 4
    assert rows(log) == before
    after, head = list(log.entries()), log.head()
    assert head is not None
    assert heads is not None
    assert (head.description, head.fingerprint) == (heads.description, heads.fingerprint)

    def said(entry: Entry) -> tuple[object, ...]:
        return (entry.snapshot, entry.description, entry.lower, entry.rows, entry.weight, entry.attempt, entry.published_at)

    assert [said(entry) for entry in after] == [said(entry) for entry in was], "who published what, and when, stays"
    assert {entry.through for entry in after} == {(head.snapshot, 30)}
    assert cells(log) == [(epoch, part) for epoch in (0, 10, 20) for part in range(4)]
    assert {log.sidecar(entry).inputs["pages"].upper for entry in after} == {10, 20, 30}, "lineage stays, too"


def test_rows_that_were_placed_by_the_old_number_do_not_land_after_a_rescale(log: Log) -> None:
    late = stage(log, "late", 30, 2)
    assert rescale(log, "r", 4) is Verdict.FREE
    before = rows(log)
    assert log.publish(0, published("late", 30, 2), late) is Verdict.MOVED
    assert rows(log) == before
    assert late not in loaded(log).snapshots, "what cannot be published is dropped"
    assert publish(log, "d", 30, 4) is Verdict.FREE
    assert uppers(log) == [40, 30, 20, 10]
    newest = next(log.entries())
    assert newest.sidecar == loaded(log).snapshots[newest.snapshot].summary[SIDECAR], "what came after it is its own account"
    assert cells(log)[-4:] == [(30, part) for part in range(4)]


def test_an_epoch_without_a_change_lands_whatever_the_number(log: Log) -> None:
    assert rescale(log, "r", 4) is Verdict.FREE
    empty = replace(published("late", 30, 2), digests={})
    assert log.publish(0, empty, None) is Verdict.FREE


def test_a_publish_while_a_rescale_is_computed_is_cut_too(log: Log) -> None:
    rescaling = Rescaling(log, "r", 4)
    staged = dict(rescaling.staged)
    assert publish(log, "d", 30, 2) is Verdict.FREE
    before = rows(log)
    assert rescaling.exchange() is Verdict.MOVED
    assert (rows(log), cut_into(loaded(log))) == (before, 2)
    assert set(staged.values()) <= loaded(log).snapshots.keys(), "what is cut is kept for the next look"
    rescaling.look()
    assert staged.items() < rescaling.staged.items()
    assert rescaling.exchange() is Verdict.FREE
    assert (rows(log), cut_into(loaded(log))) == (before, 4)
    assert cells(log) == [(epoch, part) for epoch in (0, 10, 20, 30) for part in range(4)]


def test_of_a_rescale_and_another_exchange_one_is_done(log: Log) -> None:
    before, lost = rows(log), file_of_part(log, 10)
    late = Rescaling(log, "late", 4)
    repair = Repair("visits", "m", ((10, lost.part),), (lost.path,), (lost,), 2, 2, 0.1)
    assert log.exchange(0, None, repair, Exchange(frozenset([lost.path]), back=(lost,))) is Verdict.FREE
    assert late.exchange() is Verdict.MOVED
    assert not set(late.staged.values()) & loaded(log).snapshots.keys()
    assert (rows(log), cut_into(loaded(log))) == (before, 2)
    again = Rescaling(log, "r", 4)
    assert again.exchange() is Verdict.FREE
    other = Repair("visits", "n", ((10, lost.part),), (lost.path,), (), 2, 2, 0.1)
    assert log.exchange(0, None, other, Exchange(frozenset([lost.path]))) is Verdict.MOVED, "it speaks of parts that are none"
    assert rows(log) == before


def file_of_part(log: Log, epoch: int) -> Any:
    (entry,) = (entry for entry in log.entries() if entry.lower == epoch)
    return (log.sidecar(entry).files or ())[0]


def test_of_two_rescales_one_is_done_and_the_other_finds_it(log: Log) -> None:
    before = rows(log)
    one, other = Rescaling(log, "r", 4), Rescaling(log, "s", 4)
    assert [one.exchange(), other.exchange()] == [Verdict.FREE, Verdict.MOVED]
    assert one.exchange() is Verdict.FREE, "the same one twice is one"
    assert rows(log) == before


def test_the_newest_of_several_rescales_tells_how_layers_are_cut(log: Log) -> None:
    before = rows(log)
    assert rescale(log, "r", 4) is Verdict.FREE
    assert publish(log, "d", 30, 4) is Verdict.FREE
    assert rescale(log, "s", 1) is Verdict.FREE
    assert publish(log, "e", 40, 1) is Verdict.FREE
    assert cells(log) == [(epoch, 0) for epoch in (0, 10, 20, 30, 40)]
    assert set(before) < set(rows(log))
    assert uppers(log) == [50, 40, 30, 20, 10]


@pytest.mark.parametrize("point", ["rescale.judged", "rescale.described", "rescale.committed"])
def test_a_rescale_that_dies_anywhere_is_there_or_not(log: Log, point: str) -> None:
    before, rescaling = rows(log), Rescaling(log, "r", 4)
    with replaced(At(point, die)), pytest.raises(Killed):
        rescaling.exchange()
    is_done = point == "rescale.committed"
    assert (rows(log), cut_into(loaded(log))) == (before, 4 if is_done else 2)
    assert len(cells(log)) == (12 if is_done else 6)
    assert rescaling.exchange() is Verdict.FREE
    assert (rows(log), cut_into(loaded(log)), len(cells(log))) == (before, 4, 12)


def test_staging_of_a_rescale_is_swept_once_it_cannot_be_used_any_more(log: Log) -> None:
    died = Rescaling(log, "died", 8)
    assert abandoned(loaded(log)) == []
    assert rescale(log, "r", 4) is Verdict.FREE
    assert set(abandoned(loaded(log))) == set(died.staged.values())


@pytest.fixture
def rescaled(iceberg: Catalog) -> Log:
    log = made(iceberg)
    assert rescale(log, "r", 4) is Verdict.FREE
    assert publish(log, "d", 30, 4) is Verdict.FREE
    return log


def test_a_rescaled_log_is_well(rescaled: Log, iceberg: Catalog) -> None:
    found = inventory(iceberg, "web", "visits")
    assert problems_of(found) == []
    assert sorted(expected_digests(found)) == cells(rescaled)
    assert len(rescaled.held(loaded(rescaled))) == 16
    note = Repair.of_json(iceberg.read(_rescale(rescaled)))
    assert (note.parts, len(note.out), len(note.files)) == (4, 6, 12)
    for path in note.out:
        iceberg.remove(path)
    assert problems_of(inventory(iceberg, "web", "visits")) == [], "what a rescale took out is nobody's loss"
    assert len(rows(rescaled)) == 16


def _rescale(log: Log) -> str:
    (found,) = (each for each in loaded(log).snapshots.values() if each.summary.get(ATTEMPT) == "r")
    return found.summary[SIDECAR]


def test_what_a_rescale_wrote_anew_goes_with_it(iceberg: Catalog) -> None:
    log, trash = made(iceberg), Trash(iceberg)
    assert rescale(log, "r", 4) is Verdict.FREE
    assert rescale(log, "s", 2) is Verdict.FREE
    table = loaded(log)
    old = {file_key(path) for path in iceberg.read_all(f"{table.location}/firnline/r")}
    new = {file_key(path) for path in iceberg.read_all(f"{table.location}/firnline/s")}
    assert (len(old), len(new)) == (3, 3)
    assert old | new <= trash.named(table)
    first = next(each.id for each in table.snapshots.values() if each.summary.get(ATTEMPT) == "r")
    trash.put(table, [first], "expired")
    iceberg.drop(table, [first])
    (record,) = trash.records(loaded(log))
    thrown = {file_key(piece.path) for piece in trash.contents(loaded(log), record, trash.named(loaded(log)))}
    assert old <= thrown
    assert not new & thrown


def test_nothing_is_left_of_a_rescale_before_an_erasure_and_one_under_way_is_fenced(rescaled: Log, iceberg: Catalog) -> None:
    late = Rescaling(rescaled, "late", 8)
    staged = stage(rescaled, "e", 30, 4)
    note = replace(published("e", 30, 4), lower=0)
    done = replace_all(iceberg, rescaled, loaded(rescaled), note, staged)
    assert done.verdict is Verdict.FREE
    table = loaded(rescaled)
    gone = strays(iceberg, table, done.listed)
    assert len([path for path in gone if "/firnline/r/" in path]) == 3
    for path in gone:
        iceberg.remove(path)
    assert late.exchange() is Verdict.FENCED
    assert (cut_into(loaded(rescaled)), cells(rescaled)) == (4, [(30, part) for part in range(4)])
    assert rows(rescaled) == sorted(f"30 {word}" for word in WORDS)
    assert problems_of(inventory(iceberg, "web", "visits")) == []


def test_readers_in_mid_scan_go_on_with_the_old_files(iceberg: Catalog) -> None:
    log = made(iceberg)
    scan = iceberg.iceberg("web", "visits").scan(row_filter="_epoch < 20")
    assert rescale(log, "r", 4) is Verdict.FREE
    assert sorted(scan.to_arrow()["k"].to_pylist()) == sorted(f"{epoch} {word}" for epoch in (0, 10) for word in WORDS)


def test_a_lost_file_is_told_with_its_new_part(rescaled: Log, iceberg: Catalog) -> None:
    (entry,) = (entry for entry in rescaled.entries() if entry.lower == 10)
    (file,) = (file for file in rescaled.sidecar(entry).files or () if file.part == 3)
    lose(rescaled, file)
    (problem,) = problems_of(inventory(iceberg, "web", "visits"))
    assert (problem.kind, problem.epochs, problem.parts, problem.about) == ("missing", (10,), (3,), "data")


@in_a_database
def test_metadata_that_is_lost_behind_a_rescale_is_that_before_it(iceberg: Catalog) -> None:
    log = made(iceberg)
    before = rows(log)
    assert rescale(log, "r", 4) is Verdict.FREE
    lost = iceberg.version("web", "visits")
    assert lost is not None
    iceberg.remove(lost)
    assert rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    assert (rows(log), cut_into(loaded(log)), len(cells(log))) == (before, 2, 6)
    assert rescale(log, "s", 4) is Verdict.FREE
    assert (rows(log), cut_into(loaded(log)), len(cells(log))) == (before, 4, 12)


@in_a_database
def test_metadata_that_is_lost_after_a_rescale_keeps_its_parts(rescaled: Log, iceberg: Catalog) -> None:
    before = rows(rescaled)
    lost = iceberg.version("web", "visits")
    assert lost is not None
    iceberg.remove(lost)
    assert rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    assert (rows(rescaled), cut_into(loaded(rescaled))) == (before, 4)
    assert problems_of(inventory(iceberg, "web", "visits")) == []


@in_a_database
def test_rows_after_a_rescale_are_not_taken_into_a_log_before_it(rescaled: Log, iceberg: Catalog) -> None:
    table = loaded(rescaled)
    files = sorted(path for path in iceberg.read_all(f"{table.location}/metadata") if path.endswith(".metadata.json"))
    lost = iceberg.version("web", "visits")
    assert lost is not None
    for path in files[1:]:  # the first of them knows of no epoch
        iceberg.remove(path)
    assert rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    assert (uppers(rescaled), cut_into(loaded(rescaled))) == ([30, 20, 10], 2)
    assert problems_of(inventory(iceberg, "web", "visits")) == []
