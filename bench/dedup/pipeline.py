"""Events with random ids: one large epoch, one small, and then small ones of which some were delivered before."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

import firnline as fl

NAME, EVENTS = "dedup_bench", "events"
PARTS = 64
SEEN, RECENT, RECENTLY, ANYWHERE = range(4)
"""The epochs: what was seen, little of it recently; records of which a tenth was seen recently, or a hundredth at any time."""
MODULE = """\
from bench.dedup.pipeline import declared

dedup_bench = declared({seen}, {new})
"""


def declared(seen: int, new: int) -> fl.Pipeline:
    """The pipeline, of so many ids that are seen, and so many records in a small epoch."""
    pipeline = fl.Pipeline(NAME, schedule=1, start=0)

    @pipeline.source(keys=["id"], parts=PARTS, dedup=True)
    def events(epoch: Any) -> DataFrame:
        every = epoch.spark.range(seen if epoch.lower == SEEN else new)
        number, fresh = F.col("id"), F.col("id") + seen + epoch.lower * new
        of = {
            SEEN: number,
            RECENT: number + seen + new,
            RECENTLY: F.when(number % 10 == 0, number + seen + RECENT * new).otherwise(fresh),
            ANYWHERE: F.when(number % 100 == 0, F.pmod(F.xxhash64(number), F.lit(seen))).otherwise(fresh),
        }
        return every.select(*_event(of[epoch.lower]))

    return pipeline


def _event(number: Column) -> list[Column]:
    text = number.cast("string")
    return [F.md5(text).alias("id"), F.concat(F.lit("what "), F.sha1(text)).alias("what"), (number / 7).alias("amount")]
