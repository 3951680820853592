"""Where neither side of a join is small and both are placed by its keys, parts are joined one by one, without a shuffle."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.engine import staging
from firnline.runtime.project import Project
from tests.oracle.amplab import comparable
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    placed = fl.Pipeline("placed", schedule=1, start=0)

    @placed.source(keys=["id"], partition_by=["who"], parts=4)
    def orders(epoch):
        first = [(n, n % 7, 1) for n in range(40)]
        second = [(n, n % 7, -1) for n in range(0, 40, 3)] + [(n, 6 - n % 7, 1) for n in range(40, 50)]
        return epoch.spark.createDataFrame([first, second][epoch.lower], "id int, who int, _diff int")

    @placed.source(keys=["who"], parts=4)
    def people(epoch):
        rows = [[(n, f"name {n}", 1) for n in range(6)], [(0, "name 0", -1), (6, "name 6", 1)]]
        return epoch.spark.createDataFrame(rows[epoch.lower], "who int, name string, _diff int")

    @placed.stage(keys=["id"])
    def inner(orders, people):
        return orders.join(people.where("name != 'name 1'"), "who").select("id", "name")

    @placed.stage(keys=["id"])
    def anti(orders, people):
        return orders.join(people, "who", "left_anti").select("id", "who")

    @placed.stage(keys=["id"])
    def outer(orders, people):
        return orders.join(people, orders.who == people.who, "left").select(orders.id, people.name)
"""
BEFORE = {n: n % 7 for n in range(40)}
AFTER = {**{n: n % 7 for n in range(40) if n % 3}, **{n: 6 - n % 7 for n in range(40, 50)}}


def expected(orders: dict[int, int], people: set[int]) -> dict[str, list[tuple[object, ...]]]:
    return {
        "inner": [(n, f"name {who}") for n, who in orders.items() if who in people - {1}],
        "anti": [(n, who) for n, who in orders.items() if who not in people],
        "outer": [(n, f"name {who}" if who in people else None) for n, who in orders.items()],
    }


@pytest.fixture
def plans(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The physical plan of every delta that is staged, by table; no side is small."""
    found: dict[str, str] = {}
    stage = staging.stage

    def spy(session: SparkSession, delta: DataFrame, table: str, attempt: str, lower: int) -> None:
        with redirect_stdout(io.StringIO()) as said:
            delta.explain()
        found[table.split("`")[-2]] = said.getvalue()
        stage(session, delta, table, attempt, lower)

    monkeypatch.setattr(staging, "stage", spy)
    monkeypatch.setattr("firnline.runtime.derived._MOST_BROADCAST", 0)
    monkeypatch.setattr("firnline.runtime.derived.FEW", 0)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield found
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_joins_of_logs_placed_by_their_keys_shuffle_nothing(
    project: Callable[..., Project], spark: SparkSession, plans: dict[str, str]
) -> None:
    made = project(placed=PIPELINE)
    for epoch, (orders, people) in enumerate([(BEFORE, {*range(6)}), (AFTER, {*range(1, 7)})]):
        run_epoch(made, spark, "placed", str(epoch))
        for name, wanted in expected(orders, people).items():
            assert rows(made, made.graph("placed"), name) == comparable(wanted)
            if epoch == 0:
                assert "Exchange" not in plans[name].split("Join", 1)[1], plans[name]
