"""Several operators in one stage, over inputs that are used more than once, are empty, or are part of the plan."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check, check_sql
from tests.spark.rules.data import BOTH, sampled


def thrice(left, right):
    most = left.groupBy("k").agg(F.max("x").alias("z"))
    return left.join(left.select("k", F.col("x").alias("y")), "k").join(most, "k", "left")


def share(left, right):
    total = left.agg(F.sum("x").alias("t"), F.count("*").alias("n"))
    return left.crossJoin(total).select("k", (F.col("x") / F.col("t")).alias("p"), "n")


def doubled(left, right):
    groups = left.groupBy("k").agg(F.sum("x").alias("s"))
    return groups.union(groups)


def named(left, right):
    return left.join(left.sparkSession.createDataFrame([(1, "one"), (2, "two")], "k int, w string"), "k", "left")


CASES = {
    "an input thrice": thrice,
    "beside the total": share,
    "with itself": doubled,
    "a constant": named,
    "a range": lambda left, right: left.join(left.sparkSession.range(4).toDF("k"), "k", "right"),
    "nothing": lambda left, right: left.where("k > 100").join(right, "k", "left").agg(F.sum("x"), F.count("b"), F.max("a")),
    "nulls as equals": lambda left, right: left.join(right, left.k.eqNullSafe(right.k), "full"),
    "more of some": lambda left, right: left.select("k").union(left.select("k")).exceptAll(right.select("k")),
    "sets of sets": lambda left, right: (
        left.select("k").subtract(right.select("k")).union(left.select("k").intersect(right.select("k")))
    ),
    "the first of the first": lambda left, right: left.orderBy("x", "a", "k").limit(3).orderBy(F.desc("x"), "a").limit(1),
    "ordered by what is dropped": lambda left, right: left.orderBy("x", "a", "k").select("a").limit(2),
    "groups of a window": lambda left, right: left.withColumn("r", F.expr("avg(x) over (partition by k)")).groupBy("k").avg("r"),
}
TEXTS = {
    "having without groups": "select sum(x) s from left having count(*) > 3",
    "distinct pairs": "select k, count(distinct a, x) n from left group by k",
    "filters": "select k, count(*) filter (where x > 5) n, sum(x) filter (where a <> 'p') s from left group by k",
}


@pytest.mark.parametrize("case", sampled(CASES, "an input thrice", "nulls as equals", "ordered by what is dropped"))
def test_nested(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: CASES[case](left, right), BOTH)


@pytest.mark.parametrize("case", sampled(TEXTS, "having without groups"))
def test_texts(spark: SparkSession, case: str) -> None:
    check_sql(spark, TEXTS[case], BOTH)
