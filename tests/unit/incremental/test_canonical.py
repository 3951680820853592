"""What counts as the same plan: stages written twice, on a session without a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from firnline.incremental.pruning import pruned
from tests.unit.incremental.offline import ORDERS, Stage, bound


def said(stage: Stage, orders: str = ORDERS) -> str | None:
    """The hash of a stage's plan and its columns by name; None if the plan does not say all."""
    found, canonical = bound(stage, orders)
    fields = sorted(found.fields, key=lambda field: field.name)
    ids = [field.id for field in fields]
    rows = canonical.hash(pruned(found.node, ids), ids)
    return " ".join([rows, *(field.name for field in fields)]) if canonical.is_whole else None


def doubled(rows: DataFrame) -> DataFrame:
    return rows.withColumn("twice", F.col("amount") * 2)


SAME: dict[str, tuple[Stage, Stage]] = {
    "a column by name, by attribute, by item": (
        lambda o, p: o.select("id", F.col("who"), F.col("amount")),
        lambda o, p: o.select(o.id, o["who"], o.amount),
    ),
    "where and filter, on text and on columns": (
        lambda o, p: o.where("amount > who").select("id"),
        lambda o, p: o.filter(F.col("amount") > F.col("who")).select("id"),
    ),
    "a helper, and the same in place": (
        lambda o, p: doubled(o).select("id", "twice"),
        lambda o, p: o.select("id", (o.amount * 2).alias("twice")),
    ),
    "two selects and one": (
        lambda o, p: o.select("id", (o.amount + 1).alias("n")).select("id", (F.col("n") * 2).alias("m")),
        lambda o, p: o.withColumn("other", o.amount + 1).withColumn("m", F.col("other") * 2).select("id", "m"),
    ),
    "the order of columns": (
        lambda o, p: o.withColumn("a", o.id + 1).withColumn("b", o.id + 2),
        lambda o, p: o.withColumn("b", o.id + 2).withColumn("a", o.id + 1),
    ),
    "names between input and result": (
        lambda o, p: o.withColumnRenamed("who", "person").groupBy("person").agg(F.sum("amount").alias("total")),
        lambda o, p: (
            o.groupBy("who").agg(F.sum("amount").alias("n")).select(F.col("who").alias("person"), F.col("n").alias("total"))
        ),
    ),
    "the order of groups and of aggregates": (
        lambda o, p: o.groupBy("who", "id").agg(F.sum("amount").alias("s"), F.max("amount").alias("m")),
        lambda o, p: o.groupBy("id", "who").agg(F.max("amount").alias("m"), F.sum("amount").alias("s")),
    ),
    "columns that nobody reads": (
        lambda o, p: o.join(p, o.who == p.name).select("id", "city"),
        lambda o, p: o.withColumn("unread", o.id * 7).join(p, o.who == p.name).select("id", "city"),
    ),
    "an alias of a relation": (
        lambda o, p: o.join(p, o.who == p.name).select(o.id, p.city),
        lambda o, p: o.alias("o").join(p.alias("p"), F.col("o.who") == F.col("p.name")).select("o.id", "p.city"),
    ),
    "names of lambda variables": (
        lambda o, p: o.select("id", F.transform("tags", lambda tag: F.upper(tag)).alias("t")),
        lambda o, p: o.select("id", F.transform("tags", lambda each: F.upper(each)).alias("t")),
    ),
    "columns in text": (
        lambda o, p: o.select("id", F.expr("UPPER(who)").alias("u")),
        lambda o, p: o.select("id", F.upper("who").alias("u")),
    ),
    "a hint and a repartition": (
        lambda o, p: o.hint("broadcast").repartition(3).select("id"),
        lambda o, p: o.select("id"),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same(name: str) -> None:
    one, other = SAME[name]
    assert said(one) is not None
    assert said(one) == said(other) == said(one)


DIFFERENT: dict[str, tuple[Stage, Stage]] = {
    "a constant": (lambda o, p: o.where(o.amount > 5), lambda o, p: o.where(o.amount > 6)),
    "the type of a constant": (lambda o, p: o.where(o.amount > 5), lambda o, p: o.where(o.amount > 5.0)),
    "a column": (lambda o, p: o.select((o.id + 1).alias("n")), lambda o, p: o.select((o.amount + 1).alias("n"))),
    "the name of a result": (lambda o, p: o.select(o.id.alias("n")), lambda o, p: o.select(o.id.alias("m"))),
    "results exchanged": (
        lambda o, p: o.select(o.id.alias("a"), o.amount.alias("b")),
        lambda o, p: o.select(o.amount.alias("a"), o.id.alias("b")),
    ),
    "sides of a self-join": (
        lambda o, p: o.alias("a").join(o.alias("b"), F.expr("a.id = b.amount")).select("a.id", "b.who"),
        lambda o, p: o.alias("a").join(o.alias("b"), F.expr("a.id = b.amount")).select("b.id", "a.who"),
    ),
    "kinds of joins": (
        lambda o, p: o.join(p, o.who == p.name, "left").select("id", "city"),
        lambda o, p: o.join(p, o.who == p.name).select("id", "city"),
    ),
    "a filter before and after a window": (
        lambda o, p: o.where("amount > id").select("id", F.sum("amount").over(Window.partitionBy("who")).alias("s")),
        lambda o, p: (
            o.select("id", "amount", F.sum("amount").over(Window.partitionBy("who")).alias("s"))
            .where("amount > id")
            .select("id", "s")
        ),
    ),
    "a filter before and after a sum": (
        lambda o, p: o.where(o.amount > 5).groupBy("who").agg(F.sum("amount").alias("s")),
        lambda o, p: o.groupBy("who").agg(F.sum("amount").alias("s")).where(F.col("s") > 5),
    ),
    "what is grouped": (
        lambda o, p: o.select("who", F.explode("tags").alias("t")).distinct(),
        lambda o, p: o.select("who", F.explode("tags").alias("t")),
    ),
    "which column is exploded": (
        lambda o, p: o.select("id", F.explode("tags").alias("t")),
        lambda o, p: o.select("id", F.explode_outer("tags").alias("t")),
    ),
    "rows in several windows of time": (
        lambda o, p: o.select("id", F.window("who", "2 days", "1 day").alias("w")).groupBy("id").agg(F.count("*").alias("n")),
        lambda o, p: o.select("id").groupBy("id").agg(F.count("*").alias("n")),
    ),
    "variables of a lambda exchanged": (
        lambda o, p: o.select("id", F.transform("tags", lambda tag, at: F.repeat(tag, at)).alias("t")),
        lambda o, p: o.select("id", F.transform("tags", lambda tag, at: F.repeat(at, tag)).alias("t")),
    ),
    "a limit": (lambda o, p: o.orderBy("id").limit(3), lambda o, p: o.orderBy("id").limit(4)),
    "an order": (lambda o, p: o.orderBy("id").limit(3), lambda o, p: o.orderBy(F.desc("id")).limit(3)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    one, other = map(said, DIFFERENT[name])
    assert one is not None
    assert other is not None
    assert one != other


def test_the_types_of_what_is_read_count_and_others_do_not() -> None:
    def stage(orders: DataFrame, people: DataFrame) -> DataFrame:
        return orders.select("id", "who")

    assert said(stage) == said(stage, ORDERS.replace("amount int", "amount double"))
    assert said(stage) != said(stage, ORDERS.replace("id int", "id bigint"))


STEP = 1


def moved(value: int) -> int:
    found = value + STEP
    return found  # noqa: RET504, a local variable


def bent(value: int) -> int:
    return value * STEP


def the_same_elsewhere(value: int) -> int:
    """Another name, another place, another variable."""
    result = value + STEP
    return result  # noqa: RET504, a local variable


def mapped(function: Callable[[int], int], kind: Any = "int") -> Stage:
    return lambda orders, people: orders.select("id", F.udf(function, kind)("amount").alias("n"))


def test_a_python_function_is_known_by_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    before = said(mapped(moved))
    assert before is not None
    assert before == said(mapped(the_same_elsewhere))
    assert before == said(mapped(moved, IntegerType()))
    assert before != said(mapped(moved, "bigint"))
    assert before != said(mapped(bent))
    monkeypatch.setattr(f"{__name__}.STEP", 2)
    assert before != said(mapped(moved))


def test_a_function_that_is_not_in_the_plan_leaves_it_open() -> None:
    assert said(lambda orders, people: orders.select("id", F.expr("my_own(amount)").alias("n"))) is None
    assert said(lambda orders, people: orders.select("id", F.call_function("my_own", "amount").alias("n"))) is None
