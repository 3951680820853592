"""Rows that are lost for good are left out and said to be missing; epochs go on; back again, they arrive everywhere."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from pyspark.sql.connect.session import SparkSession

import firnline as fl
from firnline.runtime.project import Project
from firnline.runtime.repair import Repaired, repair
from firnline.runtime.status import status
from firnline.runtime.verify import verify
from tests.spark.running import rows, run_epoch
from tests.verifying import data_file, local, taken

MakeProject = Callable[..., Project]

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["id"], partition_by=["page"], parts=8, on_loss="gap")
    def visits(epoch):
        return epoch.files("landing/{{epoch}}.csv", format="csv", schema="id int, page int, seconds int")

    @{name}.source(keys=["page"], parts=8)
    def pages(epoch):
        first = [(n, f"page {{n}}") for n in range(30)]
        return epoch.spark.createDataFrame(first if epoch.lower == 0 else [(30 + epoch.lower, "late")], "page int, title string")

    @{name}.stage(keys=["id"], partition_by=["page"], parts=8)
    def seen(visits, pages):
        return visits.join(pages, "page").select("id", "page", "title", "seconds")

    @{name}.stage(keys=["page"], parts=8)
    def longest(visits):
        return visits.groupBy("page").agg(F.max("seconds").alias("longest"), F.min("id").alias("first"))

    @{name}.stage(keys=["title"], parts=2)
    def spent(seen):
        return seen.groupBy("title").agg(F.sum("seconds").alias("total"), F.count("*").alias("times"))

    @{name}.stage(keys=["page"])
    def unseen(pages, visits):
        return pages.join(visits, "page", "left_anti")
{more}
"""
ORACLE = {
    "seen": "SELECT id, page, title, seconds FROM visits JOIN pages USING (page)",
    "longest": "SELECT page, max(seconds), min(id) FROM visits GROUP BY page",
    "spent": "SELECT title, sum(seconds)::BIGINT, count(*) FROM visits JOIN pages USING (page) GROUP BY title",
    "unseen": "SELECT page, title FROM pages WHERE page NOT IN (SELECT page FROM visits)",
}


def visits(epoch: int) -> list[tuple[int, int, int]]:
    return [(epoch * 1000 + n, (n * 7 + epoch) % 37, (n * 13) % 11 + epoch) for n in range(60)]


def made(make: MakeProject, name: str, more: str = "") -> Project:
    project = make(**{name: PIPELINE.format(name=name, more=more)})
    folder = project.settings.root / "landing"
    folder.mkdir()
    for epoch in range(8):
        lines = [",".join(map(str, visit)) for visit in visits(epoch)]
        (folder / f"{epoch}.csv").write_text("\n".join(["id,page,seconds", *lines, ""]))
    return project


def lose_for_good(project: Project, name: str, epoch: int, part: int) -> Callable[[], None]:
    """Lose a part of the source and the file that it came from; what brings the latter back."""
    local(data_file(taken(project, name, "visits"), epoch, part).file.path).unlink()
    file = project.settings.root / "landing" / f"{epoch}.csv"
    away = file.rename(file.with_suffix(".away"))
    return lambda: away.rename(file) and None


def mend(project: Project, spark: SparkSession, name: str) -> Repaired:
    return repair(project, lambda: spark, name)


def complete(project: Project, name: str) -> dict[str, str]:
    return {line.collection: line.completeness for line in status(project, project.graph(name)).collections}


def held(project: Project, name: str) -> dict[str, Counter[Any]]:
    graph = project.graph(name)
    return {each: Counter(rows(project, graph, each)) for each in ORACLE}


def from_scratch(upto: int, without: Callable[[int, tuple[int, int, int]], bool] = lambda *_: False) -> dict[str, Counter[Any]]:
    """All collections by DuckDB, from the rows of the files."""
    found = [visit for epoch in range(upto) for visit in visits(epoch) if not without(epoch, visit)]
    pages = [(n, f"page {n}") for n in range(30)] + [(30 + n, "late") for n in range(1, upto)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits (id INT, page INT, seconds INT)")
        connection.execute("CREATE TABLE pages (page INT, title TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", found)
        connection.executemany("INSERT INTO pages VALUES (?, ?)", pages)
        return {name: Counter(connection.execute(query).fetchall()) for name, query in ORACLE.items()}


def test_a_part_that_is_lost_for_good_is_a_gap_until_it_comes_back(
    project: MakeProject, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    name = "gapped"
    made_ = made(project, name)
    for label in ("0", "1", "2"):
        run_epoch(made_, spark, name, label)
    assert held(made_, name) == from_scratch(3)
    lost = _ids(made_, name, 1, 3)
    bring_back = lose_for_good(made_, name, 1, 3)

    found = mend(made_, spark, name)
    assert found.is_whole, found
    (done,) = found.done
    assert done.rows_left_out == done.rows_lost == len(lost) > 0
    ((_, gap),) = found.gaps
    assert (gap.collection, gap.owner) == ("visits", f"{name}.visits")
    assert "1.csv is gone" in gap.why
    assert complete(made_, name) == {
        "visits": "7/8",
        **dict.fromkeys(("pages", "seen", "longest"), "8/8"),
        "spent": "2/2",
        "unseen": "1/1",
    }
    after = verify(made_, name, spark)
    assert after.problems == (), "a recorded gap is no damage"
    assert len(after.gaps) == 1
    assert held(made_, name) == from_scratch(3), "what was computed from the rows keeps them until its next epoch"

    run_epoch(made_, spark, name, "3")
    run_epoch(made_, spark, name, "4")
    assert held(made_, name) == from_scratch(5, lambda epoch, visit: visit[0] in lost), "exactly what comes of what is left"
    assert complete(made_, name) == {
        "visits": "7/8", "pages": "8/8", "seen": "7/8", "longest": "7/8", "spent": "7/8", "unseen": "7/8"
    }  # fmt: skip
    with caplog.at_level(logging.WARNING):
        fl.read(f"{name}.spent", session=spark, project=made_)
    assert "7/8" in caplog.text
    told = fl.completeness(f"{name}.spent", project=made_)
    assert (str(told), told.missing[0].collection, told.missing[0].parts) == ("7/8", "visits", (3,))
    still = mend(made_, spark, name)
    assert (still.done, len(still.gaps), still.is_whole) == ((), 1, True), "tried again, in vain"

    bring_back()
    back = mend(made_, spark, name)
    assert [(each.step.how, each.rows_lost) for each in back.done] == [("retry", len(lost))]
    assert back.gaps == ()
    assert complete(made_, name)["visits"] == "8/8"
    assert complete(made_, name)["spent"] == "7/8", "its correction comes with the next epoch"
    run_epoch(made_, spark, name, "5")
    assert held(made_, name) == from_scratch(6)
    assert set(complete(made_, name).values()) == {"8/8", "2/2", "1/1"}
    assert made_.control(name).gaps().as_json() == {"gaps": [], "corrections": {}}
    run_epoch(made_, spark, name, "6")
    assert held(made_, name) == from_scratch(7)
    assert verify(made_, name, spark).problems == ()


def _ids(project: Project, name: str, epoch: int, part: int) -> set[int]:
    found = project.catalog.iceberg(name, "visits").scan(row_filter=f"_epoch == {epoch} and _part == {part}").to_arrow()
    return set(found["id"].to_pylist())
