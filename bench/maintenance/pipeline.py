"""A table of readings of which each epoch changes one row in a hundred, and sums over it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import firnline as fl

MAINTAINED, LEFT = "maintained", "left"
"""The pipeline that is maintained, and its twin that is not."""
READINGS, SUMS = "readings", "sums"
PARTS = 4
MODULE = """\
from bench.maintenance.pipeline import declared

{name} = declared("{name}", {rows})
"""
_OF_A_HUNDRED = 100


def declared(name: str, rows: int) -> fl.Pipeline:
    """A pipeline, with so many readings."""
    pipeline = fl.Pipeline(name, schedule=1, start=0, keep="2 epochs")

    @pipeline.source(keys=["id"], parts=PARTS)
    def readings(epoch: Any) -> DataFrame:
        every = epoch.spark.range(rows, numPartitions=PARTS)
        if epoch.lower == 0:
            return every.selectExpr(*_reading("0L"), "1L as _diff")
        changed = every.where(F.col("id") % _OF_A_HUNDRED == epoch.lower % _OF_A_HUNDRED)
        times = epoch.lower // _OF_A_HUNDRED + (epoch.lower % _OF_A_HUNDRED > 0)
        before = changed.selectExpr(*_reading(f"{times - 1}L"), "-1L as _diff")
        return before.union(changed.selectExpr(*_reading(f"{times}L"), "1L as _diff"))

    @pipeline.stage(keys=["sensor"], refresh="incremental")
    def sums(readings: DataFrame) -> DataFrame:
        return readings.groupBy("sensor").agg(F.sum("value").alias("value"), F.count("*").alias("readings"))

    return pipeline


def _reading(times: str) -> tuple[str, ...]:
    """A reading after it was changed so many times."""
    return (
        "id",
        "id % 1000 as sensor",
        f"cast(pmod(xxhash64(id, {times}), 1000000) / 100 as decimal(12, 2)) as value",
        f"md5(concat(id, '-', {times})) as note",
        f"timestamp_seconds(1767225600 + id + 1000000 * {times}) as taken_at",
    )
