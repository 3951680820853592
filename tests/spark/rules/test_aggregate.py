"""Groups: aggregates that add up, aggregates that do not, several at once, groups of groups."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import History, check
from tests.spark.rules.data import BOTH, LEFT, sampled

NAN = float("nan")
NUMBERS = History(
    "k int, x double, d decimal(38,10), b boolean, i bigint",
    [
        [
            ((1, 0.1, Decimal("1.1"), True, 2**60), 1),
            ((1, 0.2, None, False, 1), 1),
            ((2, NAN, Decimal(2), None, None), 1),
            ((1, 0.7, Decimal("-3.14"), True, 5), 1),
        ],
        [
            ((1, 0.2, None, False, 1), -1),
            ((2, NAN, Decimal(2), None, None), -1),
            ((3, float("inf"), None, None, -(2**60)), 1),
            ((2, -0.0, None, None, 7), 1),
            ((1, 1e-20, Decimal("12345678901234567890.5"), None, None), 2),
        ],
        [((3, float("inf"), None, None, -(2**60)), -1), ((1, 3e10, None, True, None), 1)],
    ],
)


def sums() -> list[Column]:
    return [
        F.sum("x").alias("sx"),
        F.avg("x").alias("ax"),
        F.sum("d").alias("sd"),
        F.avg("d").alias("ad"),
        F.count("b").alias("cb"),
        F.bool_and("b").alias("every"),
        F.bool_or("b").alias("some"),
        F.avg(F.col("i") % 1000).alias("ai"),
        F.sum(F.col("i") % 10).alias("si"),
        F.count("*").alias("n"),
        (F.sum("i") + F.count("i") * 2).alias("mixed"),
        F.count_if("b").alias("hits"),
    ]


def others() -> list[Column]:
    return [
        F.max("i").alias("most"),
        F.min("x").alias("least"),
        F.count_distinct("b").alias("kinds"),
        F.expr("sum(i) FILTER (WHERE b)").alias("some"),
        F.sort_array(F.collect_list("i")).alias("all"),
        F.sort_array(F.collect_set("b")).alias("set"),
        F.percentile("i", 0.5).alias("middle"),
        F.sum("x").alias("sx"),
        F.stddev("i").alias("spread"),
        F.var_pop("k").alias("variance"),
        F.max_by("i", "x").alias("latest"),
    ]


def moments() -> list[Column]:
    pairs = [F.corr, F.covar_pop, F.covar_samp, F.regr_slope, F.regr_intercept, F.regr_r2, F.regr_count]
    pairs += [F.regr_avgx, F.regr_avgy, F.regr_sxx, F.regr_syy, F.regr_sxy]
    found = [each("x", "k") for each in pairs]
    found += [F.skewness("x"), F.kurtosis("x"), F.stddev_pop("x"), F.product("x"), F.mode("x", True), F.min_by("a", "x")]
    return [each.alias(f"m{number}") for number, each in enumerate(found)]


@pytest.mark.parametrize("keys", [["a"], []], ids=["by key", "of all"])
def test_moments(spark: SparkSession, keys: list[str]) -> None:
    check(spark, lambda left: left.groupBy(*keys).agg(*moments()), {"left": LEFT})


@pytest.mark.parametrize("keys", [["k"], []], ids=["by key", "of all"])
def test_what_adds_up(spark: SparkSession, keys: list[str]) -> None:
    check(spark, lambda numbers: numbers.groupBy(*keys).agg(*sums()), {"numbers": NUMBERS})


@pytest.mark.parametrize("keys", [["k"], []], ids=["by key", "of all"])
def test_what_does_not(spark: SparkSession, keys: list[str]) -> None:
    check(spark, lambda numbers: numbers.groupBy(*keys).agg(*others()), {"numbers": NUMBERS})


def nested(left: DataFrame, right: DataFrame) -> DataFrame:
    named = left.join(right, "k", "left").groupBy("b").agg(F.count("*").alias("n"), F.max("x").alias("m"))
    return named.where("n > 1").join(right.groupBy("b").agg(F.max("k").alias("last")), "b")


def test_doubles_in_any_order(spark: SparkSession) -> None:
    sums = [F.try_sum("x"), F.try_avg("x"), F.sum_distinct("x"), F.expr("avg(DISTINCT x)"), F.sum("t"), F.avg("t")]

    def stage(numbers):
        texts = numbers.where("abs(x) < 1e300").withColumn("t", F.col("x").cast("string"))
        return texts.groupBy("k").agg(*(each.alias(f"s{number}") for number, each in enumerate(sums)))

    check(spark, stage, {"numbers": NUMBERS})


SETS = History(
    "id int, x bigint",
    [
        [((number, number if number < 10 else 20), 1) for number in range(11)],  # one more value, and Spark keeps them otherwise
        [((11, 0), 1), ((12, 2**32 + 1), 1), ((13, 0), 1)],
        [((12, 2**32 + 1), -1), ((0, 0), -1)],
    ],
)


def test_sets_are_in_order(spark: SparkSession) -> None:
    check(spark, lambda sets: sets.groupBy().agg(F.collect_set("x"), F.expr("collect_set(id % 5)"), F.count("*")), {"sets": SETS})
    check(
        spark,
        lambda sets: sets.select("id", F.collect_set("x").over(Window.partitionBy(F.col("id") % 2)).alias("s")),
        {"sets": SETS},
    )


def test_lists_by_a_comparison_that_leaves_some_equal(spark: SparkSession) -> None:
    def sorted_by(values: Column) -> Column:
        return F.array_sort(values, lambda one, other: (one.x % 2 - other.x % 2).cast("int"))

    pairs = F.collect_list(F.struct("x", "id"))
    check(
        spark,
        lambda sets: sets.groupBy().agg(sorted_by(pairs).alias("s")),
        {"sets": SETS},
        plain=lambda sets: sets.groupBy().agg(sorted_by(F.sort_array(pairs)).alias("s")),
    )


def test_windows_of_time(spark: SparkSession) -> None:
    def stage(left):
        moments = left.withColumn("t", F.timestamp_seconds("x"))
        sliding = moments.select("k", F.window("t", "4 seconds", "2 seconds").alias("w")).groupBy("k").count()
        return sliding.union(moments.select("k", F.window("t", "4 seconds").start).groupBy("k").count())

    check(spark, stage, {"left": LEFT})


GROUPS = {
    "by an expression": lambda left, right: left.groupBy((F.col("k") % 2).alias("odd"), F.upper("a")).count(),
    "having": lambda left, right: left.groupBy("k").agg(F.count("*").alias("n")).where("n > 1").select("k"),
    "of groups": lambda left, right: left.groupBy("k").count().groupBy("count").agg(F.count("*").alias("m")),
    "the most of groups": lambda left, right: left.groupBy("k").agg(F.sum("x").alias("s")).agg(F.max("s").alias("m")),
    "of a join": lambda left, right: left.join(right, "k").groupBy("b").agg(F.sum("x").alias("s")),
    "nested": nested,
    "distinct": lambda left, right: left.select("a").distinct(),
    "without groupBy": lambda left, right: left.select(F.max("x"), F.count("*")),
    "rollup": lambda left, right: left.rollup("k", "a").agg(F.sum("x").alias("s"), F.grouping("a"), F.grouping_id()),
    "cube": lambda left, right: left.cube("k", "a").agg(F.count("x").alias("n")),
    "rollup that begins with nothing": lambda left, right: left.where("a = 'r'").rollup("k").agg(F.sum("x").alias("s")),
    "grouping sets": lambda left, right: left.groupingSets([["k", "a"], ["k"], []], "k", "a").agg(F.sum("x"), F.grouping_id()),
    "grouping sets by expressions": lambda left, right: left.groupingSets(
        [[F.upper("a"), "k"], ["k"], []], F.upper("a"), "k"
    ).agg(F.sum("x"), F.grouping(F.upper("a")), (F.coalesce("k", F.lit(0)) + F.count("k")).alias("n"), F.grouping_id()),
    "nothing counted": lambda left, right: left.groupBy("k").agg(F.count(F.lit(None)).alias("n"), F.count(F.col("*")).alias("m")),
    "keys in expressions": lambda left, right: left.groupBy(F.upper("a").alias("u")).agg(
        F.concat(F.upper("a"), F.count("x").cast("string"))
    ),
    "pivot": lambda left, right: left.groupBy("k").pivot("a", ["p", "q"]).agg(F.sum("x"), F.count("x")),
    "pivot of numbers as texts": lambda left, right: (
        left.withColumn("a", F.coalesce(F.col("x").cast("string"), "a")).groupBy("k").pivot("a", [7, 10]).agg(F.count("x"))
    ),
    "pivot of lists": lambda left, right: left.groupBy("k").pivot("a", ["p", "q"]).agg(F.collect_set("x"), F.count("x")),
    "pivot of extremes": lambda left, right: left.groupBy("k").pivot("a", ["q", "s"]).agg(F.max_by("a", "x"), F.count("x")),
}


@pytest.mark.parametrize(
    "case",
    sampled(
        GROUPS,
        "having",
        "nested",
        "grouping sets by expressions",
        "nothing counted",
        "pivot of lists",
        "distinct",
        "rollup that begins with nothing",
    ),
)
def test_groups(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: GROUPS[case](left, right), BOTH)


def test_python_functions_of_groups(spark: SparkSession) -> None:
    def counted(group):
        return group.head(1)[["k"]].assign(n=len(group))

    check(spark, lambda left: left.groupBy("k").applyInPandas(counted, "k int, n int"), {"left": LEFT})


@pytest.mark.nightly
def test_python_functions_of_groups_by_an_expression(spark: SparkSession) -> None:
    def counted(key, group):
        import pandas as pd

        return pd.DataFrame({"odd": [key[0]], "n": [len(group)], "columns": [",".join(group.columns)]})

    def grouped(left):
        return left.groupBy((F.col("k") % 2).alias("odd")).applyInPandas(counted, "odd double, n int, columns string")

    check(spark, grouped, {"left": LEFT})


def test_python_functions_that_put_groups_together(spark: SparkSession) -> None:
    @F.pandas_udf("double")
    def largest(values: pd.Series) -> float:
        return float(values.max())

    def grouped(left):
        known = left.where("x is not null")
        return known.groupBy("k").agg(largest("x").alias("m")).union(known.select(F.lit(0), largest(F.col("x") + 1)))

    check(spark, grouped, {"left": LEFT})


def test_python_functions_of_pairs_of_groups(spark: SparkSession) -> None:
    def counted(left, right):
        import pandas as pd

        return pd.DataFrame({"n": [len(left)], "m": [len(right)]})

    def paired(left, right):
        by_expression = left.alias("l").groupBy(F.col("l.k") % 3).cogroup(right.groupBy(F.col("k") % 3))
        return by_expression.applyInPandas(counted, "n int, m int")

    check(spark, paired, BOTH)
