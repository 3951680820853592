"""Intersections and differences, of multisets and of sets."""

from __future__ import annotations

import pytest
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import BOTH


@pytest.mark.parametrize("name", ["intersect", "intersectAll", "subtract", "exceptAll"])
def test_by_rows(spark: SparkSession, name: str) -> None:
    check(spark, lambda left, right: getattr(left.select("k"), name)(right.select("k")), BOTH)
