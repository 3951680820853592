"""Quality gates on real Spark, Iceberg and Great Expectations: what fails is kept back, what warns is told, all of it is kept."""

from __future__ import annotations

import json
import logging
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance
from firnline.runtime.project import EXPECTATIONS, Project
from firnline.runtime.status import status
from tests.project import command
from tests.spark.running import rows, run_epoch

MakeProject = Callable[..., Project]

GATED = """
    import firnline as fl
    from pyspark.sql import functions as F

    gated = fl.Pipeline("gated", schedule=1, start=0)

    @gated.source(keys=["id"], checks=["orders_are_sane"])
    def orders(epoch):
        changes = epoch.files(f"data/{epoch.lower}.csv", format="csv", schema="diff int, id int, who string, amount double")
        return changes.withColumnRenamed("diff", "_diff")

    @gated.stage(keys=["who"], checks=[fl.check("totals_are_whole", on="both", blocking=False)])
    def totals(orders):
        return orders.groupBy("who").agg(F.sum("amount").alias("total"), F.count("*").alias("orders"))
"""

ORDERS = [
    {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}},
    {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "who", "regex": "^[a-zé]+$"}},
    {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "amount", "max_value": 1000}},
]

TOTALS = """
    import great_expectations as gx
    import great_expectations.expectations as gxe

    totals_are_whole = gx.ExpectationSuite(
        name="totals_are_whole",
        expectations=[
            gxe.ExpectColumnValuesToBeUnique(column="who"),
            gxe.ExpectColumnDistinctValuesToBeInSet(column="orders", value_set=[1, 2]),
            gxe.ExpectTableRowCountToBeBetween(max_value=2),
        ],
    )
"""


def put(project: Project, epoch: int, *orders: tuple[int, int, str, float]) -> None:
    folder = project.settings.root / "data"
    folder.mkdir(exist_ok=True)
    lines = [",".join(map(str, order)) for order in orders]
    (folder / f"{epoch}.csv").write_text("\n".join(["diff,id,who,amount", *lines, ""]), encoding="utf-8")


def put_suite(project: Project, file: str, text: str) -> None:
    path = project.settings.root / EXPECTATIONS / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


def put_json(project: Project, name: str, *expectations: dict[str, Any]) -> None:
    put_suite(project, f"{name}.json", json.dumps({"name": name, "expectations": expectations}))


def jobs(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans that are executed from now on."""
    executed: list[str] = []
    client = session.client
    run = client._execute_and_fetch
    monkeypatch.setattr(client, "_execute_and_fetch", lambda *given, **named: executed.append("job") or run(*given, **named))
    return executed


def test_what_fails_is_kept_back_and_what_warns_is_told(
    project: MakeProject, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    made = project(gated=GATED)
    put_json(made, "orders_are_sane", *ORDERS)
    put_suite(made, "totals_are_whole.py", textwrap.dedent(TOTALS))
    caplog.set_level(logging.INFO)
    put(made, 0, (1, 1, "ann", 5), (1, 2, "bob", 6.5))
    run_epoch(made, spark, "gated", "0")
    graph = made.graph("gated")
    assert rows(made, graph, "orders") == [(1, "ann", 5.0), (2, "bob", 6.5)]
    results = made.check_results("gated")
    assert [(each.collection, each.on, each.success, each.rows) for each in results.last()] == [
        ("orders", "delta", True, 2),
        ("totals", "delta", True, 2),
        ("totals", "state", True, 2),
    ]
    assert results.failed() == []

    # A row with a negative amount, one with a name that does not match, and the removal of one that was there.
    put(made, 1, (1, 3, "ann", -1), (1, 4, "B O B", 7), (-1, 2, "bob", 6.5), (1, 5, "zoé", 8))
    with pytest.raises(FirnlineError) as refused:
        run_epoch(made, spark, "gated", "1")
    error = refused.value
    assert error.code == "CHECK_FAILED"
    assert not error.retryable
    assert "'orders_are_sane' on the delta" in error.what
    assert "expect_column_values_to_be_between of 'amount' (min_value=0): 1 of 3 rows are not so, such as -1.0" in error.what
    assert "id=4, who='B O B', amount=7.0" in caplog.text, "the task's log shows the rows"
    log = made.log("gated", "orders")
    assert rows(made, graph, "orders", "0") == [(1, "ann", 5.0), (2, "bob", 6.5)]
    table = log.load()
    assert table is not None
    assert len(table.snapshots) == 1, "the staging is gone"
    (failed,) = results.failed()
    assert (failed.collection, failed.lower, failed.blocking) == ("orders", 1, True)
    (document,) = results.documents([failed])
    (between, regex, mean) = document["results"]
    assert between["result"]["unexpected_rows"] == [{"id": 3, "who": "ann", "amount": -1.0}]
    assert regex["result"]["partial_unexpected_list"] == ["B O B"]
    assert mean["success"]
    line = status(made, graph).collections[0]
    assert len(line.failed) == 1
    assert "CHECK_FAILED" in line.failed[0]

    # Mended, it passes; the totals of three people are one too many, which is only told.
    put(made, 1, (1, 3, "ann", 1), (1, 4, "bob", 7), (1, 5, "zoé", 8))
    run_epoch(made, spark, "gated", "1")
    assert rows(made, graph, "totals") == [("ann", 6.0, 2), ("bob", 13.5, 2), ("zoé", 8.0, 1)]
    assert {(each.collection, each.on, each.failed) for each in results.failed()} == {
        ("totals", on, ("expect_table_row_count_to_be_between (max_value=2): found 3",)) for on in ("delta", "state")
    }
    found = status(made, graph).collections
    assert found[0].failed == ()
    assert len(found[1].warned) == 2
    assert "'totals_are_whole' on the state: expect_table_row_count" in found[1].warned[1]

    # An epoch without a change: of no rows nothing is said about columns, and the state is what it was.
    put(made, 2)
    run_epoch(made, spark, "gated", "2")
    assert [(each.collection, each.on, each.success, each.rows) for each in results.last()] == [
        ("orders", "delta", True, 0),
        ("totals", "delta", True, 0),
        ("totals", "state", False, 3),
    ]

    told = command(made.settings.root, "checks", "--docs", "--json")
    lines = told["pipelines"]["gated"]
    assert [(each["collection"], each["on"], each["last"]["success"]) for each in lines] == [
        ("orders", "delta", True),
        ("totals", "delta", True),
        ("totals", "state", False),
    ]
    pages = [page.read_text(encoding="utf-8") for page in Path(told["docs"]).parent.rglob("*.html")]
    assert any("gated.orders@2" in page and "orders_are_sane" in page for page in pages)
    assert sum("totals_are_whole" in page for page in pages) >= 3, "a page for each result, and the index"


def test_a_check_that_fails_among_epochs_computed_at_once_names_its_epoch_and_all_files_may_be_mended(
    project: MakeProject, spark: SparkSession
) -> None:
    made = project(atonce=GATED.replace("gated", "atonce").partition("    @atonce.stage")[0])
    put_json(made, "orders_are_sane", ORDERS[0])
    for epoch, amount in enumerate((5, 6, -7, 8)):
        put(made, epoch, (1, epoch, "ann", amount))
    run_epoch(made, spark, "atonce", "0")
    outcomes = advance(made, made.declared("atonce"), spark, "orders", Epoch(3, 4))
    first = next(outcomes)
    assert (first.epoch, first.at_once) == (Epoch(1, 2), 3)
    with pytest.raises(FirnlineError, match=r"^CHECK_FAILED: source 'orders' at 2: .*'orders_are_sane' on the delta"):
        next(outcomes)

    put(made, 2, (1, 2, "ann", 70))
    put(made, 3, (1, 3, "ann", 80))
    run_epoch(made, spark, "atonce", "3")
    assert [amount for _, _, amount in rows(made, made.graph("atonce"), "orders")] == [5.0, 6.0, 70.0, 80.0]


def test_all_numbers_of_all_suites_take_one_pass(
    project: MakeProject, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = GATED.replace("gated", "onepass").replace('["orders_are_sane"]', '["orders_are_sane", "orders_are_few"]')
    made = project(onepass=source.split("    @onepass.stage")[0])
    put_json(made, "orders_are_sane", *ORDERS)
    put_json(made, "orders_are_few", {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 9}})
    put(made, 0, (1, 1, "ann", 5))
    from firnline.runtime import stage_run

    executed = jobs(spark, monkeypatch)
    counted = []
    ask = stage_run.Checks.ask

    def counting(checks: Any, *given: Any) -> None:
        before = len(executed)
        ask(checks, *given)
        counted.append(len(executed) - before)

    monkeypatch.setattr(stage_run.Checks, "ask", counting)
    run_epoch(made, spark, "onepass", "0")
    assert counted == [1]


REFUSED: dict[str, tuple[str, str, str]] = {
    "unknown column": (
        '{"expectations": [{"type": "expect_column_max_to_be_between", "kwargs": {"column": "x"}}]}',
        "json",
        "'x'",
    ),
    "unknown type": ('{"expectations": [{"type": "expect_miracles", "kwargs": {"column": "id"}}]}', "json", "expect_miracles"),
    "wrong argument": (
        '{"expectations": [{"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id", "mostly": 7}}]}',
        "json",
        "mostly",
    ),
    "broken file": ('{"expectations": [', "json", "JSONDecodeError"),
    "broken module": ("import great_expectations\nraise ValueError('broken')\n", "py", "orders_are_sane.py:2"),
    "wrong pattern": (
        '{"expectations": [{"type": "expect_column_values_to_match_regex", "kwargs": {"column": "who", "regex": "["}}]}',
        "json",
        "regex",
    ),
}


def test_a_suite_that_cannot_be_asked_is_refused(project: MakeProject, spark: SparkSession) -> None:
    made = project(refused=GATED.replace("gated", "refused").split("    @refused.stage")[0])
    put(made, 0, (1, 1, "ann", 5))
    for text, kind, said in REFUSED.values():
        put_suite(made, f"orders_are_sane.{kind}", text)
        with pytest.raises(FirnlineError) as refused:
            run_epoch(made, spark, "refused", "0")
        assert refused.value.code == "BAD_SUITE", refused.value
        assert said in str(refused.value)
        (made.settings.root / EXPECTATIONS / f"orders_are_sane.{kind}").unlink()
    with pytest.raises(FirnlineError) as refused:
        run_epoch(made, spark, "refused", "0")
    assert refused.value.code == "UNKNOWN_SUITE"
