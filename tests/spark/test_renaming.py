"""Stages that get other names: their logs, what they keep and what reads them go on; nothing is computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.code_plan import apply, code_plan
from firnline.runtime.lineage import lineage
from firnline.runtime.project import Project
from firnline.runtime.rerun import Rerun
from firnline.runtime.rewind import rewind
from firnline.runtime.verify import verify
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]
SHOP = """
import firnline as fl
from pyspark.sql import functions as F

shop = fl.Pipeline("shop", schedule=1, start=0)

@shop.source(keys=["id"])
def orders(epoch):
    return epoch.spark.createDataFrame([(10 * epoch.lower + n, n % 3, n) for n in range(6)], "id int, k int, n int")

@shop.stage(keys=["k"])
def {revenue}(orders):
    return orders.groupBy("k").agg(F.sum("n").alias("total"), F.count("*").alias("times"))

@shop.stage(keys=["times"])
def {report}({revenue}):
    return {revenue}.groupBy("times").agg(F.max("total").alias("best"), F.count("*").alias("keys"))
"""
DAILY = """
import firnline as fl
from pyspark.sql import functions as F

daily = fl.Pipeline("daily_of_shop", schedule=1, start=0)

@daily.stage(keys=["times"])
def best({revenue}=fl.collection("shop.{revenue}")):
    return {revenue}.groupBy("times").agg(F.max("total").alias("best"))
"""
AGAIN = """
@shop.stage(keys=["k"])
def revenue(orders):
    return orders.groupBy("k").agg((F.sum("n") + 1).alias("total"), F.count("*").alias("times"))
"""


def expected(epochs: int, more: int = 0) -> list[Any]:
    totals: Counter[int] = Counter()
    for n in [n for _ in range(epochs) for n in range(6)]:
        totals[n % 3] += n
    return [(2 * epochs, max(totals.values()) + more, 3)]


def test_renamed_stages_go_on_and_what_reads_them_does_not_change(project: Make, spark: SparkSession) -> None:
    def shop(revenue: str, report: str, more: str = "") -> tuple[Project, Any]:
        daily = DAILY.format(revenue="revenue" if more else revenue)  # it is run before others take up old names
        made = project(shop=SHOP.format(revenue=revenue, report=report) + more, daily_of_shop=daily)
        return made, made.graph("shop")

    made, _ = shop("revenue", "report")
    for label in "01":
        run_epoch(made, spark, "shop", label)
    run_epoch(made, spark, "daily_of_shop", "1")
    kept = {name.removeprefix("revenue") for name in made.catalog.names("shop") if name.startswith("revenue__")}
    assert kept, "the stage keeps sums"

    made, graph = shop("sales", "summary")
    plan = code_plan(made, graph)
    assert plan.changes == ()
    assert [(each.collection, each.renamed) for each in plan.retired] == [("report", "summary"), ("revenue", "sales")]
    done = run_epoch(made, spark, "shop", "2")
    assert [(each.collection, each.epoch.lower) for each in done if each.how == "computed"] == [
        ("orders", 2),
        ("sales", 2),
        ("summary", 2),
    ]
    names = made.catalog.names("shop")
    assert {name.removeprefix("sales") for name in names if name.startswith("sales__")} == kept, "and goes on with them"
    assert not any(name.startswith(("revenue", "report")) for name in names)
    for epoch in range(3):
        assert rows(made, graph, "summary", str(epoch)) == expected(epoch + 1)
    assert verify(made, "shop", spark).problems == ()
    for direction, of in (("upstream", "summary"), ("downstream", "orders")):
        told = lineage(made, graph, of, "0", direction=direction)
        assert {each.collection for each in told.nodes} == {"orders", "sales", "summary"}
    assert made.catalog.names("shop__views") == {"orders", "sales", "summary"}
    daily = made.graph("daily_of_shop")
    assert code_plan(made, daily).changes == (), "nor does what reads it from outside"
    assert Rerun(made, daily, daily.schedule.epoch_at(1)).is_settled("best")
    assert [(each.epoch.lower, each.how) for each in run_epoch(made, spark, "daily_of_shop", "2")] == [(2, "computed")]
    assert rows(made, daily, "best") == [each[:2] for each in expected(3)]

    rewind(made, graph, 1, None, "ana")
    done = [outcome for label in "12" for outcome in run_epoch(made, spark, "shop", label)]
    computed = [(each.collection, each.epoch.lower) for each in done if each.how == "computed"]
    assert computed == [("summary", 1)], "its text is another; the rest is reused, by the names of today"
    assert rows(made, graph, "summary") == expected(3)

    made, graph = shop("sales", "summary", AGAIN)
    assert code_plan(made, graph).changes == (), "what takes up an old name is something else"
    run_epoch(made, spark, "shop", "3")
    made, graph = shop("revenue", "summary", AGAIN.replace("revenue", "sales"))
    assert {each.collection for each in code_plan(made, graph).changes} == {"sales", "revenue", "summary"}
    with pytest.raises(FirnlineError, match="CHANGE_NOT_APPROVED"):
        run_epoch(made, spark, "shop", "4")
    plan = code_plan(made, graph)
    for epoch in apply(made, graph, plan, "ana"):
        run_epoch(made, spark, "shop", str(epoch.lower))
    assert rows(made, graph, "summary") == expected(4)
    assert verify(made, "shop", spark).problems == ()
