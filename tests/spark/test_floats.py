"""Filters on floating numbers find what Spark's own comparison finds, though files and kept rows are left out by other orders."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from pyspark.sql.connect.session import SparkSession

import firnline
from firnline.engine.frames import relation_of
from firnline.engine.sharing import shared
from firnline.incremental.derivation import Shared
from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl

    floats = fl.Pipeline("floats", schedule=1, start=0)

    @floats.source(keys=["k"])
    def given(epoch):
        rows = [(1, -62.26, (-62.26,)), (2, float("nan"), (float("nan"),))] if epoch.lower == 0 else [(3, -0.0, (-0.0,))]
        return epoch.spark.createDataFrame(rows, "k int, x double, s struct<y:double>")

    @floats.stage(keys=["k"])
    def above(given):
        return given.where("x > 50").select("k")

    @floats.stage(keys=["k"])
    def zero(given):
        return given.where("s.y = 0.0D").select("k")

    @floats.stage(keys=["k"])
    def told(given):
        return given.where("x = 0").selectExpr("k", "cast(x as string) as x")

    @floats.stage(keys=["k"], refresh="full")
    def whole(given):
        return given.where("x > 50 or s.y = 0.0D").select("k")
"""


def test_stages_and_readers_find_nan_and_negative_zero(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(floats=PIPELINE)
    run_epoch(made, spark, "floats", "0")
    run_epoch(made, spark, "floats", "1")
    graph = made.graph("floats")
    assert rows(made, graph, "above") == [(2,)]
    assert rows(made, graph, "zero") == [(3,)]
    assert rows(made, graph, "told") == [(3, "0.0")]
    assert rows(made, graph, "whole") == [(2,), (3,)]
    found = firnline.read("floats.given", session=spark, project=made)
    assert [row["k"] for row in found.where("x > 50").collect()] == [2]
    assert [row["k"] for row in found.where("s.y = 0.0D").collect()] == [3]


@pytest.mark.parametrize("condition", ["x > 50", "x = double('nan')"])
def test_rows_that_spark_keeps_are_found(spark: SparkSession, condition: str) -> None:
    given = spark.createDataFrame([(-62.26,), (math.nan,)], "x double").repartition(1)
    with shared(spark, [Shared("kept_floats", relation_of(given))]):
        assert spark.table("kept_floats").where(condition).count() == 1


NESTED = """
    import firnline as fl

    zeros = fl.Pipeline("zeros", schedule=1, start=0)

    @zeros.source(keys=["k"])
    def given(epoch):
        rows = [[(1, 0.0, 1), (2, 1.5, 1), (3, None, 1)], [(1, 0.0, -1)], [(3, None, -1)]]
        return epoch.spark.createDataFrame(rows[epoch.lower], "k int, x double, _diff int")

    @zeros.stage(keys=["k"])
    def nested(given):
        return given.selectExpr(
            "k", "array(x * -1D, null) a", "named_struct('y', x * -1D, 'z', k) s",
            "if(x is null, null, named_struct('w', float(x * -1D))) n",
        )

    @zeros.stage(keys=["k"])
    def told(nested):
        return nested.selectExpr("k", "concat_ws(' ', string(a), string(s), string(n)) t")

    @zeros.stage(keys=[])
    def total(given):
        return given.selectExpr("count(*) n")
"""


def test_no_negative_zero_is_kept_inside_a_value(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(zeros=NESTED)
    graph = made.graph("zeros")
    last = (2, "[-1.5, null] {-1.5, 2} {-1.5}")
    expected = {
        "0": [(1, "[0.0, null] {0.0, 1} {0.0}"), last, (3, "[null, null] {null, 3}")],
        "1": [last, (3, "[null, null] {null, 3}")],
        "2": [last],
    }
    for epoch, told in expected.items():
        run_epoch(made, spark, "zeros", epoch)
        assert rows(made, graph, "told") == told, epoch
        read = firnline.read("zeros.nested", session=spark, project=made)
        assert sorted(row["k"] for row in read.collect()) == [k for k, _ in told]
        total = firnline.read("zeros.total", session=spark, project=made)
        assert [row["n"] for row in total.collect()] == [len(told)], "of a collection without keys, too"
