"""The AMPLab Big Data Benchmark as a pipeline: pages and visits in; revenue by source IP, by prefix, and the best pages out."""

from pyspark.sql import functions as F

import firnline as fl

amplab = fl.Pipeline("amplab", schedule="@daily", start="2026-01-01", end="2026-01-04")

LANDING = "include/landing/amplab/{epoch:%Y-%m-%d}"


@amplab.source(keys=["page_url"])
def rankings(epoch):
    """Pages and their ranks. The feed says what changed: '+' a new row, '-' one that is gone."""
    changes = epoch.files(
        f"{LANDING}/rankings.csv", format="csv", schema="change string, page_url string, page_rank int, avg_duration int"
    )
    return changes.withColumn("_diff", F.when(F.col("change") == "-", -1).otherwise(1)).drop("change")


@amplab.source(keys=["visit_id"], partition_by=["dest_url"], parts=4)
def user_visits(epoch):
    """Visits to pages, with the revenue of the advertisement shown."""
    return epoch.files(
        f"{LANDING}/user_visits.csv",
        format="csv",
        schema="visit_id string, source_ip string, dest_url string, visit_date date, ad_revenue decimal(12,4), "
        "user_agent string, country_code string, language_code string, search_word string, duration int",
    )


@amplab.stage(keys=["source_ip"], parts=4, checks=["revenue_is_sane"])
def revenue_by_ip(user_visits, rankings):
    """The join query: visits of 1980, with the rank of the page visited, by source IP."""
    in_1980 = user_visits.where(F.col("visit_date").between("1980-01-01", "1980-12-31"))
    return (
        in_1980.join(rankings, in_1980.dest_url == rankings.page_url)
        .groupBy("source_ip")
        .agg(F.sum("ad_revenue").alias("revenue"), F.avg("page_rank").alias("rank"), F.count("*").alias("visits"))
    )


@amplab.stage(keys=["prefix"])
def revenue_by_prefix(user_visits):
    """The aggregation query: revenue by the beginning of the source IP."""
    return user_visits.groupBy(F.substring("source_ip", 1, 6).alias("prefix")).agg(F.sum("ad_revenue").alias("revenue"))


@amplab.stage(keys=["source_ip"])
def top_sources(revenue_by_ip):
    """The ten source IPs that brought the most."""
    return revenue_by_ip.orderBy(F.desc("revenue"), "source_ip").limit(10)
