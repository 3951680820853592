"""Branches on real logs: files are shared and never lost, and only what changed is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.runtime.advance import Outcome
from firnline.runtime.branch import create, drop
from firnline.runtime.branch_run import missing, run
from firnline.runtime.maintain import is_tidy, maintained
from firnline.runtime.project import Project
from firnline.runtime.safepoint import safe_point
from firnline.runtime.verify import verify
from firnline.tables.trash import file_key
from tests.spark.running import rows, run_epoch

NOW = timedelta()
TWO = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1 epoch")

    @{name}.source(keys=["k"], parts=2)
    def numbers(epoch):
        rows = [(epoch.lower * 100 + n, n % 3, float(n)) for n in range(20 + 5 * epoch.lower)]
        return epoch.spark.createDataFrame(rows, "k bigint, g bigint, x double")

    @{name}.stage(keys=["g"])
    def totals(numbers):
        return numbers.groupBy("g").agg(F.sum("x").alias("x"), F.count("*").alias("n"))
"""
SIX = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1 epoch")

    @{name}.source(keys=["k"], parts=2)
    def orders(epoch):
        rows = [(100 * epoch.lower + n, n % 7, n % 3, float(n)) for n in range(21)]
        return epoch.spark.createDataFrame(rows, "k bigint, item bigint, shop bigint, price double")

    @{name}.source(keys=["item"])
    def items(epoch):
        rows = [(n, "even" if n % 2 == 0 else "odd") for n in range(7)] if epoch.lower == 0 else []
        return epoch.spark.createDataFrame(rows, "item bigint, kind string")

    @{name}.stage(keys=["k"])
    def sold(orders):
        return orders.where("price >= {least}")

    @{name}.stage(keys=["k"])
    def described(sold, items):
        return sold.join(items, "item")

    @{name}.stage(keys=["kind"])
    def by_kind(described):
        return described.groupBy("kind").agg(F.sum("price").alias("revenue"), F.count("*").alias("n"))

    @{name}.stage(keys=["shop"])
    def by_shop(orders):
        return orders.groupBy("shop").agg(F.sum("price").alias("revenue"))
"""


def _name(label: str) -> str:
    return f"{label}_{os.getpid()}"


def _code(tmp_path: Path, folder: str, **pipelines: str) -> str:
    from tests.project import make_project

    home = tmp_path / folder
    home.mkdir()
    make_project(home, **pipelines)
    return str(home)


def _run(made: Project, spark: SparkSession, space: str) -> list[Outcome]:
    return list(run(made, space, missing(made, space), lambda: spark))


def _forbidden() -> SparkSession:
    raise AssertionError("nothing is to be computed")


def _maintain(made: Project, spark: SparkSession, name: str) -> None:
    done = list(maintained(made, made.graph(name), lambda: spark, NOW))
    assert [each.error for each in done if each.error] == []


def _held(made: Project, space: str, collection: str) -> set[str]:
    log = made.log(space, collection)
    table = log.load()
    assert table is not None
    return {file_key(file.path) for file in log.held(table)}


def _digests(made: Project, space: str, collection: str) -> dict[Any, Any]:
    log = made.log(space, collection)
    return {cell: digest for entry in log.entries() for cell, digest in log.sidecar(entry).digests.items()}


def test_files_are_shared_and_stay_as_long_as_anybody_names_them(project: Callable[..., Project], spark: SparkSession) -> None:
    name = _name("shared")
    made = project(**{name: TWO.format(name=name)})
    graph, space = made.graph(name), f"{name}__same"
    for epoch in range(6):
        run_epoch(made, spark, name, str(epoch))
    create(made, graph, "same", 5, None)
    shared = _held(made, space, "numbers")
    assert shared < _held(made, name, "numbers")
    branch = made.graph(space)
    for collection in ("numbers", "totals"):
        assert rows(made, branch, collection) == rows(made, graph, collection, "4")
        assert spark.table(f"lake.{space}.{collection}").where("_epoch >= 5").count() == 0
    assert made.catalog.iceberg(space, "numbers").scan().to_arrow().num_rows == sum(20 + 5 * epoch for epoch in range(5))
    held = safe_point(made, graph)
    assert held.at <= 5
    assert any(hold.kind == "branch" and "branch drop same" in hold.release for hold in held.holds)
    assert verify(made, space, spark).problems == verify(made, name, spark).problems == ()

    assert {each.how for each in run(made, space, missing(made, space), _forbidden)} == {"taken"}
    for collection in ("numbers", "totals"):
        assert _digests(made, space, collection) == _digests(made, name, collection)

    _maintain(made, spark, name)
    gone = shared - _held(made, name, "numbers")
    assert gone, "main has merged what it shares"
    assert all(Path(path).exists() for path in gone), "and no file went that the branch names"
    assert is_tidy(made, graph, NOW)
    assert rows(made, branch, "totals") == rows(made, graph, "totals")
    assert verify(made, space, spark).problems == verify(made, name, spark).problems == ()

    before = _held(made, name, "numbers")
    _maintain(made, spark, space)
    assert shared - _held(made, space, "numbers"), "the branch has merged, too"
    assert all(Path(path).exists() for path in before), "and main has what it had"
    assert verify(made, space, spark).problems == verify(made, name, spark).problems == ()
    assert rows(made, branch, "totals") == rows(made, graph, "totals")

    drop(made, name, "same")
    assert made.catalog.branches(name) == set()
    assert not any(hold.kind == "branch" for hold in safe_point(made, graph).holds)
    _maintain(made, spark, name)
    assert not any(Path(path).exists() for path in gone), "now they are nobody's"
    assert verify(made, name, spark).problems == ()
    assert not list(Path(file_key(made.catalog.warehouse), space).rglob("*.parquet"))


def test_only_what_changed_is_computed(project: Callable[..., Project], spark: SparkSession, tmp_path: Path) -> None:
    name = _name("priced")
    made = project(**{name: SIX.format(name=name, least=0)})
    graph, space = made.graph(name), f"{name}__dear"
    for epoch in range(4):
        run_epoch(made, spark, name, str(epoch))
    unmoved = {each: made.catalog.version(name, each) for each in made.catalog.names(name) if each != "_frontier"}
    code = _code(tmp_path, "dear", **{name: SIX.format(name=name, least=5)})
    create(made, graph, "dear", 2, code)
    outcomes = _run(made, spark, space)
    computed = {each.collection for each in outcomes if each.how == "computed"}
    assert computed == {"sold", "described", "by_kind"}, "neither upstream nor sideways"
    assert {each.collection for each in outcomes if each.how == "taken"} == {"orders", "items", "by_shop"}
    branch = made.graph(space)
    whole = project(**{f"{name}_anew": SIX.format(name=f"{name}_anew", least=5)})
    for epoch in range(4):
        run_epoch(whole, spark, f"{name}_anew", str(epoch))
    for each in graph.collections:
        assert rows(made, branch, each.name) == rows(whole, whole.graph(f"{name}_anew"), each.name), each.name
    assert unmoved == {each: made.catalog.version(name, each) for each in unmoved}, "main is not disturbed"
    assert verify(made, space, spark).problems == ()
    assert _run(made, spark, space) == []
    drop(made, name, "dear")
