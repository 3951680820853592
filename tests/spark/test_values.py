"""Every kind of value comes back as it went in, epoch after epoch, nested ones and nulls in them included."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.connect.session import SparkSession

from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    from datetime import date, datetime, timezone
    from decimal import Decimal

    import firnline as fl
    from pyspark.sql import functions as F

    values = fl.Pipeline("values", schedule=1, start=0)
    SCHEMA = (
        "k int, `odd.name ``x` string, d double, n decimal(38,18), t timestamp, z timestamp_ntz, b binary, "
        "a array<struct<x:double,y:string>>, m array<struct<key:string,value:double>>, "
        "s struct<i:array<int>>, small tinyint, day date"
    )
    ROWS = [
        (None, "", float("nan"), Decimal("-1e-18"), datetime(1, 1, 2, tzinfo=timezone.utc), datetime(1969, 12, 31, 23, 59, 59, 1),
         b"\\x00\\xff", [(None, "a"), None, (1.5, None)], [("q", None), ("r", 2.0)], ([1, None],), -1, date(1, 1, 1)),
        (1, "ü雪", float("-inf"), Decimal("99999999999999999999.999999999999999999"), None, None, b"", [], [], ([],), 127, None),
        (2, None, None, None, None, None, None, None, None, None, None, None),
    ]

    @values.source(keys=["k"], partition_by=["m"], parts=2)
    def given(epoch):
        if epoch.lower == 0:
            return epoch.spark.createDataFrame(ROWS, SCHEMA)
        gone = epoch.spark.createDataFrame(ROWS[:1], SCHEMA).withColumn("_diff", F.lit(-1))
        new = epoch.spark.createDataFrame([(None, *ROWS[1][1:])], SCHEMA).withColumn("_diff", F.lit(1))
        return gone.union(new)

    @values.stage(keys=["k"])
    def again(given):
        turned = [name for name in reversed(given.columns) if name != "k"]
        return given.select("k", *(F.col(f"`{name.replace('`', '``')}`") for name in turned))

    @values.stage(keys=["k"])
    def paired(given, again):
        left, right = given.alias("l"), again.alias("r")
        return left.join(right, F.col("l.k").eqNullSafe(F.col("r.k"))).select("l.k", "l.m", F.col("r.s").alias("s"))
"""


def test_values_of_every_kind_survive_epochs(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(values=PIPELINE)
    run_epoch(made, spark, "values", "0")
    run_epoch(made, spark, "values", "1")
    graph = made.graph("values")
    first, second = (rows(made, graph, "given", epoch) for epoch in ("0", "1"))
    assert len(first) == len(second) == 3
    null_key = next(row for row in first if row[0] is None)
    assert [tuple(entry.values()) for entry in null_key[8]] == [("q", None), ("r", 2.0)]
    assert [dict(item) if item else None for item in null_key[7]] == [{"x": None, "y": "a"}, None, {"x": 1.5, "y": None}]
    assert null_key[9]["i"] == [1, None]
    assert null_key[6] == b"\x00\xff"
    assert str(null_key[4].replace(tzinfo=None)) == "0001-01-02 00:00:00"
    assert next(row for row in second if row[0] is None)[1:] == next(row for row in second if row[0] == 1)[1:]
    for epoch, expected in (("0", first), ("1", second)):
        names = [name for name in spark.table("lake.values.given").columns if not name.startswith("_")]
        turned = [names[0], *reversed(names[1:])]
        again = [tuple(dict(zip(turned, row, strict=True))[name] for name in names) for row in rows(made, graph, "again", epoch)]
        assert sorted(map(repr, again)) == sorted(map(repr, expected)), "NaN equals NaN here"
        assert sorted(((row[0], row[8], row[9]) for row in expected), key=repr) == rows(made, graph, "paired", epoch)
