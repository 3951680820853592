"""AMPLab's join as a pipeline whose every other epoch is large: visits joined to rankings, and revenue and mean rank by address.

The join is cut into parts as its inputs are, by the page, so that a part comes from the same part of each. The sums by address
are not. A tenth as many pages as a large epoch has visits, a quarter as many addresses; one visit in eleven leads to a page that
is not there. A large epoch gives one page in a hundred another rank; a small one brings a thousandth of the visits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import firnline as fl
from firnline.model.epoch import Epoch

NAME = "recovery"
PARTS = 16
SOURCES = ("rankings", "user_visits")
STAGES = ("joined", "revenue_by_ip")
MODULE = """\
from bench.recovery.pipeline import declared

recovery = declared({visits}, {copies})
"""
_FIRST, _LAST = "1980-01-01", "2009-12-31"
_FEWEST = 64
_URL = "concat('http://www.', md5(cast({number} as string)), '.example/', {number} % 100)"
_DRAWN = "pmod(xxhash64(id, {salt}), {bound})"
_OF_A_THOUSAND = 1000
_OF_A_HUNDRED = 100


def small(round_number: int) -> Epoch:
    """The small epoch of a round; that of the first brings all pages."""
    return Epoch(2 * round_number, 2 * round_number + 1)


def large(round_number: int) -> Epoch:
    """The large epoch of a round."""
    return Epoch(2 * round_number + 1, 2 * round_number + 2)


def declared(visits: int, copies: tuple[str, ...]) -> fl.Pipeline:
    """The pipeline, with so many visits in a large epoch, and with the stages once more under each suffix."""
    pipeline = fl.Pipeline(NAME, schedule=1, start=0)
    pages = visits // 10

    @pipeline.source(keys=["page_url"], parts=PARTS)
    def rankings(epoch: Any) -> DataFrame:
        every = epoch.spark.range(pages, numPartitions=4)
        if epoch.lower == 0:
            return every.selectExpr(*_page(0), "1L as _diff")
        changed = every.where(F.col("id") % _OF_A_HUNDRED == (epoch.lower if epoch.lower % 2 else -1))
        return changed.selectExpr(*_page(0), "-1L as _diff").union(changed.selectExpr(*_page(1), "1L as _diff"))

    @pipeline.source(keys=["visit_id"], partition_by=["dest_url"], parts=PARTS)
    def user_visits(epoch: Any) -> DataFrame:
        count = visits if epoch.lower % 2 else max(_FEWEST, visits // _OF_A_THOUSAND)
        numbers = epoch.spark.range(epoch.lower * visits, epoch.lower * visits + count, numPartitions=4)
        return numbers.withColumn("page", F.expr(_drawn(1, pages * 11 // 10))).selectExpr(
            "id as visit_id",
            f"concat_ws('.', 10, {_drawn(2, 256)}, {_drawn(3, max(1, visits // 4 // 256))}, {_drawn(4, 4)}) as source_ip",
            f"{_URL.format(number='page')} as dest_url",
            f"date_add(date'1980-01-01', cast({_drawn(5, 12_000)} as int)) as visit_date",
            f"cast((1 + {_drawn(6, 99_999)}) / 10000 as decimal(12, 4)) as ad_revenue",
        )

    for suffix in ("", *copies):
        joined, revenue_by_ip = (
            _named(stage(), f"{name}{suffix}") for name, stage in zip(STAGES, (_join, _revenue), strict=True)
        )
        pipeline.stage(keys=["visit_id"], partition_by=["dest_url"], parts=PARTS, refresh="incremental")(joined)
        pipeline.stage(keys=["source_ip"], parts=PARTS, refresh="incremental")(revenue_by_ip)
    return pipeline


def _drawn(salt: int, bound: int) -> str:
    return _DRAWN.format(salt=salt, bound=bound)


def _page(version: int) -> tuple[str, ...]:
    rank = f"cast(1 + {_drawn(7, 999)} + {version} as int) as page_rank"
    return f"{_URL.format(number='id')} as page_url", rank, f"cast(1 + {_drawn(8, 99)} as int) as avg_duration"


def _named(function: Callable[..., DataFrame], name: str) -> Callable[..., DataFrame]:
    function.__name__ = name
    return function


def _join() -> Callable[..., DataFrame]:
    def joined(user_visits: DataFrame, rankings: DataFrame) -> DataFrame:
        return _ranked(user_visits, rankings).select("visit_id", "source_ip", "dest_url", "ad_revenue", "page_rank")

    return joined


def _revenue() -> Callable[..., DataFrame]:
    def revenue_by_ip(user_visits: DataFrame, rankings: DataFrame) -> DataFrame:
        by_address = _ranked(user_visits, rankings).groupBy("source_ip")
        return by_address.agg(F.sum("ad_revenue").alias("revenue"), F.avg("page_rank").alias("page_rank"))

    return revenue_by_ip


def _ranked(user_visits: DataFrame, rankings: DataFrame) -> DataFrame:
    of_these_years = F.col("visit_date").between(F.lit(_FIRST).cast("date"), F.lit(_LAST).cast("date"))
    return user_visits.where(of_these_years).join(rankings, user_visits.dest_url == rankings.page_url)
