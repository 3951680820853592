"""Lineage of real stages: which parts come from which, and an epoch that takes no notice of its ledger."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.ledger import Ledger
from firnline.model.names import BOOKKEEPING, DIFF, PART
from firnline.runtime.lineage import lineage
from firnline.runtime.project import Project
from tests.spark.running import run_epoch

Make = Callable[..., Project]
PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["id"], partition_by=["who"], parts=4)
    def orders(epoch):
        rows = [(epoch.lower * 100 + n, n % 7, n) for n in range(20)]
        return epoch.spark.createDataFrame(rows, "id int, who int, amount int")

    @{name}.source(keys=["who"], parts=4)
    def people(epoch):
        rows = [(n, f"name {{n % 3}}") for n in range(epoch.lower * 4, epoch.lower * 4 + 4)]
        return epoch.spark.createDataFrame(rows, "who int, name string")

    @{name}.stage(keys=["id"], partition_by=["who"], parts=4)
    def named(orders, people):
        return orders.join(people, "who", "left")

    @{name}.stage(keys=["who"], parts=4)
    def spent(named):
        return named.groupBy("who").agg(F.sum("amount").alias("total"))

    @{name}.stage(keys=["name"], parts=4)
    def by_name(named):
        return named.groupBy("name").agg(F.sum("amount").alias("total"), F.max("id").alias("last"))

    @{name}.stage(keys=["n"])
    def count(spent):
        return spent.agg(F.count("*").alias("n"))
"""

CUT = """
    import firnline as fl
    from pyspark.sql import functions as F

    oracle = fl.Pipeline("oracle", schedule=1, start=0)

    @oracle.source(keys=["id"], partition_by=["who"], parts=4)
    def orders(epoch):
        rows = [(epoch.lower * 100 + n, n % 7 if n % 5 else None, n % 11) for n in range(30)]
        return epoch.spark.createDataFrame(rows, "id int, who int, amount int")

    @oracle.source(keys=["number"], parts=4)
    def people(epoch):
        rows = [(n, f"name {n % 3}") for n in range(epoch.lower * 4, epoch.lower * 4 + 4)]
        return epoch.spark.createDataFrame(rows, "number int, name string")

    def stage(function, **options):
        return oracle.stage(**{"partition_by": ["who"], "parts": 4, "keys": ["id"], **options})(function)

    @stage
    def inner(orders, people):
        return orders.join(people, orders.who == people.number).select("id", "who", "name")

    @stage
    def by_right(orders, people):
        return orders.join(people, orders.who == people.number).select("id", F.col("number").alias("who"), "name")

    @stage
    def left(orders, people):
        return orders.join(people, orders.who == people.number, "left").select("id", "who", "name")

    @stage
    def left_by_null(orders, people):
        return orders.join(people, orders.who == people.number, "left").select("id", F.col("number").alias("who"), "name")

    @stage
    def anti(orders, people):
        return orders.join(people, orders.who == people.number, "anti").where("amount > 2")

    @stage
    def loose(orders, people):
        return orders.join(people, (orders.who == people.number) & (orders.amount > 4), "left").select("id", "who", "name")

    def united(orders, people):
        return orders.select("who").union(people.select("number")).distinct()

    stage(united, keys=["who"])

    def full(orders, people):
        joined = orders.join(people, orders.who == people.number, "full")
        return joined.groupBy("who").agg(F.count("name").alias("n"))

    stage(full, keys=["who"])

    def best(orders):
        best = orders.groupBy("who", "amount").agg(F.max("id").alias("id"))
        return best.groupBy("who").agg(F.sum("id").alias("s"), F.min("amount").alias("a"))

    stage(best, keys=["who"])
"""


def source(name: str) -> dict[str, str]:
    return {name: PIPELINE.format(name=name)}


def how(project: Project, pipeline: str, collection: str) -> dict[str, str]:
    log = project.log(pipeline, collection)
    return {name: of.parts for name, of in log.sidecar(next(log.entries())).inputs.items()}


def test_sidecars_say_which_parts_come_from_which(project: Make, spark: SparkSession) -> None:
    made = project(**source("cut"))
    run_epoch(made, spark, "cut", "1")
    assert how(made, "cut", "named") == {"orders": "same", "people": "same"}
    assert how(made, "cut", "spent") == {"named": "same"}
    assert how(made, "cut", "by_name") == {"named": "all"}
    assert how(made, "cut", "count") == {"spent": "all"}
    told = lineage(made, made.graph("cut"), "spent", "1", part=2)
    assert {node.collection: node.of_parts for node in told.nodes} == dict.fromkeys(("spent", "named", "orders", "people"), (2,))
    assert all({part.part for part in node.parts} <= {2} for node in told.nodes)
    whole = lineage(made, made.graph("cut"), "orders", "0", direction="downstream")
    assert {(node.collection, node.later) for node in whole.nodes} == {
        (name, 1) for name in ("orders", "named", "spent", "by_name", "count")
    }


def test_a_part_can_be_computed_from_the_parts_that_lineage_names(project: Make, spark: SparkSession) -> None:
    made = project(oracle=CUT)
    run_epoch(made, spark, "oracle", "1")
    declared = made.declared("oracle")
    stages = [each for each in declared.graph.collections if each.kind == "stage"]
    found = {each.name: {name for name, parts in how(made, "oracle", each.name).items() if parts == "same"} for each in stages}
    assert found == {
        **{name: {"orders", "people"} for name in ("inner", "by_right", "left", "anti", "loose", "united")},
        **{name: set() for name in ("left_by_null", "full")},
        "best": {"orders"},
    }
    for stage in (each for each in stages if found[each.name] == set(each.inputs)):
        for part in range(stage.parts):
            computed = declared.functions[stage.name](**{name: stored(spark, name, part) for name in stage.inputs})
            kept = stored(spark, stage.name, part)
            assert sorted(computed.select(*kept.columns).collect(), key=repr) == sorted(kept.collect(), key=repr)


def stored(spark: SparkSession, name: str, part: int | None) -> DataFrame:
    """The rows of a collection, or of one part of it, as they stand in the log."""
    table = spark.table(f"lake.oracle.{name}")
    columns = [column for column in table.columns if column not in BOOKKEEPING]
    rows = table if part is None else table.where(table[PART] == part)
    return rows.groupBy(*columns).agg(F.sum(DIFF).alias("w")).where("w > 0").drop("w")


class Slow(Ledger):
    """A ledger that takes five seconds a call until the fault is gone, and notes who calls."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.callers: list[int] = []
        self.is_mended = threading.Event()

    @contextmanager
    def _transaction(self, *, writing: bool) -> Iterator[Any]:
        self.callers.append(threading.get_ident())
        self.is_mended.wait(5)
        with super()._transaction(writing=writing) as connection:
            yield connection


def held(project: Project, pipeline: str) -> set[tuple[str, int]]:
    return {(each.collection, each.lower) for each in project.ledger.publications(pipeline)}


EVERYTHING = {(name, epoch) for name in ("orders", "people", "named", "spent", "by_name", "count") for epoch in (0, 1)}


def test_an_epoch_never_calls_a_slow_ledger_itself(project: Make, spark: SparkSession) -> None:
    made = project(**source("slow"))
    ledger = made.__dict__["ledger"] = Slow(made.settings.ledger_uri)
    run_epoch(made, spark, "slow", "0")
    run_epoch(made, spark, "slow", "1")
    assert ledger.callers, "the flusher does"
    assert threading.get_ident() not in ledger.callers
    ledger.is_mended.set()
    assert made.flusher.drain(60)
    assert held(made, "slow") == EVERYTHING


@pytest.mark.parametrize("mended_by", ["another epoch", "draining"])
def test_a_ledger_that_is_down_catches_up_when_it_is_back(project: Make, spark: SparkSession, mended_by: str) -> None:
    name = mended_by.replace(" ", "_")
    made = project(**source(name))
    made.ledger.publications(name)
    made.__dict__["ledger"] = Ledger(made.settings.ledger_uri, timeout=0.2)
    with closing(sqlite3.connect(made.settings.work / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        run_epoch(made, spark, name, "0" if mended_by == "another epoch" else "1")
        assert made.stash.files()
        assert held(made, name) == set()
    if mended_by == "another epoch":
        run_epoch(made, spark, name, "1")
    assert made.flusher.drain(60)
    assert held(made, name) == EVERYTHING
