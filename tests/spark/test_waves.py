"""Epochs that are too much work to lose are computed in waves; a retry keeps those that are staged, and the rows are the same."""

from __future__ import annotations

import logging
from collections.abc import Callable

import duckdb
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.model.epoch import Epoch
from firnline.runtime import waves
from firnline.runtime.advance import advance
from firnline.runtime.project import Project
from firnline.tables.log import WAVE
from firnline.world import World, replaced
from tests.spark.running import rows, run_epoch

pytestmark = pytest.mark.spark

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, recovery_budget="0.001s")

    @{name}.source(keys=["id"], partition_by=["page"], parts=4)
    def visits(epoch):
        n = epoch.lower
        rows = epoch.spark.range(n * 400, n * 400 + 400).selectExpr(
            "id", "cast(pmod(id * 7, 50) as string) page", "cast(id % 13 as int) spent", "1L _diff")
        gone = epoch.spark.range((n - 1) * 400, (n - 1) * 400 + 100).selectExpr(
            "id", "cast(pmod(id * 7, 50) as string) page", "cast(id % 13 as int) spent", "-1L _diff")
        return rows.union(gone) if n else rows

    @{name}.source(keys=["page"], parts=4)
    def pages(epoch):
        n = epoch.lower
        rank = "cast(pmod(id * 31, 97) + {{}} as int) rank"
        new = epoch.spark.range(50).selectExpr("cast(id as string) page", rank.format(n), "1L _diff")
        old = epoch.spark.range(50).selectExpr("cast(id as string) page", rank.format(n - 1), "-1L _diff")
        return new.union(old) if n else new

    @{name}.stage(keys=["page"], parts=4)
    def longest(visits):
        return visits.groupBy("page").agg(F.max("spent").alias("longest"), F.countDistinct("spent").alias("kinds"))

    @{name}.stage(keys=["id"])
    def ranked(visits, pages):
        return visits.join(pages, "page").select("id", "rank", "spent")

    @{name}.stage(keys=["spent"])
    def by_time(visits, pages):
        return visits.join(pages, "page").groupBy("spent").agg(F.sum("rank").alias("ranks"), F.count("*").alias("visits"))
"""
FORMS = {"longest": "parts", "ranked": "chunks", "by_time": "sums"}


@pytest.fixture
def cut_everything(monkeypatch: pytest.MonkeyPatch) -> list[waves.Cut]:
    """All epochs are much work; how they were cut."""
    cuts = []
    cut_of = waves.cut_of

    def noted(*arguments: object, **options: object) -> waves.Cut | None:
        found = cut_of(*arguments, **options)  # type: ignore[arg-type]
        cuts.extend([found] if found else [])
        return found

    monkeypatch.setattr("firnline.runtime.waves.FEW", 60)
    monkeypatch.setattr("firnline.runtime.derived.cut_of", noted)
    return cuts


class Killed(BaseException):
    """The driver is gone."""


class KillAt(World):
    """A world that ends when a point is reached for the nth time."""

    def __init__(self, point: str, number: int) -> None:
        super().__init__()
        self._point, self._left = point, number

    def reach(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                raise Killed(point)


def expected(epochs: int) -> dict[str, list[tuple[object, ...]]]:
    """What DuckDB makes of the same deliveries."""
    database = duckdb.connect()
    last = epochs - 1
    database.execute(f"""
        create table visits as select i as id, ((i * 7) % 50)::varchar as page, (i % 13)::int as spent
          from range({epochs * 400}) t(i) where not (i < {last * 400} and i % 400 < 100);
        create table pages as select i::varchar as page, ((i * 31) % 97 + {last})::int as rank from range(50) t(i)""")
    asked = {
        "longest": "select page, max(spent), count(distinct spent) from visits group by page",
        "ranked": "select id, rank, spent from visits join pages using (page)",
        "by_time": "select spent, sum(rank)::bigint, count(*) from visits join pages using (page) group by spent",
    }
    return {name: sorted(database.execute(query).fetchall()) for name, query in asked.items()}


def found(made: Project, name: str) -> dict[str, list[tuple[object, ...]]]:
    graph = made.graph(name)
    return {stage: sorted(rows(made, graph, stage)) for stage in FORMS}


def advance_one(made: Project, spark: SparkSession, name: str, collection: str) -> None:
    list(advance(made, made.declared(name), spark, collection, Epoch(1, 2)))


@pytest.mark.nightly
def test_waves_of_every_form_add_up_to_the_same_rows(
    project: Callable[..., Project], spark: SparkSession, cut_everything: list[waves.Cut], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(waved=PIPELINE.format(name="waved"))
    for epoch in range(3):
        run_epoch(made, spark, "waved", str(epoch))
        assert found(made, "waved") == expected(epoch + 1)
    monkeypatch.setattr("firnline.runtime.derived.cut_of", lambda *_, **__: None)
    at_once = project(at_once=PIPELINE.format(name="at_once"))
    for epoch in range(3):
        run_epoch(at_once, spark, "at_once", str(epoch))
    for stage in FORMS:
        logs = made.log("waved", stage), at_once.log("at_once", stage)
        one, other = ([log.sidecar(entry).digests for entry in log.entries()] for log in logs)
        assert one == other, "the deltas are the same, to the row"
    assert {cut.by for cut in cut_everything} == {"parts", "chunks", "sums"}
    assert all(cut.count > 1 for cut in cut_everything)
    for stage in made.catalog.names("waved"):
        table = made.log("waved", stage).load() if not stage.startswith("_") else None
        assert table is None or not [each for each in table.snapshots.values() if WAVE in each.summary], "waves are swept up"


@pytest.mark.parametrize(("stage", "done"), [("longest", 1), ("ranked", 2), ("by_time", 3)])
def test_a_retry_keeps_the_waves_that_were_staged(
    stage: str,
    done: int,
    project: Callable[..., Project],
    spark: SparkSession,
    cut_everything: list[waves.Cut],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"kept_{stage}_{done}"
    made = project(**{name: PIPELINE.format(name=name)})
    run_epoch(made, spark, name, "0")
    for each in ("visits", "pages"):
        advance_one(made, spark, name, each)
    with replaced(KillAt("wave.staged", done)), pytest.raises(Killed):
        advance_one(made, spark, name, stage)
    cut_everything.clear()
    monkeypatch.setattr("firnline.runtime.waves.wave_count", lambda *_: 1)  # as after merges of its past it may be guessed
    with caplog.at_level(logging.INFO):
        advance_one(made, spark, name, stage)
    (cut,) = cut_everything
    assert cut.by == FORMS[stage]
    assert f"{done} of {cut.count} waves kept" in caplog.text
    assert caplog.text.count("is staged") == cut.count - done
    run_epoch(made, spark, name, "1")
    assert found(made, name) == expected(2)
