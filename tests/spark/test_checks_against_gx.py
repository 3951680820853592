"""Our one pass finds what Great Expectations finds: the same verdicts and the same numbers, for random rows and expectations."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from great_expectations.validator.v1_validator import Validator
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.quality import gx, one_pass
from firnline.quality.gate import Gate, asked
from firnline.quality.planning import planned
from firnline.quality.suite import Suite

SCHEMA = "n bigint, k int, x double, m decimal(12,2), s string"
TYPES = {"n": "bigint", "k": "int", "x": "double", "m": "decimal(12,2)", "s": "string"}
NUMERIC = ["n", "k", "x", "m"]

texts = st.sampled_from(["", "a", "ab", "ab1", "ünïcödé", "日本", "a\nb", "🙂", "A", " a "]) | st.text(max_size=4).filter(
    lambda text: "\0" not in text and text.isprintable()
)
rows = st.lists(
    st.tuples(
        st.none() | st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-3, 3),
        st.none() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0]) | st.floats(-100, 100),
        st.none() | st.decimals(-1000, 1000, places=2),
        st.none() | texts,
    ),
    min_size=1,
    max_size=12,
)
bounds = st.integers(-6, 6) | st.floats(-100, 100).map(lambda value: round(value, 3))
mostly = st.none() | st.sampled_from([0, 0.25, 0.5, 0.9, 1])


def bounded(value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    def made(given: tuple[Any, Any, bool, bool]) -> dict[str, Any]:
        least, most, strict_min, strict_max = given
        if least is not None and most is not None and least > most:
            least, most = most, least
        kwargs = {"min_value": least, "max_value": most, "strict_min": strict_min, "strict_max": strict_max}
        return {key: value for key, value in kwargs.items() if value is not None}

    given = st.tuples(st.none() | value, st.none() | value, st.booleans(), st.booleans())
    return given.filter(lambda each: each[0] is not None or each[1] is not None).map(made)


def expectation(kind: str, columns: list[str] | None, *arguments: st.SearchStrategy[dict[str, Any]]) -> Any:
    column = st.sampled_from(columns).map(lambda name: {"column": name}) if columns else st.just({})
    merged = st.tuples(column, *arguments).map(lambda parts: {key: value for part in parts for key, value in part.items()})
    return merged.map(lambda kwargs: {"type": kind, "kwargs": kwargs, "meta": {}})


share = mostly.map(lambda value: {} if value is None else {"mostly": value})
integers = st.lists(st.integers(-5, 5), min_size=1, max_size=4).map(lambda values: {"value_set": values})
words = st.lists(texts, min_size=1, max_size=4).map(lambda values: {"value_set": values})
patterns = st.sampled_from(["^a", "b$", r"\d", "ï", ".", "^$", "[a-z]+"]).map(lambda value: {"regex": value})
shares = bounded(st.sampled_from([0, 0.5, 1]))
counts = bounded(st.integers(0, 12))

expectations = st.lists(
    st.one_of(
        expectation("expect_table_row_count_to_be_between", None, counts),
        expectation("expect_table_row_count_to_equal", None, st.integers(0, 12).map(lambda value: {"value": value})),
        expectation("expect_column_values_to_not_be_null", list(TYPES), share),
        expectation("expect_column_values_to_be_null", list(TYPES), share),
        expectation("expect_column_values_to_be_between", NUMERIC, bounded(bounds), share),
        expectation("expect_column_values_to_be_in_set", ["n", "k"], integers, share),
        expectation("expect_column_values_to_not_be_in_set", ["n", "k"], integers, share),
        expectation("expect_column_values_to_be_in_set", ["s"], words, share),
        expectation("expect_column_values_to_not_be_in_set", ["s"], words, share),
        expectation("expect_column_values_to_match_regex", ["s"], patterns, share),
        expectation("expect_column_values_to_not_match_regex", ["s"], patterns, share),
        expectation("expect_column_value_lengths_to_be_between", ["s"], counts, share),
        expectation("expect_column_value_lengths_to_equal", ["s"], st.integers(0, 3).map(lambda value: {"value": value}), share),
        expectation("expect_column_min_to_be_between", NUMERIC, bounded(bounds)),
        expectation("expect_column_max_to_be_between", NUMERIC, bounded(bounds)),
        expectation("expect_column_mean_to_be_between", NUMERIC, bounded(bounds)),
        expectation("expect_column_sum_to_be_between", NUMERIC, bounded(bounds)),
        expectation("expect_column_stdev_to_be_between", NUMERIC, bounded(st.floats(0, 100).map(lambda value: round(value, 3)))),
        expectation("expect_column_unique_value_count_to_be_between", list(TYPES), counts),
        expectation("expect_column_proportion_of_unique_values_to_be_between", list(TYPES), shares),
        expectation("expect_column_proportion_of_non_null_values_to_be_between", list(TYPES), shares),
    ),
    min_size=12,
    max_size=24,
    unique_by=repr,
)


def numbers(result: dict[str, Any]) -> dict[str, Any]:
    """What both must agree on: everything but which rows are shown."""
    return {key: value for key, value in result["result"].items() if key not in ("partial_unexpected_list", "unexpected_rows")}


def are_same(mine: dict[str, Any], yours: dict[str, Any]) -> bool:
    """Whether both found the same; order of rows may show in the last digit of a floating sum."""
    exact = {key: value for key, value in mine.items() if not isinstance(value, float)}
    close = {key: value for key, value in mine.items() if isinstance(value, float)}
    return (
        mine.keys() == yours.keys()
        and all(yours[key] == value for key, value in exact.items())
        and all(yours[key] == pytest.approx(value, rel=1e-12, abs=1e-12) for key, value in close.items())
    )


@settings(max_examples=12, phases=[Phase.explicit, Phase.generate])  # on Spark, shrinking takes minutes
@given(rows=rows, configs=expectations)
def test_one_pass_finds_what_great_expectations_finds(spark: SparkSession, rows: list[Any], configs: list[Any]) -> None:
    frame = spark.createDataFrame(rows, SCHEMA).repartition(1)
    taken = [planned(config, TYPES) for config in configs]
    assert None not in taken, "all of these are answered by numbers"
    found, ours = one_pass.answered(frame, [each for each in taken if each is not None])
    assert found == len(rows)
    theirs = gx.answered(frame, Suite("all", tuple(configs), Path("all.json")), configs)
    for config, mine, yours in zip(configs, ours, theirs, strict=True):
        assert yours["exception_info"]["raised_exception"] is False, yours
        assert mine["success"] == yours["success"], (config, mine, yours)
        assert are_same(numbers(mine), numbers(yours)), (config, mine, yours)
        if not mine["success"] and "unexpected_count" in mine["result"]:
            sampled, shown = mine["result"]["partial_unexpected_list"], yours["result"]["partial_unexpected_list"]
            assert sorted(map(repr, sampled)) == sorted(map(repr, map(one_pass.plain, shown)))


def test_what_is_left_to_great_expectations_comes_back_in_order_with_rows(spark: SparkSession) -> None:
    day = date(2026, 1, 1)
    frame = spark.createDataFrame([(1, Decimal("1.50"), day), (2, Decimal("1.50"), day)], "n int, m decimal(4,2), d date")
    configs: list[dict[str, Any]] = [
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "m"}, "meta": {}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "d", "max_value": "2025-01-01"}, "meta": {}},
        {"type": "expect_table_columns_to_match_set", "kwargs": {"column_set": ["n", "m", "d"]}, "meta": {}},
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "n"}, "meta": {}},
    ]
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    gate = Gate.of(Suite("left", tuple(configs), Path("left.json")), types)
    assert gate.numbers == []
    rows, ((unique, dated, columns, ids),) = asked([gate], frame)
    assert rows == 2
    assert [each["success"] for each in (unique, dated, columns, ids)] == [False, False, True, True]
    assert [each["expectation_config"] for each in (unique, dated, columns, ids)] == configs
    whole = [{"n": 1, "m": 1.5, "d": "2026-01-01"}, {"n": 2, "m": 1.5, "d": "2026-01-01"}]
    assert sorted(unique["result"]["unexpected_rows"], key=lambda row: int(row["n"])) == whole
    assert json.loads(json.dumps(dated))["result"]["unexpected_count"] == 2


def test_of_no_rows_nothing_is_said_about_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1, 1.0, Decimal(1), "a")], SCHEMA).limit(0)
    config = {"kwargs": {"column": "n", "min_value": 1}, "meta": {}}
    mean = planned({**config, "type": "expect_column_mean_to_be_between"}, TYPES)
    between = planned({**config, "type": "expect_column_values_to_be_between"}, TYPES)
    count = planned({"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}, "meta": {}}, TYPES)
    assert mean is not None
    assert between is not None
    assert count is not None
    rows, results = one_pass.answered(frame, [mean, between, count])
    assert rows == 0
    assert [each["success"] for each in results] == [True, True, False]


def test_epochs_that_are_computed_side_by_side_are_asked_about_their_own_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_of(count: int) -> Any:
        config = {"type": "expect_table_row_count_to_equal", "kwargs": {"value": count}, "meta": {}}
        return gx.answered(spark.range(count), Suite("sane", (config,), Path("sane.json")), [config])[0]["result"]

    asked_of(1)  # what is made once is there
    both, batch, validate = Barrier(2), gx._batch, Validator.validate_expectation_suite

    def meet() -> None:
        with suppress(BrokenBarrierError):
            both.wait(3)

    def batch_of(frame: DataFrame) -> Any:
        assert gx._ONE.locked(), "one after the other: two would share a source, and the last one's rows"
        made = batch(frame)
        meet()
        return made

    def validated(self: Validator, *arguments: Any, **options: Any) -> Any:
        assert self.active_batch_id
        meet()
        return validate(self, *arguments, **options)

    monkeypatch.setattr(gx, "_batch", batch_of)
    monkeypatch.setattr(Validator, "validate_expectation_suite", validated)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(asked_of, (3, 7))) == [{"observed_value": 3}, {"observed_value": 7}]
