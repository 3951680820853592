"""A Spark Connect session inside this process, as a stage has it inside ``spark-submit``."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql.connect.session import SparkSession

SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "firnline-tests",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session; ``pyspark.sql.functions`` speaks Connect while it lasts."""
    with pytest.MonkeyPatch.context() as patch:
        token = str(uuid.uuid4())
        patch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", token)
        context = SparkContext.getOrCreate(SparkConf().setAll(list(SETTINGS.items())))
        assert context._jvm is not None
        service = getattr(getattr(context._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
        # Without it the functions make classic columns: only SparkSession.builder sets it, and that refuses a second session.
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        session = SparkSession.builder.remote(f"sc://localhost:{service.localPort()}/;token={token}").getOrCreate()
        yield session
        session.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
        context.stop()
