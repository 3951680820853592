"""Requests an hour, by the time at which they happened."""

from pyspark.sql import functions as F

import firnline as fl

traffic = fl.Pipeline("traffic", schedule="@daily", start="2026-01-01", end="2026-01-04")


@traffic.source(keys=["request_id"])
def requests(epoch):
    """Requests on the day on which they arrive, whenever they happened."""
    columns = "request_id string, happened_at timestamp, bytes bigint"
    return epoch.files("include/landing/traffic/{epoch:%Y-%m-%d}.csv", format="csv", schema=columns)


@traffic.stage(keys=["hour"])
def requests_by_hour(requests):
    """How many requests happened in each hour, and how many bytes they took."""
    windows = requests.groupBy(F.window("happened_at", "1 hour").alias("hours"))
    counted = windows.agg(F.count("*").alias("requests"), F.sum("bytes").alias("bytes"))
    return counted.select(F.col("hours.start").alias("hour"), "requests", "bytes")
