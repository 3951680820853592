"""What users test their pipelines with: it lets right stages pass, and tells wrong ones by their rows."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.testing import Crash, assert_incremental, assert_repeatable, run, run_pipeline
from tests.project import make_project

SHOP = """
    import itertools
    import random

    from pyspark.sql import functions as F

    import firnline as fl

    shop = fl.Pipeline("shop", schedule="@daily", start="2026-01-01", end="2026-01-03")
    passes = itertools.count()
    shouted = F.udf(lambda text: text.upper() + "!", "string")
    lucky = F.udf(lambda text: str(random.random()), "string")


    @shop.source(keys=["id"])
    def orders(epoch):
        return epoch.spark.createDataFrame([(1, "Ada", 5)], "id int, customer string, amount int")


    @shop.stage(keys=["customer"])
    def spend(orders):
        return orders.groupBy("customer").agg(F.sum("amount").alias("spent"), F.count("*").alias("orders"))


    @shop.sql("SELECT spent, count(*) AS customers FROM spend WHERE spent > 0 GROUP BY spent", keys=["spent"])
    def alike(spend): ...


    @shop.stage(keys=["customer"])
    def loud(spend, names=fl.collection("people.names")):
        return spend.join(names, "customer").select("customer", shouted("name").alias("name"), "spent")


    @shop.stage(keys=["id"])
    def recent(orders):
        return orders.where(F.col("at") > fl.epoch_time() - F.expr("INTERVAL 2 DAYS"))


    @shop.stage(keys=["src", "dst"])
    def reach(edges):
        def step(paths):
            further = paths.join(edges, paths.dst == edges.src).select(paths.src, edges.dst)
            return edges.union(further).distinct()

        return fl.iterate(edges, step)


    @shop.source(keys=["src", "dst"])
    def edges(epoch): ...


    @shop.source(keys=["sku"], snapshot=True)
    def prices(epoch): ...


    @shop.stage(keys=[])
    def dearest(prices):
        return prices.agg(F.max("price").alias("price"))


    @shop.stage(keys=["customer"], refresh="full")
    def counting(orders):
        return orders.select("customer").distinct().withColumn("passes", F.lit(next(passes)))


    @shop.stage(keys=["customer"])
    def gambling(orders):
        return orders.select("customer").distinct().withColumn("luck", lucky("customer"))
"""
PEOPLE = """
    import firnline as fl

    people = fl.Pipeline("people", schedule="@hourly", start="2025-01-01")


    @people.source(keys=["customer"])
    def names(epoch): ...
"""
ADA = {"id": 1, "customer": "Ada", "amount": 5}
BO = {"id": 2, "customer": "Bo", "amount": 7}
DEARER = [{**ADA, "_diff": -1}, {**ADA, "amount": 7}]
HISTORY: list[Any] = [
    {"orders": [ADA, BO]},
    {},
    Crash("publish.committed"),
    {"orders": DEARER},
    {"orders": [{**BO, "_diff": -1}]},
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("shop"), shop=SHOP, people=PEOPLE).settings.root


def test_a_stage_is_run_over_a_history(root: Path) -> None:
    ran = run("shop.spend", HISTORY, root=root)
    ada, dearer, bo = ({"customer": name, "spent": spent, "orders": 1} for name, spent in (("Ada", 5), ("Ada", 7), ("Bo", 7)))
    assert [ran.rows(after=count) for count in range(5)] == [[], [ada, bo], [ada, bo], [dearer, bo], [dearer]]
    assert ran.changes(epoch=3) == [{**ada, "_diff": -1}, {**dearer, "_diff": 1}]
    assert ran.changes(epoch="2026-01-02") == []
    assert ran.rows("orders") == [{**ADA, "amount": 7}]


def test_changes_add_up_to_what_a_run_from_scratch_gives(root: Path) -> None:
    ran = assert_incremental("shop.alike", HISTORY, schemas={"orders": "id int, customer string, amount int"}, root=root)
    assert ran.rows(after=3) == [{"spent": 7, "customers": 2}]


def test_any_collection_that_a_stage_is_made_from_can_be_given(root: Path) -> None:
    names = pa.table({"customer": ["Ada", "Bo"], "name": ["Ada Löwe", None]})
    history = [{"spend": [{"customer": "Ada", "spent": 5}], "people.names": names}, {"people.names": [{"customer": "Zoë"}]}]
    assert_incremental("shop.loud", history, root=root)
    by_parameter = [{"spend": [{"customer": "Ada", "spent": Decimal("5.00")}], "names": names}]
    loud = {"customer": "Ada", "name": "ADA LÖWE!", "spent": Decimal("5.00")}
    assert run("shop.loud", by_parameter, root=root).rows() == [loud]


def test_time_passes_in_a_history(root: Path) -> None:
    history: list[Any] = [{"orders": [{"id": 1, "at": datetime(2026, 2, 1, 12)}]}, {}, {}]
    ran = assert_incremental("shop.recent", history, start="2026-02-01", root=root)
    assert [len(ran.rows(after=count)) for count in (1, 2, 3)] == [1, 1, 0]


def test_recursion_is_compared_with_plain_spark(root: Path) -> None:
    history = [{"edges": [{"src": 1, "dst": 2}, {"src": 2, "dst": 3}]}, {"edges": [{"src": 2, "dst": 3, "_diff": -1}]}]
    ran = assert_incremental("shop.reach", history, root=root)
    assert [len(ran.rows(after=count)) for count in (1, 2)] == [3, 1]


def test_a_source_is_given_what_its_function_would_have_returned(root: Path) -> None:
    assert run("shop.orders", [{"orders": [ADA]}, {"orders": DEARER}], root=root).rows() == [{**ADA, "amount": 7}]
    with pytest.raises(FirnlineError, match="KEY_NOT_UNIQUE"):
        run("shop.orders", [{"orders": [ADA, {**ADA, "amount": 9}]}], root=root)


def test_a_source_of_dumps_is_given_dumps(root: Path) -> None:
    socks, tent = {"sku": "socks", "price": 9}, {"sku": "tent", "price": 80}
    ran = assert_incremental("shop.dearest", [{"prices": [socks, tent]}, {"prices": [{**tent, "price": 70}]}], root=root)
    assert ran.rows("prices") == [{**tent, "price": 70}]
    assert ran.rows() == [{"price": 70}]
    with pytest.raises(FirnlineError, match="DUMP_SHRANK"):
        run("shop.prices", [{"prices": [socks, tent]}, {}], root=root)


def test_a_stage_that_depends_on_how_often_it_ran_is_told_by_its_rows(root: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_incremental("shop.counting", [{"orders": [ADA]}], root=root)
    said = str(caught.value)
    assert "counting after epoch 1 of 1 (2026-01-01) is not what it is from scratch" in said
    assert "customer | passes" in said
    assert len([line for line in said.splitlines() if "| Ada" in line]) == 2


def test_a_second_run_has_the_same_digests_whatever_crashed(root: Path) -> None:
    crashes = [Crash("stage.written"), Crash("publish.described"), Crash("frontier.judged")]
    assert_repeatable("shop.spend", [{"orders": [ADA]}, *crashes, {"orders": [BO]}], root=root)


def test_a_crash_that_does_not_happen_is_no_test(root: Path) -> None:
    with pytest.raises(FirnlineError, match=r"'orders' never reached determinant\.logged at 2026-01-01"):
        run("shop.spend", [Crash("determinant.logged", "orders"), {"orders": [ADA]}], root=root)


def test_rows_that_come_out_otherwise_again_are_told(root: Path) -> None:
    with pytest.raises(AssertionError, match=r"gambling at epoch 1 of 1 \(2026-01-01\) changed otherwise") as caught:
        assert_repeatable("shop.gambling", [{"orders": [ADA]}], root=root)
    assert "customer | luck" in str(caught.value)


@pytest.mark.parametrize(
    ("stage", "history", "what"),
    [
        ("shop.loud", [{"orders": [ADA]}], "no rows of 'people.names'"),
        ("shop.spend", [{"orders": [ADA], "edges": [{"src": 1, "dst": 2}]}], "gives edges"),
        ("shop.spend", [{"spend": [{"customer": "Ada"}]}], "that is under test"),
        ("shop.spend", [{"oders": [ADA]}], "no rows of 'orders'"),
        ("spend", [{"orders": [ADA]}], "write pipeline.stage"),
    ],
)
def test_a_history_that_does_not_fit_the_stage_is_refused(root: Path, stage: str, history: list[Any], what: str) -> None:
    with pytest.raises(FirnlineError, match=what):
        run(stage, history, root=root)


def test_a_whole_pipeline_is_run_in_tables_of_the_test_alone(root: Path) -> None:
    (root / "include" / "pipelines" / "solo.py").write_text(
        (root / "include" / "pipelines" / "shop.py").read_text().split("@shop.sql")[0].replace('"shop"', '"solo"')
    )
    first, again = run_pipeline("solo", upto="2026-01-01", root=root), run_pipeline("solo", upto="2026-01-01", root=root)
    assert first.rows("spend") == again.rows("spend") == [{"customer": "Ada", "spent": 5, "orders": 1}]
    assert not (root / ".firnline" / "catalog.db").exists()


local = fl.Pipeline("local", schedule=1, start=0)


@local.source(keys=["k"])
def numbers(epoch: Any) -> None: ...


@local.stage(keys=["k"])
def doubled(numbers: Any) -> Any:
    return numbers.selectExpr("k", "2 * n AS n")


def test_a_stage_may_be_given_as_its_function(root: Path) -> None:
    history = [{"numbers": [{"k": "a", "n": 1.5}]}, {"numbers": [{"k": "b", "n": float("nan")}]}]
    assert assert_incremental(doubled, history, root=root).rows()[0] == {"k": "a", "n": 3.0}
    with pytest.raises(FirnlineError, match=r"write pipeline\.stage"):
        run(make_project, [{}], root=root)
