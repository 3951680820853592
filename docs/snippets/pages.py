"""The five best-ranked pages, from a daily feed of changes."""

from pyspark.sql import functions as F

import firnline as fl

pages = fl.Pipeline("pages", schedule="@daily", start="2026-01-01", end="2026-01-04")


@pages.source(keys=["page_url"])
def rankings(epoch):
    """Pages and their ranks; the feed marks a row '+' when it comes and '-' when it goes."""
    columns = "change string, page_url string, page_rank int, avg_duration int"
    feed = epoch.files("include/landing/amplab/{epoch:%Y-%m-%d}/rankings.csv", format="csv", schema=columns)
    return feed.withColumn("_diff", F.when(feed.change == "-", -1).otherwise(1)).drop("change")


@pages.stage(keys=["page_url"])
def best_pages(rankings):
    """The five pages with the highest rank."""
    return rankings.orderBy(F.desc("page_rank"), "page_url").limit(5)
