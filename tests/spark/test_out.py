"""What goes out of a pipeline on Spark: scans, changes and plain tables agree with an own computation at every epoch."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.connect.session import SparkSession

import firnline as fl
from firnline.engine import frames
from firnline.engine.frames import net_changes
from firnline.model.epoch import Epoch
from firnline.runtime.advance import complete
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from tests.shelf import Delta, Shelf, comparable, multiset
from tests.spark.running import run_epoch
from tests.unit.runtime.test_changes import HISTORY as CHANGED
from tests.unit.runtime.test_changes import SCHEMA as CHANGED_SCHEMA
from tests.unit.runtime.test_scan import FILTERS, SCHEMA, history, row

COMPARED = (
    "fraction of an integer",
    "null is not in a list",
    "between decimals",
    "not like",
    "moment without zone",
    "local moment",
    "NaN is above",
    "not below",
    "zeros are equal",
    "floats not of a list",
    "single precision is not double",
    "inner",
    "inner null",
    "bytes",
    "equal to NaN",
)
"""The filters about which engines may disagree."""
SHELVES = """
    import firnline as fl

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["id"], parts=4)
    def visits(epoch): ...
"""
SALES = """
    from decimal import Decimal

    from pyspark.sql import functions as F

    import firnline as fl

    out_sales = fl.Pipeline("out_sales", schedule=1, start=0)

    @out_sales.source(keys=["order_id"], parts=2, publish="table")
    def orders(epoch):
        n = epoch.lower
        new = [(n * 10 + i, f"c{(n + i) % 3}", Decimal(i) / 4, 1) for i in range(5)]
        gone = [((n - 1) * 10 + 2, f"c{(n + 1) % 3}", Decimal(2) / 4, -1)] if n else []
        return epoch.spark.createDataFrame([*new, *gone], "order_id long, customer string, amount decimal(9,2), _diff long")

    @out_sales.stage(keys=["customer"], publish="table")
    def spend(orders):
        return orders.groupBy("customer").agg(F.sum("amount").alias("spent"), F.count("*").alias("n"))
"""


@pytest.mark.usefixtures("far_away")
def test_spark_gives_what_is_read_without_it(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(out_shelf=SHELVES.format(name="out_shelf"))
    shelf = Shelf(made, "out_shelf", "visits", SCHEMA, ("id",), parts=4)
    shelf.publish(*history())
    shelf.complete()
    names = ["id", "name", "rate", "inner", "facts"]
    for name in COMPARED:
        where, holds = FILTERS[name]
        scan = fl.scan("out_shelf.visits", as_of="3", where=where, columns=names, project=made)
        expected = [{each: r[each] for each in names} for r in shelf.state(4) if holds(r)]
        assert multiset(scan.to_spark(spark).toArrow().to_pylist()) == multiset(expected), name
    shelf.merge(0, 3)
    scan = fl.scan("out_shelf.visits", columns=["is_new"], project=made)
    assert multiset(scan.to_spark(spark).toArrow().to_pylist()) == multiset([{"is_new": r["is_new"]} for r in shelf.state(5)])


def test_spark_tells_the_same_changes(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(out_changed=SHELVES.format(name="out_changed"))
    shelf = Shelf(made, "out_changed", "visits", CHANGED_SCHEMA, ("id",), parts=2)
    shelf.publish(*CHANGED)
    shelf.complete()
    for net in (True, False):
        for after, columns in ((None, None), ("0", ["id", "rate"]), ("0", ["n"]), ("2", None), ("4", None)):
            asked: dict[str, Any] = {"after": after, "columns": columns, "net": net, "where": "id < 6", "project": made}
            told = fl.changes("out_changed.visits", **asked)
            assert multiset(told.to_spark(spark).toArrow().to_pylist()) == multiset(told.to_arrow().to_pylist())

    reader = fl.reader("copier", lease="1d", pipeline="out_changed", project=made)
    rewind(made, made.graph("out_changed"), 2, None, "me")
    for net in (True, False):
        undone = reader.changes("out_changed.visits", net=net)
        assert multiset(undone.to_spark(spark).toArrow().to_pylist()) == multiset(undone.to_arrow().to_pylist())
        assert undone.upto == "1__1"
    del shelf.deltas[2:]
    shelf.publish(CHANGED[2])
    complete(made, made.graph("out_changed"), Epoch(2, 3))
    for net in (True, False):
        told = reader.changes("out_changed.visits", net=net)
        assert multiset(told.to_spark(spark).toArrow().to_pylist()) == multiset(told.to_arrow().to_pylist())
        assert told.to_arrow().num_rows > 0


def test_what_goes_out_is_the_state_at_every_epoch(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(out_sales=SALES)
    orders: dict[int, tuple[str, Decimal]] = {}
    before: list[dict[str, Any]] = []
    for epoch in range(3):
        run_epoch(made, spark, "out_sales", str(epoch))
        orders |= {epoch * 10 + i: (f"c{(epoch + i) % 3}", Decimal(i) / 4) for i in range(5)}
        orders.pop((epoch - 1) * 10 + 2, None)
        expected = [
            {"order_id": key, "customer": who, "amount": amount.quantize(Decimal("0.01"))}
            for key, (who, amount) in orders.items()
        ]
        spent = [
            {
                "customer": who,
                "spent": sum((amount for each, amount in orders.values() if each == who), Decimal("0.00")),
                "n": sum(each == who for each, _ in orders.values()),
            }
            for who in sorted({who for who, _ in orders.values()})
        ]
        found, totals = fl.scan("out_sales.orders", "out_sales.spend", project=made)
        assert multiset(found.to_arrow().to_pylist()) == multiset(expected)
        assert multiset(totals.to_arrow().to_pylist()) == multiset(spent)
        for name, rows in (("orders", expected), ("spend", spent)):
            plain = made.catalog.iceberg("out_sales__tables", name)
            assert multiset(plain.scan().to_arrow().to_pylist()) == multiset(rows)
            assert made.catalog.version("out_sales__views", name) is not None
        told = fl.changes("out_sales.spend", after=str(epoch - 1) if epoch else None, project=made).to_arrow().to_pylist()
        state = [repr(comparable(each)) for each in before]
        for change in told:
            text = repr(comparable({key: change[key] for key in ("customer", "spent", "n")}))
            state.remove(text) if change["_change_type"] == "DELETE" else state.append(text)
        assert sorted(state) == multiset(spent)
        before = spent


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.usefixtures("far_away")
def test_old_rows_are_read_with_what_newer_layers_come_to(
    project: Callable[..., Project], spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_nested: bool
) -> None:
    """An epoch that only inserts, then updates, removals, rows that go and come back as they were; every type."""
    name = f"out_settled_{is_nested}".lower()
    kept = [field for field in SCHEMA if is_nested or not pa.types.is_nested(field.type)]
    made = project(**{name: SHELVES.format(name=name)})
    shelf = Shelf(made, name, "visits", pa.schema(kept), ("id",), parts=4)
    back: list[Delta] = [[(row(number), weight) for number in (10, 11)] for weight in (-1, 1)]
    shelf.publish(*([({of.name: each[of.name] for of in kept}, weight) for each, weight in one] for one in (*history(), *back)))
    shelf.complete()
    by_spark = []
    monkeypatch.setattr(frames, "net_changes", lambda *given: by_spark.append(given) or net_changes(*given))
    for epoch in range(7):
        read = fl.read(f"{name}.visits", as_of=str(epoch), session=spark, project=made)
        assert multiset(read.toArrow().to_pylist()) == multiset(shelf.state(epoch + 1)), epoch
    assert len(by_spark) == (6 if is_nested else 0), "of what stands in a plan, Spark computes nothing twice"
