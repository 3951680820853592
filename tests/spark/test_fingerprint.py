"""Fingerprints of plans: what a refactor continues, what a change computes in full, and what status knows of it without Spark."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.engine.pinned import PINNED
from firnline.runtime.code_plan import code_plan
from firnline.runtime.project import Project
from firnline.runtime.status import status, steps
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]

SOURCE = """
import firnline as fl
from pyspark.sql import functions as F
{imports}

plans = fl.Pipeline("plans", schedule=1, start=0, on_change="allow")

@plans.source(keys=["id"])
def orders(epoch):
    rows = [[(1, "a", 10, 1), (2, "a", 5, 1), (3, "b", 1, 1)], [(2, "a", 5, -1), (4, "c", 7, 1)], [(3, "b", 1, -1)], []]
    return epoch.spark.createDataFrame(rows[epoch.lower], "id int, who string, amount int, _diff int")
"""
AT_FIRST = """
def price(amount):
    return taxed(amount)

@plans.stage(keys=["who"])
def totals(orders):
    return orders.where(F.col("amount") > 0).groupBy("who").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))

@plans.stage(keys=["id"])
def prices(orders):
    return orders.select("id", F.udf(price, "int")("amount").alias("price"))

@plans.sql("SELECT id, amount * 2 AS twice FROM orders WHERE amount < 100", keys=["id"])
def doubled(orders): ...

@plans.stage(keys=["id", "side"])
def both(orders):
    return orders.select("id", F.lit("l").alias("side")).union(orders.select("id", F.lit("r").alias("side")))
"""
REFACTORED = """
def totalled(rows, by):
    person = rows.withColumnRenamed(by, "person").withColumn("unread", F.col("amount") + 1)
    kept = person.filter(person.amount > 0).select("person", "amount")
    return kept.groupBy(kept.person).agg(F.count("*").alias("how_many"), F.sum("amount").alias("sum"))

@plans.stage(keys=["who"])
def totals(orders):
    found = totalled(orders, by="who")
    return found.select(F.col("how_many").alias("n"), F.col("person").alias("who"), F.col("sum").alias("total"))

@plans.stage(keys=["id"])
def prices(orders):
    priced = F.udf(price_of, "int")
    return orders.select(orders.id, priced(orders["amount"]).alias("price"))

@plans.sql("WITH few AS (SELECT o.* FROM orders AS o WHERE o.amount < 100) SELECT amount * 2 AS twice, id FROM few", keys=["id"])
def doubled(orders): ...

@plans.stage(keys=["id", "side"])
def both(orders):
    left, right = (orders.select("id", F.lit(side).alias("side")) for side in "lr")
    return left.union(right)
"""
HELPERS = """
def taxed(amount):
    return amount + {tax}

def price_of(amount):
    return taxed(amount)
"""
STAGES = ("totals", "prices", "doubled", "both")


def write(project: Make, stages: str, *, tax: int = 1) -> Project:
    """The project with a text of its stages, and of a helper that a Python function of theirs calls."""
    made = project(plans=SOURCE.format(imports="from include.taxes import price_of, taxed") + textwrap.dedent(stages))
    (made.settings.root / "include" / "taxes.py").write_text(HELPERS.format(tax=tax))
    return made


def codes(project: Project) -> dict[str, str]:
    graph = project.graph("plans")
    found = {line.collection: line.code for line in status(project, graph).collections}
    assert found == {step.collection: step.code for step in steps(project, graph, None)}
    return found


def made_by(project: Project) -> dict[str, tuple[str, str | None]]:
    found = {}
    for name in STAGES:
        head = project.log("plans", name).head()
        assert head is not None
        assert head.fingerprint is not None
        found[name] = head.fingerprint.code, head.fingerprint.plan
    return found


def test_a_refactor_continues_and_a_change_does_not(
    project: Make, spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_full(made: Project, label: str) -> set[str]:
        caplog.clear()
        with caplog.at_level(logging.INFO, "firnline.runtime.derived"):
            run_epoch(made, spark, "plans", label)
        return {str(record.args[0]) for record in caplog.records if record.args and "in full once" in record.msg}

    made = write(project, AT_FIRST)
    graph = made.graph("plans")
    assert in_full(made, "0") == set()
    first, tables = made_by(made), made.catalog.names("plans")
    assert all(plan for _, plan in first.values())

    made = write(project, REFACTORED)
    assert codes(made) == {"orders": "same", "totals": "same", "prices": "same", "doubled": "same", "both": "edited"}
    assert in_full(made, "1") == set()
    second = made_by(made)
    assert {name: plan for name, (_, plan) in second.items()} == {name: plan for name, (_, plan) in first.items()}
    assert all(second[name][0] != first[name][0] for name in STAGES)
    assert made.catalog.names("plans") == tables
    assert rows(made, graph, "totals") == [("a", 10, 1), ("b", 1, 1), ("c", 7, 1)]
    assert rows(made, graph, "prices") == [(1, 11), (3, 2), (4, 8)]

    made = write(project, REFACTORED.replace("> 0", "> 1").replace("* 2", "* 3").replace('"lr"', '"lx"'), tax=2)
    assert codes(made) == {"orders": "same", "totals": "changed", "prices": "changed", "doubled": "changed", "both": "edited"}
    found = code_plan(made, made.graph("plans"))
    assert {each.collection: (each.difference.kinds, each.since) for each in found.changes} == {
        "totals": (("filter",), "0"),
        "prices": (("udf",), "0"),
        "doubled": (("logic",), "0"),
        "both": (("code",), "0"),
    }
    assert {(each.collection, each.epochs, each.because) for each in found.recomputed} == {(name, 2, (name,)) for name in STAGES}
    assert [(each.collection, each.epochs, each.rows) for each in found.reused] == [("orders", 2, 5)]
    assert in_full(made, "2") == set(STAGES)
    assert rows(made, graph, "prices") == [(1, 12), (4, 9)]
    assert rows(made, graph, "doubled") == [(1, 30), (4, 21)]

    monkeypatch.setitem(PINNED, "spark.sql.ansi.enabled", "false")
    assert in_full(made, "3") == set(STAGES)
