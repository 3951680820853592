"""``firnline plan --apply``: what changed is made anew, with what comes of it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime import show
from firnline.runtime.code_plan import apply, code_plan
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from tests.spark.running import run_epoch

Make = Callable[..., Project]
DIAMOND = """
import firnline as fl
from pyspark.sql import functions as F

diamond = fl.Pipeline("diamond", schedule=1, start=0)

@diamond.source(keys=["id"])
def orders(epoch):
    return epoch.spark.createDataFrame([(10 * epoch.lower + n, n) for n in range(4)], "id int, n int")

@diamond.stage(keys=["id"])
def some(orders):
    return orders.where(F.col("n") > {least})

@diamond.stage(keys=["n"])
def counted(orders):
    return orders.groupBy("n").agg(F.count("*").alias("times"))

@diamond.stage(keys=["n"])
def joined(some, counted):
    return some.groupBy("n").agg(F.count("*").alias("kept")).join(counted, "n")
"""


def test_a_plan_that_is_applied_recomputes_what_is_stale_and_nothing_else(project: Make, spark: SparkSession) -> None:
    def kept(made: Project, as_of: int) -> list[Any]:
        return sorted(tuple(row) for row in show.rows(made, made.graph("diamond"), "joined", str(as_of))[1])

    def expected(least: int, epochs: int) -> list[Any]:
        return [(n, epochs, epochs) for n in range(4) if n > least]

    made = project(diamond=DIAMOND.format(least=0))
    for label in "012":
        run_epoch(made, spark, "diamond", label)
    assert code_plan(made, made.graph("diamond")).changes == ()

    made = project(diamond=DIAMOND.format(least=1))
    graph = made.graph("diamond")
    plan = code_plan(made, graph)
    assert [(each.collection, each.difference.kinds, each.since) for each in plan.changes] == [("some", ("filter",), "0")]
    assert [(each.collection, each.epochs) for each in plan.recomputed] == [("some", 3), ("joined", 3)]
    assert [(each.collection, each.epochs) for each in plan.reused] == [("orders", 3), ("counted", 3)]
    with pytest.raises(FirnlineError, match="CHANGE_NOT_APPROVED"):
        run_epoch(made, spark, "diamond", "3")

    epochs = apply(made, graph, plan, "ana", "1")
    assert [epoch.lower for epoch in epochs] == [1, 2]
    done = [outcome for label in "12" for outcome in run_epoch(made, spark, "diamond", label)]
    assert {each.collection for each in done if each.how == "computed"} == {"some", "joined"}
    assert [kept(made, epoch) for epoch in range(3)] == [expected(0, 1), expected(1, 2), expected(1, 3)]
    assert code_plan(made, graph).changes == ()
    run_epoch(made, spark, "diamond", "3")
    assert kept(made, 3) == expected(1, 4)

    made = project(diamond=DIAMOND.format(least=0))
    plan = code_plan(made, made.graph("diamond"))
    assert [each.since for each in plan.changes] == ["1"], "what today's code made is not stale"
    assert [epoch.lower for epoch in apply(made, made.graph("diamond"), plan, "ana")] == [1, 2, 3]
    for label in "123":
        run_epoch(made, spark, "diamond", label)
    assert [kept(made, epoch) for epoch in range(4)] == [expected(0, epochs) for epochs in range(1, 5)]
    assert verify(made, "diamond", spark).problems == ()
