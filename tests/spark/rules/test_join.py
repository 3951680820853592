"""Joins of every kind, on equality and with further conditions."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import BOTH, LEFT, sampled

KINDS = ("inner", "left", "right", "full", "left_semi", "left_anti")


@pytest.mark.parametrize("kind", sampled(KINDS, "inner", "left", "left_anti"))
def test_by_a_common_column(spark: SparkSession, kind: str) -> None:
    check(spark, lambda left, right: left.join(right, "k", kind), BOTH)


@pytest.mark.parametrize("kind", sampled(KINDS, "full"))
def test_by_a_key_and_a_condition(spark: SparkSession, kind: str) -> None:
    def joined(left, right):
        return left.join(right, (left.k + 1 == right.k + 1) & ((left.x > 5) | (right.b == "b1")), kind)

    check(spark, joined, BOTH)


@pytest.mark.parametrize("kind", sampled(["inner", "left", "left_anti"], "left"))
def test_without_a_key(spark: SparkSession, kind: str) -> None:
    check(spark, lambda left, right: left.join(right, left.k < right.k, kind), BOTH)


def test_products(spark: SparkSession) -> None:
    check(spark, lambda left, right: left.crossJoin(right.select("b")), BOTH)


def test_products_under_a_filter(spark: SparkSession) -> None:
    def joined(left, right):
        pairs = left.select("k", "x").crossJoin(right.select(F.col("k").alias("j"), "b"))
        return pairs.crossJoin(left.select(F.col("k").alias("i"))).where("j = i AND i = k AND x > 4")

    check(spark, joined, BOTH)


def test_with_itself(spark: SparkSession) -> None:
    check(spark, lambda left: left.alias("l").join(left.alias("r"), F.col("l.k") == F.col("r.x") - 4), {"left": LEFT})


def test_with_some_of_its_own_rows(spark: SparkSession) -> None:
    def joined(left):
        some = left.where("x > 4")
        return left.join(some, (left.k == some.k) & (left.x < some.x + 3), "left").toDF("k", "a", "x", "j", "b", "y")

    check(spark, joined, {"left": LEFT})


def test_of_joins(spark: SparkSession) -> None:
    def joined(left, right):
        there = left.join(right, "k", "left_semi").join(right.withColumnRenamed("b", "c"), "k", "left")
        return there.join(left.select("k", F.col("a").alias("d")), "k")

    check(spark, joined, BOTH)


def test_whether_there_is_any_group(spark: SparkSession) -> None:
    def found(left, right):
        return left.join(right.groupBy("b").agg(F.max("k").alias("last")).where("last > 2"), F.lit(True), "left_semi")

    check(spark, found, BOTH)
