"""Stages whose arrangements and columns are unusual, through the whole runtime: every epoch equals plain Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.runtime.project import Project
from firnline.runtime.read import read
from tests.oracle.amplab import comparable
from tests.spark.running import run_epoch

STAGES = ("nulls_as_equals", "presence", "beside", "structs", "one_row")
PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    odd = fl.Pipeline("odd", schedule=1, start=0)
    LEFT = [[(1, 1, 5, 1), (2, None, 7, 1), (3, 2, None, 1)], [(3, 2, None, -1), (4, None, 1, 1)]]
    RIGHT = [[(1, 1, 1), (2, None, 1)], [(1, 1, -1), (3, 3, 1), (4, 3, 1)]]

    @odd.source(keys=["id"])
    def left(epoch):
        return epoch.spark.createDataFrame(LEFT[epoch.lower], "id int, k int, x int, _diff int")

    @odd.source(keys=["id"])
    def right(epoch):
        return epoch.spark.createDataFrame(RIGHT[epoch.lower], "id int, k int, _diff int")

    @odd.stage(keys=["id"], refresh="incremental")
    def nulls_as_equals(left, right):
        counts = right.groupBy("k").agg(F.max("id").alias("last")).groupBy("last").agg(F.max("last").alias("most"))
        return left.join(counts, left.k.eqNullSafe(counts.most), "left").select("id", "most")

    @odd.stage(keys=["id"], refresh="incremental")
    def presence(left, right):
        same = right.where(F.col("k") == F.col("l.k").outer()).exists()
        return left.alias("l").select("id", same.alias("same"), (~F.col("k").isin(right.select("k"))).alias("none"))

    @odd.stage(keys=["id"], refresh="incremental")
    def beside(left, right):
        last = right.alias("r").where(F.col("r.k") == F.col("l.k").outer()).select(F.max("id"))
        below = right.alias("r").where(F.col("r.k") < F.col("l.x").outer()).select(F.count("*"))
        return left.alias("l").select("id", last.scalar().alias("last"), below.scalar().alias("below"))

    @odd.stage(keys=["id"], refresh="incremental")
    def structs(left):
        return left.select("id", F.struct("k", "x").alias("s"), F.array(F.struct("*")).alias("all"))

    @odd.stage(keys=[], refresh="incremental")
    def one_row(left, right):
        return left.crossJoin(right.agg(F.count("*").alias("n"))).agg(F.sum(F.col("x") * F.col("n")).alias("total"))
"""


@pytest.mark.nightly
def test_every_epoch_equals_plain_spark(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(odd=PIPELINE)
    declared = made.declared("odd")
    for epoch in ("0", "1"):
        run_epoch(made, spark, "odd", epoch)
        frames = {name: read(f"odd.{name}", session=spark, project=made) for name in ("left", "right")}
        for stage in STAGES:
            collection = declared.graph.collection(stage)
            expected = declared.functions[stage](**{name: frames[name] for name in collection.inputs})
            found = read(f"odd.{stage}", session=spark, project=made)
            assert found.schema.simpleString() == expected.schema.simpleString()
            assert comparable([tuple(row) for row in found.collect()]) == comparable([tuple(row) for row in expected.collect()])
