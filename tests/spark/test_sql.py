"""Texts that are translated give the columns, types and rows that Spark gives for the texts themselves."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from bench.tpch.data import TABLES, base
from bench.tpch.sql import texts
from firnline.engine.frames import frame_of, relation_of
from firnline.incremental.relation import project
from firnline.incremental.sql_expression import parsed
from firnline.incremental.sql_relation import translated
from firnline.incremental.sql_source import aliased

HERE = Path(__file__).parent
EXPRESSIONS_AT_ONCE = 12
TPCH = texts(0.1)
TYPES = {
    "t": """a int, b int, s string, d date, ts timestamp, x double, m decimal(10,2), xs array<int>, st struct<f:int,g:string>,
            mp map<string,int>, l bigint, bo boolean""",
    "u": "a int, c int, k string",
    "n": "v int",
    "e": "v int",
    "ord": "id int, cust string, amt decimal(8,2), day date",
}
JANUARY, NOON = dt.date(2020, 1, 31), dt.datetime(2020, 1, 31, 12, 30, 5)
ROWS: dict[str, list[tuple[object, ...]]] = {
    "t": [
        (1, 10, "one", JANUARY, NOON, 1.5, Decimal("1.25"), [1, 2, 3], (1, "u"), {"k": 1}, 100, True),
        (2, 20, "Two", dt.date(2021, 2, 28), dt.datetime(2021, 2, 28), -2.5, Decimal("-3.10"), [], (2, None), {}, -5, False),
        (2, *[None] * 11),
        (None, 30, "a_b%c", dt.date(1999, 12, 31), NOON, 0.0, Decimal(0), [None, 4], (None, "w"), {"k": 7}, 7, True),
        (3, 30, "one", JANUARY, NOON, 1e10, Decimal("99999999.99"), [5], (3, "u"), {"z": None}, 1 << 40, None),
    ],
    "u": [(1, 100, "p"), (2, 200, "q"), (2, 201, "q"), (None, 300, "r"), (5, None, "s")],
    "n": [(1,), (None,)],
    "e": [],
    "ord": [
        (1, "x", Decimal("5.00"), dt.date(2020, 1, 1)),
        (2, "x", Decimal("7.50"), dt.date(2020, 1, 2)),
        (3, "y", Decimal("1.00"), dt.date(2020, 1, 2)),
        (4, None, Decimal("2.00"), dt.date(2020, 2, 1)),
    ],
}


def lines(name: str) -> list[str]:
    return [line for line in (HERE / name).read_text(encoding="utf-8").splitlines() if not line.startswith("--")]


def views(frames: dict[str, DataFrame]) -> dict[str, Relation]:
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return {name: relation_of(frame) for name, frame in frames.items()}


@pytest.fixture(scope="module")
def inputs(spark: SparkSession) -> dict[str, Relation]:
    return views({name: spark.createDataFrame(ROWS[name], TYPES[name]) for name in TYPES})


def outcome(frame: DataFrame) -> tuple[list[tuple[str, str]], Counter[str]]:
    columns = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    return columns, Counter(repr(tuple(row)) for row in frame.collect())


def assert_same(spark: SparkSession, text: str, inputs: dict[str, Relation]) -> None:
    assert outcome(frame_of(spark, translated(text, inputs))) == outcome(spark.sql(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=[] if number % 3 == 0 else pytest.mark.nightly)
        for number, text in enumerate(lines("statements.sql"))
    ],
)
def test_statements(spark: SparkSession, inputs: dict[str, Relation], text: str) -> None:
    assert_same(spark, text, inputs)


@pytest.mark.nightly
@pytest.mark.parametrize("text", lines("more_statements.sql"))
def test_more_statements(spark: SparkSession, inputs: dict[str, Relation], text: str) -> None:
    assert_same(spark, text, inputs)


@pytest.mark.parametrize("first", range(0, len(lines("expressions.sql")), EXPRESSIONS_AT_ONCE))
def test_expressions(spark: SparkSession, inputs: dict[str, Relation], first: int) -> None:
    listed = lines("expressions.sql")[first : first + EXPRESSIONS_AT_ONCE]
    found = frame_of(spark, project(aliased(inputs["t"], "t"), map(parsed, listed)))
    assert outcome(found) == outcome(spark.sql(f"select {', '.join(listed)} from t"))


def test_a_registered_function(spark: SparkSession, inputs: dict[str, Relation]) -> None:
    spark.udf.register("plus_one", lambda value: None if value is None else value + 1, "int")
    assert_same(spark, "select PLUS_ONE(a) as z from t where plus_one(b) > 11", inputs)


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Relation]:
    folder = base(tmp_path_factory.mktemp("tpch"), 0.01)
    return views({table: spark.read.parquet(f"{folder}/{table}.parquet") for table in TABLES})


@pytest.mark.nightly
@pytest.mark.parametrize("query", TPCH)
def test_tpch(spark: SparkSession, tpch: dict[str, Relation], query: str) -> None:
    assert_same(spark, TPCH[query], tpch)
