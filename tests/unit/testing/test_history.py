from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.testing.history import Crash, coerced, steps_of, tables_of


def refusal(call: Any, *given: Any) -> str:
    with pytest.raises(FirnlineError) as caught:
        call(*given)
    assert caught.value.code == "BAD_HISTORY"
    return str(caught.value)


def test_crashes_belong_to_the_epoch_after_them() -> None:
    first, second = Crash("publish.committed"), Crash("stage.written", "orders")
    steps = steps_of([{"a": []}, first, second, {}])
    assert [step.crashes for step in steps] == [(), (first, second)]


@pytest.mark.parametrize(
    ("history", "what"),
    [
        ([], "no epoch"),
        ([{}, Crash("publish.committed")], "no epoch follows"),
        ([Crash("nowhere"), {}], "'nowhere' is no point"),
        ([[{"a": 1}]], "an item is list"),
    ],
)
def test_what_is_no_history_is_refused(history: list[Any], what: str) -> None:
    assert what in refusal(steps_of, history)


def test_an_input_has_one_schema_for_all_epochs() -> None:
    epochs = [[{"k": 1, "at": datetime(2026, 1, 1)}], [], [{"k": 2, "price": Decimal("1.50")}, {"k": 1, "_diff": -1}]]
    tables = tables_of("a", epochs, None)
    assert {table.schema for table in tables} == {tables[0].schema}
    assert tables[0].schema.field("at").type == pa.timestamp("us", "UTC")
    assert tables[0].to_pylist() == [{"k": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "price": None, "_diff": 1}]
    assert [row["_diff"] for row in tables[2].to_pylist()] == [1, -1]


def test_arrow_gives_its_schema_to_rows_of_other_epochs() -> None:
    given = pa.table({"k": pa.array([1], pa.int32()), "price": pa.array([Decimal("1.00")], pa.decimal128(9, 2))})
    tables = tables_of("a", [given, [{"k": 2, "price": 1.5}]], None)
    assert tables[0] == given
    assert tables[1].to_pylist() == [{"k": 2, "price": Decimal("1.50")}]


@pytest.mark.parametrize(
    ("rows", "schema", "what"),
    [
        ([], None, "its columns are unknown"),
        ([{"k": None}], None, "always null"),
        ([{"k": 1}, {"k": "one"}], None, "several types"),
        ([{"k": 1, "x": 2}], pa.schema([("k", pa.int64())]), "no column x"),
        ([{"k": "one"}], pa.schema([("k", pa.int64())]), "does not hold int64"),
        ([{"k": "many"}], pa.schema([("k", pa.decimal128(5, 2))]), "does not hold decimal128(5, 2)"),
        ([7], None, "a row of 'a' is int"),
    ],
)
def test_rows_that_fit_no_schema_are_refused(rows: list[Any], schema: pa.Schema | None, what: str) -> None:
    assert what in refusal(tables_of, "a", [rows], schema)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("2026-01-02", pa.date32(), date(2026, 1, 2)),
        (date(2026, 1, 2), pa.timestamp("us"), datetime(2026, 1, 2)),
        ("2026-01-02T03:00+02:00", pa.timestamp("us"), datetime(2026, 1, 2, 1)),
        (1, pa.float64(), 1.0),
        ("é", pa.binary(), "é".encode()),
        ({"a": "1.5"}, pa.struct([("a", pa.decimal128(3, 1)), ("b", pa.int64())]), {"a": Decimal("1.5"), "b": None}),
        (["2026-01-02"], pa.list_(pa.date32()), [date(2026, 1, 2)]),
        (None, pa.date32(), None),
    ],
)
def test_values_are_taken_as_their_type_has_them(value: Any, kind: pa.DataType, expected: Any) -> None:
    assert coerced(value, kind) == expected
