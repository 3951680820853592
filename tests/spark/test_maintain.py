"""Maintenance on real logs: merged, dropped, removed; every epoch from since on reads as before, and nothing is damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from firnline.runtime.history import runs
from firnline.runtime.maintain import Budget, is_tidy, maintained, planned, undone
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from firnline.tables.trash import Trash, file_key
from tests.spark.running import rows, run_epoch

NAME = f"kept_small_{os.getpid()}"
PIPELINE = """
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
COLLECTIONS = ("numbers", "totals")
NOW = timedelta()


def test_logs_stay_small_and_right(project: Callable[..., Project], spark: SparkSession) -> None:
    made = project(**{NAME: PIPELINE.format(name=NAME)})
    graph = made.graph(NAME)
    seen: dict[tuple[str, int], object] = {}

    def run(epochs: range) -> None:
        for epoch in epochs:
            run_epoch(made, spark, NAME, str(epoch))
            seen.update({(name, epoch): rows(made, graph, name, str(epoch)) for name in COLLECTIONS})

    def check(last: int) -> None:
        for name in COLLECTIONS:
            head = made.log(NAME, name).head()
            assert head is not None
            for epoch in range(max(head.description.since - 1, 0), last + 1):
                assert rows(made, graph, name, str(epoch)) == seen[name, epoch], f"{name} as of {epoch}"
        assert verify(made, NAME).problems == ()

    def maintain(grace: timedelta = NOW, budget: Budget | None = None) -> list[str]:
        done = list(maintained(made, graph, lambda: spark, grace, budget))
        assert [each.error for each in done if each.error] == []
        return [each.step.what for each in done]

    run(range(5))
    before = {name: made.catalog.version(NAME, name) for name in made.catalog.names(NAME)}
    merges = [step for step in planned(made, graph, NOW) if step.what == "merge"]
    assert {step.collection for step in merges} >= set(COLLECTIONS)
    assert all(step.benefit > 0 for step in merges)
    assert {name: made.catalog.version(NAME, name) for name in made.catalog.names(NAME)} == before, "a plan changes nothing"
    assert maintain(budget=Budget.of(seconds=0)) == [], "nothing begins after its time"
    assert maintain(budget=Budget.of(size=0))[:1] != ["merge"], "nor beyond its bytes"
    stored = _data_files(made)
    done = maintain()
    assert done[0] == "merge"
    assert {"expire", "delete", "prune"} <= set(done)
    check(4)
    stood_for = stored - _held(made)
    assert len(_held(made)) < len(stored)
    assert is_tidy(made, graph, NOW)
    assert maintain() == []
    (*_, last) = runs(made, NAME)
    assert last.rewritten > 0
    assert last.freed > 0
    assert {publication.lower for publication in made.ledger.publications(NAME, "totals")} == {
        entry.lower for entry in made.log(NAME, "totals").entries()
    }

    run(range(5, 9))
    layers = len(list(made.log(NAME, "totals").entries()))
    maintain(timedelta(days=1))
    merged = len(list(made.log(NAME, "totals").entries()))
    assert merged < layers
    check(8)
    assert "totals" in {step.collection for step in undone(made, graph)}
    assert len(list(made.log(NAME, "totals").entries())) > merged
    check(8)
    run(range(9, 10))
    maintain()
    check(9)
    assert stood_for
    assert not stood_for & _data_files(made), "they go with the last snapshot that was published before the merge"
    for name in COLLECTIONS:
        _check_nothing_else_is_stored(made, name)


def _data_files(made: Project) -> set[str]:
    """Those that are stored."""
    return {str(path) for name in COLLECTIONS for path in _folder(made, name).rglob("*.parquet")}


def _held(made: Project) -> set[str]:
    """Those that the logs' heads name."""
    tables = ((log, log.load()) for log in (made.log(NAME, name) for name in COLLECTIONS))
    return {file_key(file.path) for log, table in tables if table is not None for file in log.held(table)}


def _check_nothing_else_is_stored(made: Project, name: str) -> None:
    table = made.log(NAME, name).load()
    assert table is not None
    named = Trash(made.catalog).named(table)
    stored = {str(path) for path in _folder(made, name).rglob("*.parquet")}
    assert stored <= named, "a data file that nobody names is gone"
    assert len(list(_folder(made, name).rglob("*.metadata.json"))) <= 40, "older metadata files go, whoever commits"


def _folder(made: Project, name: str) -> Path:
    table = made.log(NAME, name).load()
    assert table is not None
    return Path(file_key(table.location))
