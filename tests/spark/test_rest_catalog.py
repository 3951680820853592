"""A pipeline whose catalog is a service that speaks Iceberg's REST protocol, for Spark and for what needs none."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.connect.session import SparkSession

from firnline.engine.conf import CATALOG, session_conf
from firnline.runtime.branch import create
from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    served = fl.Pipeline("served", schedule=1, start=0)

    @served.source(keys=["id"])
    def orders(epoch):
        n = epoch.lower
        return epoch.spark.createDataFrame([(n, n % 2, 10 * n), (n + 100, 0, 1)], "id int, who int, amount int")

    @served.stage(keys=["who"])
    def spent(orders):
        return orders.groupBy("who").agg(F.sum("amount").alias("amount"))
"""


def test_epochs_and_branches_are_as_with_a_database(
    spark: SparkSession, project: Callable[..., Project], rest_uri: Callable[[], str]
) -> None:
    made = project(f'catalog_uri = "{rest_uri()}"\n', served=PIPELINE)
    session = SparkSession.builder.channelBuilder(spark.client._builder).create()
    for name, value in session_conf(made.settings).items():
        if name.startswith(f"spark.sql.catalog.{CATALOG}"):
            session.conf.set(name, value)
    for label in ("0", "1", "2"):
        run_epoch(made, session, "served", label)
    graph = made.graph("served")
    assert rows(made, graph, "spent", "1") == [(0, 2), (1, 10)]
    assert rows(made, graph, "spent") == [(0, 23), (1, 10)]
    create(made, graph, "idea", 2, None)
    assert made.catalog.branches("served") == {"served__idea"}
    assert {outcome.how for outcome in run_epoch(made, session, "served", "1")} == {"kept"}
