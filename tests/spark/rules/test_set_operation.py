"""Intersections and differences, of multisets and of sets."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import BOTH, LEFT


@pytest.mark.parametrize("name", ["intersect", "intersectAll", "subtract", "exceptAll"])
def test_by_rows(spark: SparkSession, name: str) -> None:
    check(spark, lambda left, right: getattr(left.select("k"), name)(right.select("k")), BOTH)


def test_the_same_rows_under_two_names(spark: SparkSession) -> None:
    def both(left):
        top = left.orderBy("x", "a", "k").limit(2)
        return top.select(F.col("a").alias("one")).intersectAll(top.select(F.col("a").alias("two")))

    check(spark, both, {"left": LEFT})
