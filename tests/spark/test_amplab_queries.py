"""AMPLab's four queries, incrementally, over epochs with updates and deletes: after each one DuckDB says the same."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.runtime.project import Project
from tests.oracle.amplab_queries import answers
from tests.spark.running import rows, run_epoch

EPOCHS, PAGES, VISITS, DOCUMENTS = 3, 40, 150, 12
Row = tuple[Any, ...]

PIPELINE = """
    import re
    from collections import Counter

    import firnline as fl
    from pyspark.sql import functions as F

    queries = fl.Pipeline("queries", schedule=1, start=0)
    CHANGES = {changes!r}

    @queries.source(keys=["page_url"])
    def rankings(epoch):
        schema = "page_url string, page_rank int, avg_duration int, _diff int"
        return epoch.spark.createDataFrame(CHANGES["rankings"][epoch.lower], schema)

    @queries.source(keys=["visit_id"])
    def user_visits(epoch):
        schema = "visit_id int, source_ip string, dest_url string, visit_date string, ad_revenue double, _diff int"
        found = epoch.spark.createDataFrame(CHANGES["user_visits"][epoch.lower], schema)
        return found.withColumn("visit_date", F.col("visit_date").cast("date"))

    @queries.source(keys=["url"])
    def documents(epoch):
        return epoch.spark.createDataFrame(CHANGES["documents"][epoch.lower], "url string, contents string, _diff int")

    @queries.stage(keys=["page_url"], refresh="incremental")
    def scan(rankings):
        return rankings.where("page_rank > 100").select("page_url", "page_rank")

    @queries.stage(keys=["prefix"], refresh="incremental")
    def aggregation(user_visits):
        return user_visits.groupBy(F.substring("source_ip", 1, 8).alias("prefix")).agg(F.sum("ad_revenue").alias("revenue"))

    @queries.stage(keys=["source_ip"], refresh="incremental")
    def best(rankings, user_visits):
        recent = user_visits.where("visit_date between date'1980-01-01' and date'1983-01-01'")
        by_source = recent.join(rankings, recent.dest_url == rankings.page_url).groupBy("source_ip")
        revenue = by_source.agg(F.sum("ad_revenue").alias("revenue"), F.avg("page_rank").alias("rank"))
        return revenue.orderBy(F.desc("revenue")).limit(1)

    def counted(contents):
        return list(Counter(re.findall("https?://[a-z0-9./]+", contents)).items())

    @queries.stage(keys=["link"], refresh="incremental")
    def links(documents):
        count = F.udf(counted, "array<struct<link:string,count:int>>")
        found = documents.select(F.inline(count("contents")))
        return found.groupBy("link").agg(F.sum("count").alias("count"))
"""


def history(first: list[Row], updated: Callable[[Row], Row], random: Random) -> list[list[Row]]:
    """Per epoch rows with their weights: at first all but some; then updates, deletes and rows that come late."""
    late, there = first[: len(first) // 4], first[len(first) // 4 :]
    epochs = [[(*row, 1) for row in there]]
    for _ in range(1, EPOCHS):
        gone = random.sample(there, len(there) // 6)
        come = [updated(row) for row in gone[::2]] + [late.pop() for _ in range(min(3, len(late)))]
        there = [row for row in there if row not in gone] + come
        epochs.append([*((*row, -1) for row in gone), *((*row, 1) for row in come)])
    return epochs


def changes() -> dict[str, list[list[Row]]]:
    random = Random(2)
    urls = [f"http://page{number}.example/{number % 3}" for number in range(PAGES)]
    pages = [(url, random.randrange(300), random.randrange(90)) for url in urls]
    visits = [
        (
            number,
            f"10.{random.randrange(3)}.{random.randrange(100, 103)}.{random.randrange(4)}",
            random.choice(urls),
            f"{random.randrange(1978, 1985)}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}",
            random.random() * 100,
        )
        for number in range(VISITS)
    ]
    texts = [(url, " ".join(["see", *random.choices(urls[:9], k=5), "and (http://x.example)"])) for url in urls[:DOCUMENTS]]
    return {
        "rankings": history(pages, lambda row: (row[0], row[1] + 50, row[2]), random),
        "user_visits": history(visits, lambda row: (*row[:4], row[4] / 3), random),
        "documents": history(texts, lambda row: (row[0], row[1].replace("page1", "page2")), random),
    }


def test_every_query_at_every_epoch_equals_duckdb(project: Callable[..., Project], spark: SparkSession) -> None:
    given = changes()
    made = project(queries=PIPELINE.format(changes=given))
    seen = []
    for epoch in range(EPOCHS):
        run_epoch(made, spark, "queries", str(epoch))
        expected = answers(given, epoch + 1)
        assert {name: rows(made, made.graph("queries"), name) for name in expected} == expected
        seen.append(expected)
    assert all(len({repr(each[name]) for each in seen}) == EPOCHS for name in seen[0]), "every epoch changes every answer"
