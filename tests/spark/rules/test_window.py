"""Window functions, the first rows of an order, and one row per key."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import History, check
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
    "range": lambda left: left.select(
        "k",
        F.sum("x").over(by_key().orderBy("x").rangeBetween(-3, 3)).alias("s"),
        F.sort_array(F.collect_list("a").over(by_key().orderBy("x").rangeBetween(-3, 3))).alias("v"),
        F.last("x").over(by_key().orderBy(F.desc_nulls_first("x")).rangeBetween(0, 3)).alias("l"),
    ),
    "ranks of rows": lambda left: left.withColumn(
        "r", F.rank().over(by_key().orderBy("x").rowsBetween(Window.unboundedPreceding, Window.currentRow))
    ),
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
    "whole": lambda left: left.withColumns(
        {
            "n": F.count("*").over(Window.partitionBy()),
            "s": F.sum("x").over(by_key().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)),
        }
    ),
    "top": lambda left: left.orderBy(F.desc("x"), "a", "k").limit(2),
    "skipped": lambda left: left.orderBy("x", "a", "k").offset(1).limit(2),
    "skipped by another order": lambda left: left.orderBy("x", "a", "k").offset(1).orderBy(F.desc("a"), "x", "k").limit(2),
    "latest": lambda left: left.orderBy(F.desc("x"), "a").dropDuplicates(["k"]),
}


@pytest.mark.parametrize(
    "case", sampled(CASES, "rank", "number", "doubles", "moments", "rows", "range", "skipped by another order", "latest")
)
def test_orders(spark: SparkSession, case: str) -> None:
    check(spark, lambda left: CASES[case](left), {"left": LEFT})


PEERS = History(
    "k int, d int, x int",
    [
        [((1, 1, 5), 1), ((1, 1, 2), 1), ((1, 2, None), 2), ((1, 2, 4), 1), ((None, None, 3), 1), ((2, 1, None), 1)],
        [((1, 1, 5), -1), ((1, None, 7), 1), ((2, 1, 4), 1), ((2, 3, 4), 1), ((None, None, None), 1)],
        [((1, 2, None), -1), ((1, 1, 2), 1)],
    ],
)


def test_peers_are_seen_together(spark: SparkSession) -> None:
    functions = {
        "all": (F.collect_list("x"), "there"),
        "first": (F.first("x"), "get(seen, 0)"),
        "first there": (F.first("x", True), "get(there, 0)"),
        "last": (F.last("x"), "element_at(seen, -1)"),
        "last there": (F.last_value("x", F.lit(True)), "try_element_at(there, -1)"),
        "second": (F.nth_value("x", 2), "get(seen, 1)"),
        "second there": (F.nth_value("x", 2, True), "get(there, 1)"),
    }

    def stage(left: DataFrame) -> DataFrame:
        return left.select("*", *(each.over(by_key().orderBy("d")).alias(name) for name, (each, _) in functions.items()))

    def in_plain_words(left: DataFrame) -> DataFrame:
        seen = left.withColumn("seen", F.expr("sort_array(collect_list(struct(d, x)) OVER (PARTITION BY k ORDER BY d)).x"))
        there = seen.withColumn("there", F.expr("filter(seen, x -> x IS NOT NULL)"))
        return there.select("k", "d", "x", *(F.expr(text).alias(name) for name, (_, text) in functions.items()))

    check(spark, stage, {"left": PEERS}, plain=in_plain_words)
