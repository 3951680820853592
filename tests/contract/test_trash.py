"""What maintenance lets go of: dropped only if nothing needs it, written down before, removed only if no snapshot names it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.model.description import Verdict
from firnline.plan.frontier import Frontier
from firnline.tables.catalog import Catalog
from firnline.tables.control import Control
from firnline.tables.expiry import KEPT_DECISIONS
from firnline.tables.port import Tables
from firnline.tables.rebuilding import rebuild_metadata
from firnline.tables.trash import Trash, file_key
from firnline.tables.undoing import undo
from firnline.world import replaced
from tests.contract.housekeeping import House, Mortal, several
from tests.contract.logs import in_a_database
from tests.happening import Killed

NOW = timedelta()
DAY = timedelta(days=1)


@pytest.fixture
def world() -> Iterator[Mortal]:
    mortal = Mortal()
    with replaced(mortal):
        yield mortal


@pytest.fixture
def house(tables: Tables, world: Mortal) -> House:
    return House(tables)


def test_what_a_merge_stands_for_goes_after_the_grace_time_and_not_before(iceberg: Catalog, world: Mortal) -> None:
    house = House(iceberg)
    several(house, 5, [(0, 3)])
    assert house.log.expire(DAY) == 0
    world.ahead = 2 * DAY
    assert house.log.expire(DAY) == 4
    assert len(house.table.snapshots) == 2, "the merge and the last epoch"
    house.check()
    files = house.data_files()
    assert house.empty(DAY) == 0
    assert house.data_files() == files, "it is in the trash for the same time again"
    world.ahead = 4 * DAY
    assert house.empty(DAY) > 0
    house.check()


def test_files_that_a_layer_still_names_stay_until_it_is_merged(house: House) -> None:
    several(house, 5, [(0, 3)])
    house.log.expire(NOW)
    house.empty()
    assert house.data_files() == 6, "the snapshot of the last epoch names all epochs"
    house.check()
    house.publish()
    assert house.merge(1, 2) is Verdict.FREE
    house.log.expire(NOW)
    house.empty()
    house.check()
    assert house.data_files() == 3, "two merges, and the epoch that there was when the first was made"


@in_a_database
def test_all_that_was_written_is_gone_or_named_in_the_end(iceberg: Catalog, world: Mortal) -> None:
    house = House(iceberg)
    several(house, 6, [(0, 2), (1, 3), (0, 1)])
    house.log.expire(NOW)
    house.empty()
    house.check()
    left = {str(path) for path in Path(file_key(house.table.location)).rglob("*") if path.is_file()}
    staged = {file_key(path) for entry in house.log.entries() for path in house.log.sidecar(entry).left}
    unnamed = {path for path in left - Trash(iceberg).named(house.table) if not path.endswith(".metadata.json")}
    of_staging = {path for path in unnamed if path in staged or path.endswith("-m0.avro")}
    assert unnamed == of_staging, "each layer leaves the list and the manifest of what was staged for it, until it goes itself"
    assert len(unnamed) <= 2 * len(list(house.log.entries()))


def test_abandoned_staging_goes_with_its_files_and_what_may_still_be_published_stays(house: House) -> None:
    house.publish()
    house.stage("dead", 0, {("never", 0): 1})
    house.stage("alive", 1, {("soon", 1): 1})
    assert house.log.expire(NOW) == 1
    files = house.data_files()
    assert house.empty() >= 1
    assert house.data_files() == files - 1
    assert house.log.staged("alive")
    house.check()


def test_an_attempt_that_lost_leaves_its_files_in_the_trash(house: House) -> None:
    house.publish()
    house.stage("late", 0, {("late", 0): 1})
    files = house.data_files()
    verdict = house.log.publish(0, house.sidecar("late", 0, 1, {("late", 0): 1}), house.log.staged("late"))
    assert verdict is Verdict.TAKEN
    (record,) = Trash(house.tables).records(house.table)
    assert record.why == "lost"
    house.empty()
    assert house.data_files() == files - 1
    assert Trash(house.tables).records(house.table) == []
    house.check()


@pytest.mark.parametrize("point", ["trash.written", "expire.committed", "trash.removed", "trash.closed"])
def test_killed_anywhere_it_goes_on_and_nothing_is_lost(point: str, tables: Tables, world: Mortal) -> None:
    house = House(tables)
    several(house, 6, [(0, 2), (1, 3), (0, 1)])
    world.kill_at = point

    def clean() -> None:
        house.log.expire(NOW)
        house.empty()

    with pytest.raises(Killed):
        clean()
    house.check()
    clean()
    house.check()
    assert Trash(tables).records(house.table) == []
    house.publish()
    house.check()
    assert house.data_files() == 2


def test_a_record_of_what_was_not_done_is_not_acted_upon(house: House, world: Mortal) -> None:
    several(house, 4, [(0, 3)])
    world.kill_at = "trash.written"
    with pytest.raises(Killed):
        house.log.expire(NOW)
    (record,) = Trash(house.tables).records(house.table)
    assert Trash(house.tables).is_waiting(house.table, record)
    assert house.empty() == 0
    house.check()
    assert undo(house.tables, house.log) is not None, "nothing is dropped yet"
    house.check()


def test_a_table_that_cannot_be_read_loses_no_file(iceberg: Catalog, world: Mortal) -> None:
    house = House(iceberg)
    several(house, 4, [(0, 2)])
    house.log.expire(NOW)
    table = house.table
    layer = min(table.snapshots.values(), key=lambda each: each.sequence)
    path = Path(file_key(layer.manifest_list))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    files = house.data_files()
    with pytest.raises(Exception, match="LOG_UNREADABLE"):
        house.empty()
    assert house.data_files() == files
    path.write_bytes(content)
    house.empty()
    house.check()


def test_a_merge_is_undone_with_the_old_since(house: House) -> None:
    several(house, 6, [(0, 2), (1, 2)])
    house.publish()
    before = [(entry.lower, entry.description.upper) for entry in house.log.entries()]
    assert house.merge(0, 1) is Verdict.FREE
    house.publish()
    done = undo(house.tables, house.log)
    assert done is not None
    assert (done.lower, done.upper, done.layers) == (0, 5, 2)
    after = [(entry.lower, entry.description.upper) for entry in house.log.entries()]
    assert after == [(7, 8), *before]
    head = house.log.head()
    assert head is not None
    assert head.description.since == 5
    house.check()
    assert undo(house.tables, house.log) is not None, "the one before that, too"
    assert undo(house.tables, house.log) is not None
    assert [entry.lower for entry in house.log.entries()] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert undo(house.tables, house.log) is None
    house.check()
    house.log.expire(NOW)
    house.empty()
    house.check()
    assert house.merge(0, 7) is Verdict.FREE
    house.log.expire(NOW)
    house.empty()
    house.check()


def test_a_merge_whose_layers_are_dropped_stays(house: House) -> None:
    several(house, 4, [(0, 2)])
    house.log.expire(NOW)
    assert undo(house.tables, house.log) is None
    house.check()


def test_an_undo_whose_answer_is_lost_is_done_once(house: House, world: Mortal, monkeypatch: pytest.MonkeyPatch) -> None:
    several(house, 3, [(0, 2)])
    reach, lost = world.reach, []

    def losing(point: str) -> None:
        reach(point)
        if point == "undo.committed" and not lost:
            lost.append(point)
            raise OSError("the answer is lost")

    monkeypatch.setattr(world, "reach", losing)
    done = undo(house.tables, house.log)
    assert done is not None
    assert done.layers == 3
    assert lost
    house.check()
    assert undo(house.tables, house.log) is None


def test_the_control_table_keeps_its_last_decisions(tables: Tables, world: Mortal) -> None:
    control = Control(tables, "web")
    for upper in range(1, KEPT_DECISIONS + 6):
        control.advance(Frontier(upper, {"visits": 0}))
    assert control.expire() == 5
    assert control.expire() == 0
    assert control.frontier() == Frontier(KEPT_DECISIONS + 5, {"visits": 0})
    table = tables.table("web", "_frontier")
    assert table is not None
    assert len(table.snapshots) == len(list(table.main_line())) == KEPT_DECISIONS
    trash = Trash(tables)
    for record in trash.records(table):
        list(trash.remove(trash.contents(table, record, trash.named(table))))
        trash.close(table, record)
    assert trash.named(table), "what is kept can be read"
    control.advance(Frontier(KEPT_DECISIONS + 6, {"visits": 0}))


@in_a_database
def test_old_metadata_files_go_and_a_lost_one_is_made_again(iceberg: Catalog, world: Mortal) -> None:
    house = House(iceberg)
    for _ in range(20):
        house.publish()
    files = list(Path(file_key(house.table.location)).rglob("*.metadata.json"))
    assert len(files) <= 32, "the last thirty, the present one, and one that a lost race left"
    house.merge(0, 9)
    house.log.expire(NOW)
    lost = iceberg.version("web", "visits")
    assert lost is not None
    iceberg.remove(lost)
    rebuild_metadata(iceberg, "web", "visits", lost, lambda several: several[0])
    house.check()
    house.publish()
    house.log.expire(NOW)
    house.empty()
    house.check()


def test_tables_made_before_learn_to_drop_metadata_files(iceberg: Catalog, world: Mortal) -> None:
    house = House(iceberg)
    house.publish()
    with iceberg.iceberg("web", "visits").transaction() as transaction:
        transaction.remove_properties("write.metadata.delete-after-commit.enabled", "write.metadata.previous-versions-max")
    house.log.expire(NOW)
    assert house.table.properties["write.metadata.delete-after-commit.enabled"] == "true"
    version = house.table.version
    house.log.expire(NOW)
    assert house.table.version == version, "what is so already is no commit"
