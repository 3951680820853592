"""Values of every type, at the ends of their ranges, as keys, in orders and in aggregates."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import History, check
from tests.spark.rules.data import sampled

MIDDAY, SMALL = dt.datetime(2020, 1, 1, 12), Decimal("-0.0000000001")
OLD = (1, SMALL, Decimal(1), dt.datetime(2021, 1, 1), None, dt.date(1900, 1, 1), b"", 0.1, -128, False, -(2**62))
EMPTY = (2, *[None] * 10)
TYPES = History(
    """k int, d decimal(38,10), e decimal(38,0), t timestamp, n timestamp_ntz, day date, b binary, f float, y tinyint, z boolean,
       l bigint""",
    [
        [
            ((1, Decimal("1234567890123456789012.0123456789"), Decimal("9" * 38), MIDDAY, MIDDAY, dt.date(2020, 1, 1),
              b"\x00\x01", 1.5, 1, True, 2**62), 1),
            (OLD, 2),
            (EMPTY, 1),
        ],
        [
            (OLD, -1),
            ((2, Decimal(7), Decimal(-1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1, 1, 1),
              dt.date(9999, 12, 31), b"\xff", float("nan"), 127, None, 5), 1),
        ],
        [(EMPTY, -1)],
    ],
)  # fmt: skip


def aggregated(t):
    sums = [F.sum("d"), F.avg("d"), F.sum("f"), F.avg("f"), F.avg("y"), F.sum("y"), F.avg("l"), F.bool_and("z")]
    ends = [F.max("e"), F.min("t"), F.max("n"), F.max("day"), F.max("b"), F.min("f"), F.count_distinct("b", "day")]
    lists = [F.sort_array(F.collect_list("t")), F.sort_array(F.collect_set("b")), F.median("y"), F.percentile("f", [0.25, 0.75])]
    return t.groupBy("k").agg(*(each.alias(f"c{number}") for number, each in enumerate([*sums, *ends, *lists])))


def by_bytes(t):
    equal = (F.col("a.b") == F.col("c.b")) & F.col("a.d").eqNullSafe(F.col("c.d"))
    return t.alias("a").join(t.alias("c"), equal, "left").select("a.k", "c.k", "a.d")


def same_day(t):
    return t.alias("a").join(t.alias("c"), F.col("a.day").eqNullSafe(F.col("c.day")), "full").select("a.k", "c.b")


def structured(t):
    parts = F.udf(lambda day: (str(day), None if day is None else day.year), "s string, y int")
    return t.select("k", parts("day").alias("r")).groupBy("r.y").agg(F.max("r"), F.count("*"))


CASES = {
    "aggregated": aggregated,
    "grouped by": lambda t: t.groupBy("t", "n", "day", "b", "f").agg(F.sum("d").alias("s")),
    "by the day": lambda t: t.groupBy(F.window("t", "1 day")).agg(F.count("*").alias("n")),
    "joined by": by_bytes,
    "nulls as equals": same_day,
    "first in a window": lambda t: t.select("k", F.first("b").over(Window.partitionBy("k").orderBy("t", "l"))),
    "united": lambda t: t.select("y", "d").union(t.select("l", "e")),
    "removed": lambda t: t.select("f", "b", "d").exceptAll(t.where("k = 1").select("f", "b", "d")),
    "a struct from Python": structured,
}


@pytest.mark.parametrize("case", sampled(CASES, "aggregated", "joined by"))
def test_types(spark: SparkSession, case: str) -> None:
    check(spark, lambda t: CASES[case](t), {"t": TYPES})
