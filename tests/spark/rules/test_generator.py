"""Generators of every kind, in a select list, in LATERAL VIEW and as relations."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from tests.spark.histories import check, check_sql
from tests.spark.rules.data import BOTH, LEFT, sampled

CASES = {
    "explode_outer": lambda left: left.select("k", F.explode_outer(F.when(F.col("x") > 5, F.array("x", "k"))).alias("e")),
    "posexplode_outer": lambda left: left.select("a", F.posexplode_outer(F.when(F.col("x") > 5, F.array("x")))),
    "inline": lambda left: left.select("k", F.inline(F.array(F.struct("x", "a")))).groupBy("a").count(),
    "inline_outer": lambda left: left.select("k", F.inline_outer(F.when(F.col("k") > 1, F.array(F.struct("x"))))),
    "stack": lambda left: left.select(F.stack(F.lit(2), F.lit("k"), "k", F.lit("x"), "x").alias("name", "value"), "a"),
    "json_tuple": lambda left: left.select("k", F.json_tuple(F.to_json(F.struct("*")), "a", "x").alias("u", "v")),
    "of groups": lambda left: left.groupBy("k").agg(F.collect_set("a").alias("s")).select("k", F.explode("s")),
}
TEXTS = {
    "two views": "select k, e, f from left lateral view explode(array(x, 3)) t as e lateral view explode(array(e, 1)) u as f",
    "outer": "select k, e from left lateral view outer explode(case when x > 5 then array(x) end) t as e",
    "positions": "select k, p, e from left lateral view posexplode(array(x, 3)) t as p, e where e > 3",
    "a relation": "select k, e from left l, lateral explode(array(l.x, 3)) t(e)",
}


@pytest.mark.parametrize("case", sampled(CASES, "posexplode_outer", "stack", "json_tuple"))
def test_selected(spark: SparkSession, case: str) -> None:
    check(spark, lambda left: CASES[case](left), {"left": LEFT})


@pytest.mark.parametrize("case", sampled(TEXTS, "outer", "a relation"))
def test_views(spark: SparkSession, case: str) -> None:
    check_sql(spark, TEXTS[case], BOTH)
