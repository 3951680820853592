"""What is known of Spark's functions is what Spark says of them."""

from __future__ import annotations

import re

from pyspark.sql.connect.session import SparkSession

from firnline.incremental.functions import AGGREGATES


def test_every_aggregate_of_spark_is_known(spark: SparkSession) -> None:
    listed = {each.name for each in spark.catalog.listFunctions() if re.search(r"\.aggregate\.|Agg$", each.className or "")}
    assert len(listed) > 70
    assert listed <= AGGREGATES
