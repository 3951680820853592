"""AMPLab's join, all of it in one epoch, cut into parts by the page and into waves: a copy of the stage for each experiment.

A tenth as many pages as visits. The budget is such that a large epoch has several waves. Three copies differ in what is done
about lost rows; that of ``gap`` is declared nondeterministic, as only rows that cannot be made again become a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame

import firnline as fl
from firnline.model.declaration import OnLoss
from firnline.model.epoch import Epoch

NAME = "failures"
PARTS = 16
SOURCES = ("pages", "visits")
CONTRACTS: Mapping[str, OnLoss] = MappingProxyType({"one": "fail", "two": "gap", "master": "replay"})
SLOW = ("well", "slow", "speculated_warm_up", "speculated_well", "speculated")
COPIES = ("warm_up", "none", *CONTRACTS, "cold", "driver", *SLOW)
EPOCH = Epoch(0, 1)
MODULE = """\
from bench.failures.pipeline import declared

failures = declared({visits})
"""
_URL = "concat('http://www.', md5(cast({number} as string)), '.example/', {number} % 100)"


def declared(size: int) -> fl.Pipeline:
    """The pipeline, with so many visits."""
    pipeline = fl.Pipeline(NAME, schedule=1, start=0, recovery_budget="1s")
    count = max(size // 10, 1)

    @pipeline.source(keys=["page_url"], parts=PARTS)
    def pages(epoch: Any) -> DataFrame:
        rank = "cast(1 + pmod(xxhash64(id, 7), 999) as int) as page_rank"
        return epoch.spark.range(count, numPartitions=3).selectExpr(f"{_URL.format(number='id')} as page_url", rank)

    @pipeline.source(keys=["visit_id"], partition_by=["dest_url"], parts=PARTS)
    def visits(epoch: Any) -> DataFrame:
        page = f"pmod(xxhash64(id, 1), {count})"
        return epoch.spark.range(size, numPartitions=3).selectExpr(
            "id as visit_id",
            f"{_URL.format(number=page)} as dest_url",
            "concat_ws('.', 10, pmod(xxhash64(id, 2), 256), pmod(xxhash64(id, 3), 256)) as source_ip",
            "cast((1 + pmod(xxhash64(id, 6), 99999)) / 10000 as decimal(12, 4)) as ad_revenue",
        )

    for name in COPIES:
        declare = pipeline.stage(
            keys=["visit_id"],
            partition_by=["dest_url"],
            parts=PARTS,
            refresh="incremental",
            on_loss=CONTRACTS.get(name, "replay"),
            nondeterministic=CONTRACTS.get(name) == "gap",
        )
        declare(_copy(name))
    return pipeline


def joined(visits: DataFrame, pages: DataFrame) -> DataFrame:
    """What every copy computes, and so does plain Spark."""
    found = visits.join(pages, visits.dest_url == pages.page_url)
    return found.select("visit_id", "source_ip", "dest_url", "ad_revenue", "page_rank")


def _copy(name: str) -> Callable[..., DataFrame]:
    def stage(visits: DataFrame, pages: DataFrame) -> DataFrame:
        return joined(visits, pages)

    stage.__name__ = name
    return stage
