"""Subqueries: scalar, IN and EXISTS, about rows outside or not."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import BOTH, sampled


def correlated_count(left, right):
    counted = right.where(F.col("k") == F.col("l.k").outer()).select(F.count("*"))
    return left.alias("l").select("k", "a", counted.scalar().alias("n"))


def correlated_most(left, right):
    most = left.alias("i").where(F.col("i.k") == F.col("o.k").outer()).select(F.max("x"))
    return left.alias("o").where(F.col("o.x") == most.scalar())


CASES = {
    "scalar": lambda left, right: left.where(F.col("x") > left.select(F.avg("x")).scalar()),
    "in select": lambda left, right: left.select("a", left.select(F.sum("x")).scalar().alias("all")),
    "in": lambda left, right: left.where(F.col("k").isin(right.select("k"))),
    "not in": lambda left, right: left.where(~F.col("k").isin(right.where("k > 1").select("k"))),
    "not in with nulls": lambda left, right: left.where(~F.col("k").isin(right.select("k"))),
    "exists": lambda left, right: left.alias("l").where(right.where(F.col("k") == F.col("l.k").outer()).exists()),
    "not exists": lambda left, right: left.alias("l").where(~right.where(F.col("k") == F.col("l.k").outer()).exists()),
    "count of each": correlated_count,
    "most of each": correlated_most,
}


@pytest.mark.parametrize("case", sampled(CASES, "scalar", "not in with nulls", "exists", "count of each"))
def test_subqueries(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: CASES[case](left, right), BOTH)
