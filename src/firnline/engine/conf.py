"""What every Spark session of a project is set to, cold or warm. Imports no Spark, so that whoever only launches one need not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy.engine import make_url

from firnline.engine.pinned import PINNED, ZONE
from firnline.settings import Settings, is_rest

CATALOG = "lake"
_DRIVER_JAVA, _EXECUTOR_JAVA = (f"spark.{which}.extraJavaOptions" for which in ("driver", "executor"))


def driver_conf(settings: Settings) -> dict[str, str]:
    """A driver's settings: what is fixed when it starts, and the defaults of its sessions. Secrets among them: not for ``ps``."""
    return {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.sql.warehouse.dir": str(settings.work / "spark-warehouse"),
        # An epoch takes dozens of generated classes, the same as the one before. Spark's 100 do not hold those of some stages.
        "spark.sql.codegen.cache.maxEntries": "2000",
        **session_conf(settings),
        **java_options(settings),
        "spark.executorEnv.TZ": "UTC",
    }


def java_options(settings: Settings) -> dict[str, str]:
    """The options of executors' JVMs, and of a driver's where Spark's own setting of them is used; ours are the last word."""
    asked = {key: settings.spark_conf.get(key, "") for key in (_DRIVER_JAVA, _EXECUTOR_JAVA)}
    return {key: f"{value} {ZONE}".strip() for key, value in asked.items() if value or key == _EXECUTOR_JAVA}


def driver_hash(settings: Settings) -> str:
    """Equal for two drivers that are started alike; no secret can be told from it."""
    launched = {"master": settings.spark_master, "memory": settings.spark_memory, "java": settings.spark_java_options}
    return hashlib.sha256(json.dumps(launched | driver_conf(settings), sort_keys=True).encode()).hexdigest()[:16]


def session_conf(settings: Settings) -> dict[str, str]:
    """A session's settings, all of which can be given to a session of a driver that runs already."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.cache-enabled": "false",
        **{f"{catalog}.{key}": value for key, value in (_pointers(settings) | _storage(settings.warehouse)).items()},
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


def _pointers(settings: Settings) -> dict[str, str]:
    """How Iceberg reaches the catalog."""
    if is_rest(settings.catalog_uri):
        return {"type": "rest", "uri": settings.catalog_uri, **settings.catalog_options}
    return {"type": "jdbc", "warehouse": settings.warehouse, "jdbc.schema-version": "V1", **_jdbc(settings.catalog_uri)}


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
