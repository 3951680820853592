"""Branches on real logs: files are shared and never lost, and only what changed is computed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.failpoints import Armed
from firnline.model.graph import Graph
from firnline.model.retention import Retention
from firnline.runtime.advance import Outcome
from firnline.runtime.branch import create, drop
from firnline.runtime.branch_run import missing, run
from firnline.runtime.diff import diff, sides
from firnline.runtime.maintain import maintained, tidied
from firnline.runtime.project import Project
from firnline.runtime.promote import planned, promote
from firnline.runtime.safepoint import safe_point
from firnline.runtime.verify import verify
from firnline.tables.scan import changes as changed_rows
from firnline.tables.trash import Trash, file_key
from firnline.world import World, replaced
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
    done = list(maintained(made, _keeping_nothing(made.graph(name)), lambda: spark, NOW))
    assert [each.error for each in done if each.error] == []


def _keeping_nothing(graph: Graph) -> Graph:
    """So that every epoch may be merged that nobody holds."""
    return replace(graph, keep=Retention("nothing", epochs=0))


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
    for epoch in range(4):
        run_epoch(made, spark, name, str(epoch))
    create(made, graph, "same", 3, None)
    shared = _held(made, space, "numbers")
    assert shared < _held(made, name, "numbers")
    branch = made.graph(space)
    for collection in ("numbers", "totals"):
        assert rows(made, branch, collection) == rows(made, graph, collection, "2")
        assert spark.table(f"lake.{space}.{collection}").where("_epoch >= 3").count() == 0
    assert made.catalog.iceberg(space, "numbers").scan().to_arrow().num_rows == sum(20 + 5 * epoch for epoch in range(3))
    assert verify(made, space, spark).problems == verify(made, name, spark).problems == ()
    assert {each.how for each in run(made, space, missing(made, space), _forbidden)} == {"taken"}
    for collection in ("numbers", "totals"):
        assert _digests(made, space, collection) == _digests(made, name, collection)
    drop(made, name, "same")

    create(made, graph, "same", 4, None)
    shared = _held(made, space, "numbers")
    held = safe_point(made, graph)
    assert any(hold.kind == "branch" and hold.at == 4 and "branch drop same" in hold.release for hold in held.holds)
    _maintain(made, spark, name)
    main = made.log(name, "numbers").load()
    assert main is not None
    gone = shared - Trash(made.catalog).named(main)
    assert gone, "main has merged what it shares, and dropped what named it"
    assert all(Path(path).exists() for path in gone), "and no file went that the branch names"
    assert not list(tidied(made, _keeping_nothing(graph), NOW)), "nor is anything else to be done"
    run_epoch(made, spark, name, "4")
    assert {each.how for each in run(made, space, missing(made, space), _forbidden)} == {"taken"}
    assert rows(made, branch, "totals") == rows(made, graph, "totals")

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


def test_what_if_from_branch_to_promotion(project: Callable[..., Project], spark: SparkSession, tmp_path: Path) -> None:
    """A stage in the middle changes: only it and what comes of it is computed, named, and promoted."""
    name = _name("priced")
    made = project(**{name: SIX.format(name=name, least=0)})
    graph, space = made.graph(name), f"{name}__dear"
    for epoch in range(3):
        run_epoch(made, spark, name, str(epoch))
    unmoved = {each: made.catalog.version(name, each) for each in made.catalog.names(name) if each != "_frontier"}
    create(made, graph, "dear", 1, _code(tmp_path, "dear", **{name: SIX.format(name=name, least=5)}))
    outcomes = _run(made, spark, space)
    assert {each.collection for each in outcomes if each.how == "computed"} == CHANGED, "neither upstream nor sideways"
    assert {each.collection for each in outcomes if each.how == "taken"} == {"orders", "items", "by_shop"}
    branch = made.graph(space)
    _check(made, branch, least=5, epochs=3)
    assert unmoved == {each: made.catalog.version(name, each) for each in unmoved}, "main is not disturbed"
    assert verify(made, space).problems == ()
    assert _run(made, spark, space) == []

    found = diff(*sides(made, graph, "main", "dear"), rows=100)
    assert found.first == "sold"
    verdicts = {each.collection: each for each in found.collections}
    assert {name for name, each in verdicts.items() if not each.is_same} == CHANGED
    assert verdicts["sold"].why == "its code differs"
    assert (verdicts["sold"].added, verdicts["sold"].removed, verdicts["sold"].changed) == (0, 15, 0), (
        "five prices below it, thrice"
    )
    (kinds,) = ([(row.old, row.new) for row in verdicts["by_kind"].rows],)
    old, new = _by_kind(0, 3), _by_kind(5, 3)
    assert sorted((o["kind"], o["revenue"], n["revenue"], o["n"], n["n"]) for o, n in kinds if o and n) == sorted(
        (kind, old[kind][0], new[kind][0], old[kind][1], new[kind][1]) for kind in old
    )
    assert {each.column for each in verdicts["by_kind"].columns} == {"revenue", "n"}

    with pytest.raises(FirnlineError, match="PROMOTE_CODE_DIFFERS"):
        planned(made, graph, "dear", _forbidden, is_rebased=False)
    made = project(**{name: SIX.format(name=name, least=5)})
    graph = made.graph(name)
    plan = planned(made, graph, "dear", _forbidden, is_rebased=False)
    assert plan is not None
    assert (plan.epoch.lower, set(plan.changed)) == (3, CHANGED)
    before = {each: rows(made, graph, each) for each in CHANGED}
    interrupted = World()
    interrupted._armed = Armed.of("promote.published=raise@2")
    with replaced(interrupted), pytest.raises(OSError, match="failpoint"):
        list(promote(made, graph, plan, lambda: spark))
    assert {each: rows(made, graph, each) for each in CHANGED} == before, "readers see all of it or nothing"
    again = planned(made, graph, "dear", _forbidden, is_rebased=False)
    assert again == plan
    done = list(promote(made, graph, plan, lambda: spark))
    assert {each.collection for each in done if each.how == "computed"} <= {each.name for each in graph.collections}
    _check(made, graph, least=5, epochs=4)
    _check(made, branch, least=5, epochs=4)
    assert [row[-1] for row in _feed(made, graph, "sold", 3)].count("DELETE") == 15
    assert planned(made, graph, "dear", _forbidden, is_rebased=False) is None, "it is promoted already"
    assert all(each.fingerprint.plan for each in list(made.log(name, "sold").entries())[:1])

    drop(made, name, "dear")
    _maintain(made, spark, name)
    run_epoch(made, spark, name, "4")
    _check(made, graph, least=5, epochs=5)
    assert verify(made, name, spark).problems == ()


CHANGED = {"sold", "described", "by_kind"}


def _sold(least: int, epochs: int) -> list[tuple[int, int, int, float]]:
    """What the pipeline should say, without a line of it."""
    every = [(100 * epoch + n, n % 7, n % 3, float(n)) for epoch in range(epochs) for n in range(21)]
    return [row for row in every if row[3] >= least]


def _by_kind(least: int, epochs: int) -> dict[str, tuple[float, int]]:
    kinds: dict[str, tuple[float, int]] = {}
    for _, item, _, price in _sold(least, epochs):
        kind = "even" if item % 2 == 0 else "odd"
        revenue, number = kinds.get(kind, (0.0, 0))
        kinds[kind] = (revenue + price, number + 1)
    return kinds


def _check(made: Project, graph: Graph, least: int, epochs: int) -> None:
    assert sorted(rows(made, graph, "sold")) == _sold(least, epochs)
    assert sorted(rows(made, graph, "by_kind")) == sorted((kind, *of) for kind, of in _by_kind(least, epochs).items())
    shops = [(shop, sum(price for *_, of, price in _sold(0, epochs) if of == shop)) for shop in range(3)]
    assert sorted(rows(made, graph, "by_shop")) == shops


def _feed(made: Project, graph: Graph, collection: str, epoch: int) -> list[tuple[Any, ...]]:
    table = made.catalog.iceberg(graph.name, collection)
    found = changed_rows(table, epoch, epoch + 1)
    return [(*(row[name] for name in ("k", "price")), "DELETE" if row["_diff"] < 0 else "INSERT") for row in found.to_pylist()]


CUT = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["k"])
    def numbers(epoch):
        rows = [(epoch.lower * 10 + n, n % 3, float(n)) for n in range(10)]
        return epoch.spark.createDataFrame(rows, "k bigint, g bigint, x double")

    @{name}.stage(keys=["k"])
    def large(numbers):
        return numbers.where("k < {most}")

    @{name}.stage(keys=["g"], parts={parts})
    def totals(large):
        return large.groupBy("g").agg(F.sum("x").alias("x"), F.count("*").alias("n"))
"""


def test_a_branch_may_cut_a_stage_otherwise_whatever_that_keeps(
    project: Callable[..., Project], spark: SparkSession, tmp_path: Path
) -> None:
    name = _name("cut")
    made = project(**{name: CUT.format(name=name, most=100, parts=1)})
    for epoch in range(3):
        run_epoch(made, spark, name, str(epoch))
    code = _code(tmp_path, "cut", **{name: CUT.format(name=name, most=25, parts=2)})
    create(made, made.graph(name), "b", 1, code)
    space = f"{name}__b"
    done = [(each.epoch.lower, each.how) for each in _run(made, spark, space) if each.collection == "totals"]
    assert done[0] == (1, "taken"), "so far it is the same"
    assert done[-1] == (2, "computed")
    for epoch in range(3):
        expected = {
            (group, float(sum(k % 10 for k in of)), len(of))
            for group in range(3)
            if (of := [k for k in range(10 * (epoch + 1)) if k < 25 and k % 10 % 3 == group])
        }
        assert set(rows(made, made.graph(space), "totals", str(epoch))) == expected
    assert {part for _, part in _digests(made, space, "totals")} == {0, 1}
    assert verify(made, name, spark).problems == ()
    drop(made, name, "b")
