"""The same six stages four times: pipelines of Firnline, warm, per epoch and cold; and plain Airflow, as a user would write it.

All orders come in the first epoch. The others are empty: what they take is what an epoch costs before its first row. The plain
tables are always empty.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from bench.project import project_in
from firnline.runtime.project import Project

COLD = "BENCH_COLD"
"""The connection of tasks with a driver of their own."""
STEPS = ("orders", "priced", "by_customer", "levels", "enriched", "by_level", "report")

_SETTINGS = """\
spark_master = "local[2]"
spark_memory = "1g"
spark_shuffle_partitions = 2
spark_java_options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""
_PIPELINE = """\
import firnline as fl
from pyspark.sql import functions as F

{name} = fl.Pipeline("{name}", schedule="@daily", start="2026-01-01", end="{end}", tasks="{tasks}")


@{name}.source(keys=["order_id"])
def orders(epoch):
    ids = epoch.spark.range(1000 if f"{{epoch:%Y-%m-%d}}" == "2026-01-01" else 0)
    return ids.select(F.col("id").alias("order_id"), (F.col("id") % 50).alias("customer"), F.lit(3).alias("items"))


@{name}.stage(keys=["order_id"])
def priced(orders):
    return orders.withColumn("price", F.col("items") * 10)


@{name}.stage(keys=["customer"])
def by_customer(priced):
    return priced.groupBy("customer").agg(F.sum("price").alias("spent"), F.count("*").alias("orders"))


@{name}.stage(keys=["customer"])
def levels(by_customer):
    return by_customer.select("customer", F.when(F.col("spent") > 500, "gold").otherwise("basic").alias("level"))


@{name}.stage(keys=["order_id"])
def enriched(priced, levels):
    return priced.join(levels, "customer")


@{name}.stage(keys=["level"])
def by_level(enriched):
    return enriched.groupBy("level").agg(F.sum("price").alias("spent"))


@{name}.stage(keys=["level"])
def report(by_level):
    return by_level.withColumn("spent_k", F.col("spent") / 1000)
"""
_DAG = """\
from firnline.airflow import pipeline_dag
from firnline.airflow.operator import AdvanceOperator

dag = pipeline_dag("{name}")
dag.max_active_runs = 1  # each run is measured by itself
"""
_WITHOUT_ENGINE = """\
for task in dag.tasks:
    if isinstance(task, AdvanceOperator):
        task._conn_id = "bench_cold"
"""
_PLAIN_DAG = """\
from datetime import datetime
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

HERE = Path(__file__).parent.parent
CATALOG = "spark.sql.catalog.plain"
CONF = {{
    "spark.driver.extraClassPath": "{jars}",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{{CATALOG}}.type": "hadoop",
    f"{{CATALOG}}.warehouse": str(HERE / "plain-warehouse"),
}}
with DAG(
    "plain",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    end_date=datetime(2026, 1, {last}),
    catchup=True,
    max_active_runs=1,
    is_paused_upon_creation=True,
) as dag:
    before = None
    for step in {steps}:
        task = SparkSubmitOperator(
            task_id=step,
            application=str(HERE / "spark_jobs" / "plain.py"),
            application_args=[step],
            conn_id="bench_cold",
            conf=CONF,
        )
        if before:
            before >> task
        before = task
"""
_PLAIN_JOB = """\
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

step = sys.argv[1]
spark = SparkSession.builder.appName(step).getOrCreate()


def table(name):
    return spark.table(f"plain.shop.{name}")


def orders():
    return spark.range(0).select(F.col("id").alias("order_id"), (F.col("id") % 50).alias("customer"), F.lit(3).alias("items"))


def priced():
    return table("orders").withColumn("price", F.col("items") * 10)


def by_customer():
    return table("priced").groupBy("customer").agg(F.sum("price").alias("spent"), F.count("*").alias("orders"))


def levels():
    return table("by_customer").select("customer", F.when(F.col("spent") > 500, "gold").otherwise("basic").alias("level"))


def enriched():
    return table("priced").join(table("levels"), "customer")


def by_level():
    return table("enriched").groupBy("level").agg(F.sum("price").alias("spent"))


def report():
    return table("by_level").withColumn("spent_k", F.col("spent") / 1000)


globals()[step]().writeTo(f"plain.shop.{step}").using("iceberg").createOrReplace()
"""


def made(root: Path, checkout: Path, warm_runs: int, cold_runs: int) -> Project:
    """The project with all four, in an empty folder."""
    jars = checkout / ".firnline" / "jars"
    pipelines = {"warm": ("per-collection", warm_runs), "whole": ("per-epoch", warm_runs), "cold": ("per-collection", cold_runs)}
    (root / "dags").mkdir(parents=True)
    for name, (tasks, runs) in pipelines.items():
        # The first epoch has the rows, the last one is the first that is not.
        module = _PIPELINE.format(name=name, tasks=tasks, end=f"2026-01-{2 + runs:02}")
        project = project_in(root, _SETTINGS, name, module, jars)
        (root / "dags" / f"{name}.py").write_text(_DAG.format(name=name) + (_WITHOUT_ENGINE if name == "cold" else ""))
    (root / "spark_jobs").mkdir()
    shutil.copy(checkout / "spark_jobs" / "advance.py", root / "spark_jobs")
    (root / "spark_jobs" / "plain.py").write_text(_PLAIN_JOB)
    paths = os.pathsep.join(str(jar.resolve()) for jar in sorted(jars.glob("*.jar")))
    (root / "dags" / "plain.py").write_text(_PLAIN_DAG.format(jars=paths, steps=STEPS, last=cold_runs))
    os.environ[f"AIRFLOW_CONN_{COLD}"] = json.dumps({"conn_type": "spark", "host": "local[2]"})
    return project
