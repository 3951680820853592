"""What is found in real logs, without a JVM, is what their epochs brought."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType
from pyspark.sql.connect.proto import Relation

from firnline.incremental.derivation import Lookup
from firnline.model.epoch import Epoch
from firnline.runtime.derived import _around
from firnline.runtime.finding import Finding
from tests.project import make_project
from tests.shelf import Delta, Shelf

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"], parts=2)
    def visits(epoch): ...
"""
SCHEMA = pa.schema([("id", pa.int64()), ("page", pa.string()), ("rate", pa.float64()), ("tags", pa.list_(pa.string()))])
COLUMNS = (("page", "c1"), ("id", "c0"), ("_diff", "_diff"))
NUMBERS = pa.table({"_key0": pa.array([3, 1, 99, 3], pa.int32())})


def row(number: int, page: str | None) -> dict[str, Any]:
    return {"id": number, "page": page, "rate": 0.5, "tags": ["x"]}


HISTORY: list[Delta] = [
    [(row(number, "ab" * (number % 3) or None), 1) for number in range(8)],
    [(row(3, None), -1), (row(3, "new"), 1)],
    [(row(1, "ab"), -1), (row(9, "ab"), 1)],
]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setattr("firnline.tables.concordance._SMALL", 4)
    made = Shelf(make_project(tmp_path, "concordance = true\n", web=PIPELINE), "web", "visits", SCHEMA, ("id",), parts=2)
    made.publish(*HISTORY)
    return made


def around(shelf: Shelf, number: int) -> Finding:
    leaf = _around(shelf.log, number, number + 1, is_keyed=True)
    return Finding(shelf.project, "web", Epoch(number, number + 1), {"visits": leaf})


def weighted(found: pa.Table | None) -> Counter[tuple[Any, ...]]:
    assert found is not None
    assert found.schema.names == [name for _, name in COLUMNS]
    rows: Counter[tuple[Any, ...]] = Counter()
    for each in found.to_pylist():
        rows[each["c1"], each["c0"]] += each["_diff"]
    return Counter({each: weight for each, weight in rows.items() if weight})


def brought(deltas: list[Delta], ids: set[int] | None = None) -> Counter[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    for each, diff in (change for delta in deltas for change in delta):
        if ids is None or each["id"] in ids:
            rows[each["page"], each["id"]] += diff
    return Counter({each: weight for each, weight in rows.items() if weight})


def test_a_change_is_what_the_epoch_brought(shelf: Shelf) -> None:
    for number in (1, 2):
        finding = around(shelf, number)
        assert ("visits", "change") in finding.at_hand()
        assert weighted(finding.found(Lookup("visits", "change", COLUMNS), None)) == brought(HISTORY[number : number + 1])


@pytest.mark.parametrize("moment", ["old", "new"])
def test_rows_of_a_state_are_found_by_their_keys(shelf: Shelf, moment: Any) -> None:
    for number in (1, 2):
        finding = around(shelf, number)
        assert ("visits", moment) in finding.at_hand()
        found = finding.found(Lookup("visits", moment, COLUMNS, (("id", "_key0"),), Relation()), NUMBERS)
        assert weighted(found) == brought(HISTORY[: number + (moment == "new")], {1, 3})


def test_nulls_are_found_as_one_value(shelf: Shelf) -> None:
    keys = pa.table({"_key0": pa.array([None, "new"], pa.string())})
    found = around(shelf, 2).found(Lookup("visits", "old", COLUMNS, (("page", "_key0"),), Relation()), keys)
    assert weighted(found) == brought(HISTORY[:2], {0, 3, 6})


def test_the_first_epoch_has_nothing_to_look_up(shelf: Shelf) -> None:
    assert ("visits", "old") not in around(shelf, 0).at_hand()
    assert ("visits", "change") not in around(shelf, 0).at_hand()


def test_a_state_that_ends_elsewhere_is_read_by_spark(shelf: Shelf) -> None:
    shelf.merge(0, 2)
    assert ("visits", "old") not in around(shelf, 1).at_hand(), "the merge took its single epochs"
    shelf.publish([(row(3, "new"), -1)])
    found = around(shelf, 3).found(Lookup("visits", "old", COLUMNS, (("id", "_key0"),), Relation()), NUMBERS)
    assert weighted(found) == brought(HISTORY, {1, 3})


def test_what_cannot_be_found_is_left_to_spark(shelf: Shelf) -> None:
    finding = around(shelf, 2)
    by_rate = Lookup("visits", "old", COLUMNS, (("rate", "_key0"),), Relation())
    assert finding.found(by_rate, pa.table({"_key0": [0.5]})) is None, "floating numbers"
    by_text = Lookup("visits", "old", COLUMNS, (("id", "_key0"),), Relation())
    assert finding.found(by_text, pa.table({"_key0": ["3"]})) is None, "values of another type"
    with_tags = Lookup("visits", "old", (*COLUMNS, ("tags", "c3")), (("id", "_key0"),), Relation())
    assert finding.found(with_tags, NUMBERS) is None, "lists are not kept"


def test_a_lost_file_is_left_to_spark(shelf: Shelf) -> None:
    for file in Path(shelf.project.settings.work).rglob("data/**/*.parquet"):
        file.unlink()
    lookup = Lookup("visits", "old", COLUMNS, (("id", "_key0"),), Relation())
    assert around(shelf, 2).found(lookup, NUMBERS) is None


def test_rows_of_a_large_log_are_looked_up_if_that_is_asked_for(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = shelf.project.settings.model_copy(update={"concordance": False})
    leaf = _around(shelf.log, 1, 2, is_keyed=True)
    unasked = Finding(type(shelf.project)(settings), "web", Epoch(1, 2), {"visits": leaf})
    assert unasked.at_hand() == around(shelf, 1).at_hand(), "it is small"
    monkeypatch.setattr("firnline.runtime.finding.FEW_ROWS", leaf.size - 1)
    assert not unasked.at_hand()
    assert around(shelf, 1).at_hand()


def test_nothing_is_looked_up_where_files_are_elsewhere(shelf: Shelf) -> None:
    settings = shelf.project.settings.model_copy(update={"warehouse": "s3://bucket/warehouse"})
    leaf = _around(shelf.log, 1, 2, is_keyed=True)
    assert not Finding(type(shelf.project)(settings), "web", Epoch(1, 2), {"visits": leaf}).at_hand()


def test_a_log_whose_columns_have_other_names_by_now_is_left_to_spark(shelf: Shelf) -> None:
    finding, lookup = around(shelf, 2), Lookup("visits", "old", COLUMNS, (("id", "_key0"),), Relation())
    assert finding.found(lookup, NUMBERS) is not None
    with shelf.project.catalog.iceberg("web", "visits").update_schema() as update:
        update.rename_column("page", "page_before")
    with shelf.project.catalog.iceberg("web", "visits").update_schema() as update:
        update.add_column("page", StringType())
    assert finding.found(lookup, NUMBERS) is None


def test_what_is_small_is_told_by_stored_rows(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = shelf.project.settings.model_copy(update={"concordance": False})
    leaf = _around(shelf.log, 2, 3, is_keyed=True)
    finding = Finding(type(shelf.project)(settings), "web", Epoch(2, 3), {"visits": leaf})
    lookup = Lookup("visits", "old", COLUMNS, (("id", "_key0"),), Relation())
    assert finding.found(lookup, NUMBERS) is not None
    monkeypatch.setattr("firnline.runtime.finding.FEW_ROWS", leaf.size)
    assert finding.at_hand()
    assert finding.found(lookup, NUMBERS) is None, "two more rows are stored that undo one another"
