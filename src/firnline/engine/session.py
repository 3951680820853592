"""Spark sessions, always over Connect.

``opened`` starts a Connect endpoint inside this process's own driver, on an ephemeral loopback port, behind a random token, and
yields a session that speaks to it. Under ``spark-submit`` the driver is already there; otherwise one is launched. Token and
passwords are handed over in memory, so that neither command lines nor logs show them.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession
from sqlalchemy.engine import make_url

from firnline.engine.connect_mode import connect_mode
from firnline.engine.launch import launch_conf
from firnline.engine.pinned import PINNED
from firnline.settings import Settings

CATALOG = "lake"
_ADDRESS = "127.0.0.1"
# By default a client waits ten minutes for a lost server. Ours is on this machine: if it does not answer, it is dead.
_ON_LOOPBACK = DefaultPolicy(max_retries=5, initial_backoff=200, max_backoff=2000)
_logger = logging.getLogger(__name__)


@contextmanager
def opened(settings: Settings, name: str) -> Iterator[SparkSession]:
    """A session on a driver of our own, which ends with it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    token = secrets.token_urlsafe(32)
    given = "PYSPARK_GATEWAY_PORT" in os.environ
    gateway = launch_gateway(  # type: ignore[no-untyped-call]
        _conf(launch_conf(settings))
    )
    master = {} if given else {"spark.master": settings.spark_master}
    conf = {**launch_conf(settings), **master, **_session_conf(settings, name, token)}
    context = SparkContext(gateway=gateway, conf=_conf(conf))
    context.setLogLevel("ERROR")
    jvm: Any = context._jvm
    port = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$").__getattr__("MODULE$").localPort()
    session = SparkSession.builder.remote(f"sc://localhost:{port}/;token={token}").create()
    session.client.set_retry_policies([_ON_LOOPBACK])
    try:
        with connect_mode():
            yield session
    finally:
        for end in (session.stop, context.stop, gateway.shutdown):
            try:
                end()
            except Exception as error:  # the driver may be dead already, which is what the caller has heard of
                _logger.info("while ending Spark: %s", error)
        SparkContext._gateway = SparkContext._jvm = None


def _conf(entries: Mapping[str, str]) -> SparkConf:
    return SparkConf().setAll(list(entries.items()))


def _session_conf(settings: Settings, name: str, token: str) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.app.name": name,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": _ADDRESS,
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
        "spark.sql.warehouse.dir": str(settings.work / "spark-warehouse"),
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.warehouse": settings.warehouse,
        f"{catalog}.cache-enabled": "false",
        f"{catalog}.jdbc.schema-version": "V1",
        **{f"{catalog}.{key}": value for key, value in (_jdbc(settings.catalog_uri) | _storage(settings.warehouse)).items()},
        **settings.spark_conf,
        **PINNED,
        # Kept rows are left out by bounds that know no NaN: x > 0 would lose it, though Spark holds it to be greater.
        "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    }


def _storage(warehouse: str) -> dict[str, str]:
    """How Iceberg reaches the warehouse's files. Keys and endpoint come from the environment (``AWS_*``), as outside of Spark."""
    if urlsplit(warehouse).scheme != "s3":
        return {}
    # A bucket in the path works with every server; in the host's name only where DNS knows all buckets.
    return {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.path-style-access": "true"}


def _jdbc(uri: str) -> dict[str, str]:
    """SQLAlchemy's URI in JDBC's words."""
    url = make_url(uri)
    if url.get_backend_name() == "sqlite":
        return {"uri": f"jdbc:sqlite:{Path(str(url.database))}?busy_timeout=30000"}
    found = {"uri": f"jdbc:{url.get_backend_name()}://{url.host}:{url.port or 5432}/{url.database}"}
    if url.username:
        found["jdbc.user"] = url.username
    if url.password:
        found["jdbc.password"] = str(url.password)
    return found
