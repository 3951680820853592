"""What kind of change leads from one plan to another: stages written twice, on a session without a server."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from firnline.errors import Location
from firnline.model.declaration import Collection
from firnline.model.outline import Difference, Outline, difference
from firnline.runtime.plan_fingerprint import outline_of
from tests.unit.incremental.offline import ORDERS, Stage, bound


def outline(stage: Stage, orders: str = ORDERS, keys: tuple[str, ...] = ("id",)) -> Outline:
    found, canonical = bound(stage, orders)
    collection = Collection("result", "stage", keys, keys, 1, "auto", ("orders", "people"), "", Location("here.py", 1))
    made = outline_of(found, collection, canonical)
    assert made is not None
    assert Outline.of_json(made.as_json()) == made
    return made


def by_person(orders: object) -> object:
    return orders.groupBy("who").agg(F.sum("amount").alias("total"))  # type: ignore[attr-defined]


def priced(tax: int) -> object:
    return F.udf(lambda amount: amount + tax, "int")


KINDS: dict[str, tuple[Stage, Stage, Difference]] = {
    "a column is added": (
        lambda o, p: o.select("id", "who"),
        lambda o, p: o.select("id", "who", (o.amount * 2).alias("twice")),
        Difference(("column",), added=("twice",)),
    ),
    "an aggregate is added": (
        lambda o, p: by_person(o),
        lambda o, p: o.groupBy("who").agg(F.max("amount").alias("most"), F.sum("amount").alias("total")),
        Difference(("column",), added=("most",)),
    ),
    "a column that a Python function makes is added": (
        lambda o, p: o.select("id"),
        lambda o, p: o.select("id", priced(1)("amount").alias("price")),
        Difference(("column",), added=("price",)),
    ),
    "a filter is added below an aggregate": (
        lambda o, p: by_person(o),
        lambda o, p: by_person(o.where("amount > id")),
        Difference(("filter",)),
    ),
    "a filter is another": (
        lambda o, p: o.where("amount > id").select("id"),
        lambda o, p: o.where("amount < id").select("id"),
        Difference(("filter",)),
    ),
    "a filter, and a column": (
        lambda o, p: o.select("id"),
        lambda o, p: o.where("amount > id").select("id", "who"),
        Difference(("column", "filter"), added=("who",)),
    ),
    "a Python function does something else": (
        lambda o, p: o.select("id", priced(1)("amount").alias("price")),
        lambda o, p: o.select("id", priced(2)("amount").alias("price")),
        Difference(("udf",), changed=("price",)),
    ),
    "a Python function in a filter": (
        lambda o, p: o.where(priced(1)("amount") > 0).select("id"),
        lambda o, p: o.where(priced(2)("amount") > 0).select("id"),
        Difference(("udf",)),
    ),
    "a column is dropped": (
        lambda o, p: o.select("id", "who", "amount"),
        lambda o, p: o.select("id", "who"),
        Difference(("schema",), dropped=("amount",)),
    ),
    "a column is renamed, and one is added": (
        lambda o, p: o.select("id", "who"),
        lambda o, p: o.select("id", o.who.alias("person"), "amount"),
        Difference(("column", "schema"), added=("amount",), renamed=(("who", "person"),)),
    ),
    "a column is renamed, and rows are filtered": (
        lambda o, p: o.select("id", "who"),
        lambda o, p: o.where("amount > id").select("id", o.who.alias("person")),
        Difference(("schema", "filter"), renamed=(("who", "person"),)),
    ),
    "one column is computed otherwise": (
        lambda o, p: o.select("id", "who", (o.amount * 2).alias("n")),
        lambda o, p: o.select("id", "who", (o.amount * 3).alias("n")),
        Difference(("logic",), changed=("n",)),
    ),
    "other rows": (
        lambda o, p: o.join(p, o.who == p.name).select("id", "city"),
        lambda o, p: o.join(p, o.who == p.name, "left").select("id", "city"),
        Difference(("logic",)),
    ),
    "a refactor": (
        lambda o, p: o.select("id", (o.amount * 2).alias("n")),
        lambda o, p: o.withColumn("n", F.col("amount") * 2).select("n", "id"),
        Difference(()),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_a_change(name: str) -> None:
    old, new, expected = KINDS[name]
    assert difference(outline(old), outline(new)) == expected
    assert (outline(old).plan == outline(new).plan) == (expected == Difference(()))


def test_types_and_keys_are_the_schema() -> None:
    def stage(orders: object, people: object) -> object:
        return orders.select("id", "amount")  # type: ignore[attr-defined]

    wider = outline(stage, ORDERS.replace("amount int", "amount bigint"))
    assert difference(outline(stage), wider) == Difference(("schema",), changed=("amount",), retyped=("orders.amount",))
    assert difference(outline(stage), outline(stage, keys=("id", "amount"))) == Difference(("schema",))


def test_what_is_not_known_is_only_code() -> None:
    made = outline(lambda o, p: o.select("id"))
    assert difference(None, made) == difference(made, None) == Difference(("code",))
