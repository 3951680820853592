"""Joins part by part: Spark keeps the parts of logs together while a plan runs, and joins them without a shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql.connect.session import SparkSession

# Not for every plan: a scan that keeps parts together has no more tasks than parts.
_SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}


@contextmanager
def part_by_part(session: SparkSession, *, is_on: bool) -> Iterator[None]:
    """Let plans that run inside join part by part, if that is asked for."""
    for key, value in _SETTINGS.items() if is_on else ():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in _SETTINGS if is_on else ():
            session.conf.unset(key)
