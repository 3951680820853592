"""Columns that change: what a log takes in place, what readers of old and new epochs see, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.model.outline import Difference
from firnline.runtime import show
from firnline.runtime.branch import create
from firnline.runtime.branch_run import missing, run
from firnline.runtime.changes import changes
from firnline.runtime.code_plan import code_plan
from firnline.runtime.project import Project
from firnline.runtime.promote import planned, promote
from firnline.runtime.read import frame
from firnline.runtime.rewind import rewind
from firnline.runtime.status import status
from firnline.runtime.verify import verify
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.spark.running import run_epoch

Make = Callable[..., Project]
Row = dict[str, Any]
SOURCE = """
import firnline as fl
from pyspark.sql import functions as F

shape = fl.Pipeline("shape", schedule=1, start=0, on_change="allow")

@shape.source(keys=["id"])
def orders(epoch):
    return epoch.spark.createDataFrame([(epoch.lower, {of}, 1.5)], "id int, amount {amount}, price {price}")

@shape.stage(keys=["id"], publish="table")
def items(orders):
    return orders.select({columns})
"""
FIRST = '"id", "amount", "price", F.lit("n").alias("note")'
ADDED = FIRST + ', (F.col("amount") * 2).alias("twice")'
RENAMED = ADDED.replace('"twice"', '"doubled"')
DROPPED = RENAMED.replace(', F.lit("n").alias("note")', "")
BRANCHED = RENAMED + ', F.lit("x").alias("more")'
LARGE = 5_000_000_000


def write(project: Make, columns: str, *, is_wide: bool = False, of: int = 7) -> Project:
    amount, price = ("bigint", "double") if is_wide else ("int", "float")
    return project(shape=SOURCE.format(columns=columns, amount=amount, price=price, of=of))


def found(project: Project, as_of: int, pipeline: str = "shape") -> list[Row]:
    names, rows = show.rows(project, project.graph(pipeline), "items", str(as_of))
    return sorted((dict(zip(names, row, strict=True)) for row in rows), key=lambda row: row["id"])


def planned_change(project: Project) -> Difference:
    changes = {each.collection: each.difference for each in code_plan(project, project.graph("shape")).changes}
    return changes["items"]


def item(number: int, amount: int = 7, **more: object) -> Row:
    return {"id": number, "amount": amount, "price": 1.5, **more}


def test_columns_come_widen_change_their_names_and_go(project: Make, spark: SparkSession) -> None:
    def check(made: Project, epoch: int, expected: list[Row]) -> None:
        graph = made.graph("shape")
        assert found(made, epoch) == expected
        read = [row.asDict() for row in frame(made, spark, graph, "items", epoch + 1).collect()]
        assert sorted(read, key=lambda row: row["id"]) == expected
        plain = made.catalog.iceberg("shape__tables", "items").scan().to_arrow().to_pylist()
        assert sorted(plain, key=lambda row: row["id"]) == expected
        view = made.catalog.view("shape__views", "items")
        assert view is not None
        assert {field["name"] for field in view[1]["schemas"][-1]["fields"]} == expected[0].keys()
        assert {line.code for line in status(made, graph).collections} == {"same"}

    made = write(project, FIRST)
    run_epoch(made, spark, "shape", "0")
    check(made, 0, [item(0, note="n")])

    made = write(project, ADDED)
    change = planned_change(made)
    assert (change.kinds, change.added) == (("column",), ("twice",))
    run_epoch(made, spark, "shape", "1")
    check(made, 1, [item(0, note="n", twice=14), item(1, note="n", twice=14)])

    made = write(project, ADDED, is_wide=True, of=LARGE)
    run_epoch(made, spark, "shape", "2")
    old = [item(number, note="n", twice=14) for number in (0, 1)]
    check(made, 2, [*old, item(2, LARGE, note="n", twice=2 * LARGE)])

    made = write(project, RENAMED, is_wide=True)
    change = planned_change(made)
    assert (change.kinds, change.renamed) == (("schema",), (("twice", "doubled"),))
    run_epoch(made, spark, "shape", "3")
    before = [item(0, note="n", doubled=14), item(1, note="n", doubled=14), item(2, LARGE, note="n", doubled=2 * LARGE)]
    check(made, 3, [*before, item(3, note="n", doubled=14)])
    told = changes("shape.items", after="2", project=made).to_arrow().to_pylist()
    assert [(row["id"], row["doubled"]) for row in told] == [(3, 14)], "a new name changes no row"

    made = write(project, DROPPED)  # and the source is narrow again: stored as it was
    run_epoch(made, spark, "shape", "4")
    now = [{**row, "note": None} for row in [*before, item(3, doubled=14), item(4, doubled=14)]]
    check(made, 4, now)
    run_epoch(made, spark, "shape", "5")
    check(made, 5, [*now, item(5, note=None, doubled=14)])

    assert found(made, 0) == [item(0, note="n", doubled=None)], "what an epoch had not, it has not now"
    assert found(made, 2) == before
    assert verify(made, "shape", spark).problems == ()


def test_what_no_rule_leads_to_is_refused_and_leaves_the_log_alone(project: Make, spark: SparkSession) -> None:
    name = "narrow"
    text = SOURCE.replace("shape", name).replace('"id int, amount {amount}, price {price}"', "{schema!r}")

    def write(columns: str, schema: str) -> Project:
        return project(**{name: text.format(columns=columns, of=7, schema=schema)})

    wide = "id int, amount bigint, price decimal(9,2)"
    made = write('"id", "amount", F.col("price").cast("decimal(9,2)").alias("price")', wide.replace("decimal(9,2)", "double"))
    run_epoch(made, spark, name, "0")
    kept = {each: made.log(name, each).load() for each in ("orders", "items")}
    refused = {
        '"id", F.col("amount").cast("string").alias("amount"), F.col("price").cast("decimal(9,2)").alias("price")': "amount",
        '"id", "amount", F.col("price").cast("decimal(12,3)").alias("price")': "price",
    }
    for columns, column in refused.items():
        made = write(columns, wide.replace("decimal(9,2)", "double"))
        with pytest.raises(FirnlineError, match=column) as error:
            run_epoch(made, spark, name, "1")
        assert error.value.code == "WRONG_COLUMNS"
        assert made.log(name, "items").load() == kept["items"]
    made = write('"id"', "id int, amount bigint, cost double")
    with pytest.raises(FirnlineError, match="price") as error:
        run_epoch(made, spark, name, "2")
    assert error.value.code == "WRONG_COLUMNS", "a source's column does not go by itself"


def test_a_branch_with_other_columns_is_promoted(project: Make, spark: SparkSession, tmp_path: Path) -> None:
    name = "promoted"
    text = SOURCE.replace("shape", name)

    def code(columns: str) -> str:
        return text.format(columns=columns, amount="int", price="float", of=7)

    made = project(**{name: code(ADDED)})
    for label in "01":
        run_epoch(made, spark, name, label)
    folder = tmp_path / "other" / "include" / "pipelines"
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code(BRANCHED))
    create(made, made.graph(name), "other", 1, str(tmp_path / "other"))
    space = f"{name}__other"
    assert {each.collection: each.how for each in run(made, space, missing(made, space), lambda: spark)}["items"] == "computed"

    made = project(**{name: code(BRANCHED)})
    graph = made.graph(name)
    plan = planned(made, graph, "other", lambda: spark, is_rebased=False)
    assert plan is not None
    assert plan.changed == ("items",)
    list(promote(made, graph, plan, lambda: spark))
    expected = [{**item(number, more="x"), "note": "n", "doubled": 14} for number in range(3)]
    assert found(made, 2, name) == expected
    assert found(made, 1, name) == [{**row, "more": None} for row in expected[:2]]
    assert verify(made, name, spark).problems == ()
    run_epoch(made, spark, name, "3")
    assert found(made, 3, name) == [*expected, {**expected[0], "id": 3}]


TURNING = """
import firnline as fl
from pyspark.sql import functions as F

{name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="allow")
CHANGES = {{
    0: [(0, 7, 1), (1, 7, 1), (2, None, 1)],
    1: [(3, 7, 1)],
    2: [(0, 7, -1), (1, 7, -1), (1, 8, 1)],
    3: [(2, None, -1), (3, 7, -1), (3, 9, 1)],
    4: [(1, 8, -1)],
}}

@{name}.source(keys=["id"])
def orders(epoch):
    return epoch.spark.createDataFrame(CHANGES[epoch.lower], "id int, amount int, _diff bigint")

@{name}.stage(keys=["id"])
def items(orders):
    return orders.select("id", {columns})

@{name}.stage(keys=["id"])
def readers(items):
    return items.where("id > 0").withColumnRenamed({twice!r}, "seen")
"""
TWICE = '(F.col("amount") * 2).alias("twice")'
DOUBLED = TWICE.replace("twice", "doubled")
ANOTHER = DOUBLED + ', (F.col("amount") * 3).alias("twice")'
STATES = [
    {0: 14, 1: 14, 2: None},
    {0: 14, 1: 14, 2: None, 3: 14},
    {1: 16, 2: None, 3: 14},
    {1: 16, 3: 18},
    {3: 18},
]
"""What is in the column after each epoch, whatever it is called."""


def test_a_name_that_is_given_back_is_that_of_the_same_column(project: Make, spark: SparkSession) -> None:
    name = "turning"

    def write(columns: str, twice: str = "twice") -> Project:
        return project(**{name: TURNING.format(name=name, columns=columns, twice=twice)})

    def check(made: Project, epoch: int, column: str) -> None:
        names, rows = show.rows(made, made.graph(name), "items", str(epoch))
        held = [dict(zip(names, row, strict=True)) for row in rows]
        assert {row["id"]: row[column] for row in held} == STATES[epoch]
        assert len(held) == len(STATES[epoch])
        assert all(row.keys() == {"id", column} for row in held)

    def attempt(columns: str, epoch: int, twice: str) -> None:
        """An epoch by other code that gets no further than the columns."""
        mortal = Mortal()
        mortal.kill_at = "schema.committed"
        with replaced(mortal), pytest.raises(Killed):
            run_epoch(write(columns, twice), spark, name, str(epoch))

    run_epoch(write(TWICE), spark, name, "0")
    attempt(DOUBLED, 1, "doubled")
    made = write(TWICE)
    run_epoch(made, spark, name, "1")
    check(made, 1, "twice")

    made = write(DOUBLED, "doubled")
    run_epoch(made, spark, name, "2")
    check(made, 2, "doubled")
    rewind(made, made.graph(name), 1, "items", "ana")
    made = write(TWICE)
    assert [each.how for each in run_epoch(made, spark, name, "1") if each.collection == "items"] == ["computed"]
    check(made, 1, "twice")
    run_epoch(made, spark, name, "2")
    for epoch in range(3):
        check(made, epoch, "twice")
    told = changes(f"{name}.items", after="1", project=made).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["id"], row["twice"]) for row in told) == [
        ("DELETE", 0, 14),
        ("DELETE", 1, 14),
        ("INSERT", 1, 16),
    ]

    attempt(DOUBLED, 3, "doubled")
    attempt(ANOTHER, 3, "doubled")  # now the old name is another column's
    made = write(TWICE)
    for epoch in (3, 4):
        run_epoch(made, spark, name, str(epoch))
        names, rows = show.rows(made, made.graph(name), "items", str(epoch))
        held = [dict(zip(names, row, strict=True)) for row in rows]
        assert sorted(held, key=lambda row: row["id"]) == [
            {"id": id, "doubled": None, "twice": twice} for id, twice in STATES[epoch].items()
        ]
    assert verify(made, name, spark).problems == ()
