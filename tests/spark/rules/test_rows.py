"""Projections, filters, generators, unions: the same of the changed rows."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check
from tests.spark.rules.data import BOTH, LEFT


def doubled(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield batch.assign(x=batch.x * 2)


def renamed(left: DataFrame) -> DataFrame:
    aliased = left.alias("l")
    return (
        aliased.withColumnRenamed("a", "b").withColumn("x", F.col("x") + 1).withColumns({"y": F.col("x") * 2}).drop("k", "nope")
    )


CASES = {
    "select": lambda left: left.select("k", (F.col("x") + 1).alias("y"), F.lit(1), "a", "a"),
    "expressions": lambda left: left.selectExpr("*", "x * 2 AS y", "upper(a)").where("y > 6 OR y IS NULL"),
    "where": lambda left: left.where((F.col("x") > 6) | F.col("a").isin("z")),
    "renamed": renamed,
    "explode": lambda left: left.select("k", F.explode(F.array("x", F.lit(3))).alias("e")),
    "posexplode": lambda left: left.select("k", F.posexplode(F.array("x", F.lit(3)))),
    "unpivot": lambda left: left.alias("l").unpivot(["l.a"], ["k", "x"], "name", "value"),
    "names of ours": lambda left: (
        left.withColumn("_diff", F.lit(5)).fillna(0).unpivot(["a", "_diff"], ["x"], "_side", "_old").select("a", "`_old`")
    ).toDF("a", "x"),
    "without nulls": lambda left: left.fillna(0, subset=["x"]).dropna().replace("p", "pp"),
    "python": lambda left: left.select("k", F.udf(lambda value: (value or 0) + 1, "int")("x").alias("y")),
    "batches": lambda left: left.mapInPandas(doubled, "k int, a string, x double"),
    "fields": lambda left: left.select("k", F.to_json(F.struct("k", "a", F.col("x").alias("y"))).alias("json")),
    "fields of all": lambda left: left.selectExpr("k", "to_json(struct(*)) AS json"),
    "fields of fields": lambda left: left.withColumn("s", F.struct("a", "x")).select("k", "s.x", F.struct("s.a").alias("t")),
    "zipped": lambda left: left.withColumn("y", F.array("x")).select("k", F.to_json(F.arrays_zip("y")).alias("json")),
    "one column": lambda left: left.select("a"),
    "toDF": lambda left: left.toDF("u", "v", "w").select("v", F.col("w").cast("string")),
}


@pytest.mark.parametrize("case", CASES)
def test_row_by_row(spark: SparkSession, case: str) -> None:
    check(spark, lambda left: CASES[case](left), {"left": LEFT})


UNIONS = {
    "union": lambda left, right: left.select("k", "a").union(right),
    "other types": lambda left, right: left.select("k").union(right.selectExpr("cast(k as bigint) + 5")),
    "by name": lambda left, right: left.unionByName(right, allowMissingColumns=True),
    "of itself": lambda left, right: left.union(left),
}


@pytest.mark.parametrize("case", UNIONS)
def test_unions(spark: SparkSession, case: str) -> None:
    check(spark, lambda left, right: UNIONS[case](left, right), BOTH)
