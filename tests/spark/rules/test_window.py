"""Window functions, the first rows of an order, and one row per key."""

from __future__ import annotations

import pytest
from pyspark.sql import Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import LEFT, sampled


def by_key() -> WindowSpec:
    return Window.partitionBy("k")


def in_order() -> WindowSpec:
    return Window.partitionBy("k").orderBy("x", "a")


CASES = {
    "rank": lambda left: left.withColumn("r", F.rank().over(by_key().orderBy("x"))),
    "share": lambda left: left.select("k", "a", (F.col("x") / F.sum("x").over(by_key())).alias("share")),
    "number": lambda left: left.distinct().withColumn("n", F.row_number().over(in_order())),
    "running": lambda left: left.distinct().withColumn("s", F.sum("x").over(in_order().rowsBetween(-1, 0))),
    "before": lambda left: left.distinct().withColumn("p", F.lag("x").over(in_order())),
    "two": lambda left: left.withColumns({"n": F.count("*").over(by_key()), "m": F.max("x").over(Window.partitionBy("k", "a"))}),
    "doubles": lambda left: left.withColumn("s", F.sum(F.col("x") / 10.0).over(by_key())),
    "rows": lambda left: left.select(
        "k",
        F.sum("x").over(in_order().rowsBetween(-1, 1)).alias("s"),
        F.max("x").over(in_order().rowsBetween(Window.currentRow, Window.unboundedFollowing)).alias("m"),
        F.last("x", True).over(in_order().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)).alias("l"),
    ),
    "range": lambda left: left.select("k", F.sum("x").over(by_key().orderBy("x").rangeBetween(-3, 3)).alias("s")),
    "places": lambda left: left.select(
        "k",
        F.dense_rank().over(in_order()).alias("d"),
        F.cume_dist().over(in_order()).alias("c"),
        F.ntile(2).over(in_order()).alias("t"),
        F.lead("x", 1, 0).over(in_order()).alias("l"),
        F.nth_value("x", 2).over(in_order()).alias("n"),
    ),
    "moments": lambda left: left.select(
        "k",
        F.stddev("x").over(by_key()).alias("s"),
        F.var_pop("x").over(by_key().orderBy("x")).alias("v"),
        F.variance("x").over(in_order().rowsBetween(-1, 1)).alias("r"),
        F.corr("x", "k").over(by_key()).alias("c"),
        F.max_by("a", "x").over(by_key()).alias("m"),
    ),
    "lists": lambda left: left.distinct().select("k", F.collect_list("a").over(in_order()).alias("v")),
    "by an expression": lambda left: left.select("k", F.sum("x").over(Window.partitionBy(F.col("k") % 2)).alias("s")),
    "whole": lambda left: left.withColumn("n", F.count("*").over(Window.partitionBy())),
    "top": lambda left: left.orderBy(F.desc("x"), "a", "k").limit(2),
    "skipped": lambda left: left.orderBy("x", "a", "k").offset(1).limit(2),
    "latest": lambda left: left.orderBy(F.desc("x"), "a").dropDuplicates(["k"]),
}


@pytest.mark.parametrize("case", sampled(CASES, "rank", "number", "doubles", "moments", "rows", "top", "latest"))
def test_orders(spark: SparkSession, case: str) -> None:
    check(spark, lambda left: CASES[case](left), {"left": LEFT})
