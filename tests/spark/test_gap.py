"""Rows that are lost for good are left out and said to be missing; epochs go on; back again, they arrive everywhere."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql.connect.session import SparkSession

import firnline as fl
from firnline.runtime.certificate import certify
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.repair import Repaired, repair
from firnline.runtime.rescale import rescales
from firnline.runtime.rewind import rewind
from firnline.runtime.status import status
from firnline.runtime.verify import verify
from firnline.world import replaced
from tests.happening import At, Killed, die
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
    path = local(data_file(taken(made_, name, "longest"), 3, 3).file.path)
    path.unlink()
    assert mend(made_, spark, name).is_whole, "an epoch that was a correction is replayed as one"
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


STAGES = """
    import firnline as fl
    from pyspark.sql import functions as F

    owned = fl.Pipeline("owned", schedule=1, start=0, keep="1 epochs")

    @owned.source(keys=["id"], parts=4, on_loss="gap")
    def orders(epoch):
        rows = [(epoch.lower * 100 + n, n % 5, n) for n in range(40)]
        return epoch.spark.createDataFrame(rows, "id int, who int, amount int")

    @owned.stage(keys=["who"], parts=4, on_loss="gap", refresh="full")
    def totals(orders):
        return orders.groupBy("who").agg(F.sum("amount").alias("total"))

    @owned.stage(keys=["id"], parts=4, on_loss="gap", checks=["orders_are_small"])
    def big(orders):
        return orders.where("amount > 3")

    @owned.stage(keys=["who"], parts=4, on_loss="gap")
    def counts(orders):
        return orders.groupBy("who").agg(F.max("id").alias("last"), F.count("*").alias("orders"))

    @owned.stage(keys=["id"], refresh="full", checks=[fl.check("begins_with_nought", on="state")])
    def copied(orders):
        return orders.select("id", "amount")

    @owned.stage(keys=["total"])
    def sums(totals):
        return totals.groupBy("total").agg(F.count("*").alias("people"))
"""


def expect(project: Project, most: int) -> None:
    between = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "max_value": most}}
    folder = project.settings.root / "include" / "expectations"
    folder.mkdir(exist_ok=True)
    (folder / "orders_are_small.json").write_text(json.dumps({"name": "orders_are_small", "expectations": [between]}))
    first = {"type": "expect_column_min_to_be_between", "kwargs": {"column": "id", "max_value": 0}}
    (folder / "begins_with_nought.json").write_text(json.dumps({"name": "begins_with_nought", "expectations": [first]}))


def owned(epochs: int) -> dict[str, Counter[Any]]:
    """What the collections hold, by a computation that shares nothing with ours."""
    orders = [(epoch * 100 + n, n % 5, n) for epoch in range(epochs) for n in range(40)]
    totals = Counter[int]()
    last, counts = dict[int, int](), Counter[int]()
    for id_, who, amount in orders:
        totals[who] += amount
        last[who] = id_
        counts[who] += 1
    return {
        "orders": Counter(orders),
        "totals": Counter(totals.items()),
        "big": Counter(order for order in orders if order[2] > 3),
        "counts": Counter((who, last[who], many) for who, many in counts.items()),
        "copied": Counter((order[0], order[2]) for order in orders),
        "sums": Counter(Counter(totals.values()).items()),
    }


def test_stages_make_their_gaps_good_files_that_turn_up_are_named_again_and_checks_are_asked_again(
    project: MakeProject, spark: SparkSession
) -> None:
    made_ = project(owned=STAGES)
    expect(made_, 100)
    graph = made_.graph("owned")

    def holds(epochs: int) -> bool:
        return {name: Counter(rows(made_, graph, name)) for name in owned(0)} == owned(epochs)

    for label in ("0", "1"):
        run_epoch(made_, spark, "owned", label)

    # What is computed from a log's own rows comes back after these, and checks of the state see them.
    for cell in taken(made_, "owned", "copied").cells():
        local(data_file(taken(made_, "owned", "copied"), *cell).file.path).unlink()
    found = mend(made_, spark, "owned")
    assert found.is_whole, found
    assert holds(2)

    # A recovered output that does not meet its expectation, which is stricter by now, is not put back.
    expect(made_, 20)
    cells = [cell for cell in taken(made_, "owned", "big").cells() if cell[0] == 1]
    local(data_file(taken(made_, "owned", "big"), *cells[0]).file.path).unlink()
    head = made_.log("owned", "big").head()
    (failed,) = mend(made_, spark, "owned").failed
    assert (failed.collection, failed.error.code) == ("big", "CHECK_FAILED")
    assert "'orders_are_small' on the delta" in failed.error.what
    assert "owned.big at 1" in failed.error.what
    assert made_.log("owned", "big").head() == head
    (kept,) = [each for each in made_.check_results("owned").last() if not each.success]
    assert (kept.collection, kept.lower) == ("big", 1)
    assert kept.rows == 36, "asked of the whole epoch, not of what was lost"
    expect(made_, 100)
    assert mend(made_, spark, "owned").is_whole
    assert verify(made_, "owned", spark).problems == ()

    # Files of a source that turn up again are named again, unless they are not what they were.
    away = []
    for part in (0, 1):
        path = local(data_file(taken(made_, "owned", "orders"), 1, part).file.path)
        away.append((path, Path(shutil.move(path, path.with_suffix(".away")))))
    module = made_.settings.root / "include" / "pipelines" / "owned.py"
    text = module.read_text()
    module.write_text(text.replace("n % 5, n)", "n % 5, n + 1)"))  # so that it cannot be replayed
    assert len(mend(made_, spark, "owned").gaps) == 1
    shutil.copy(away[0][1], away[0][0])
    with replaced(At("repair.committed", die)), pytest.raises(Killed):
        mend(made_, spark, "owned")
    assert mend(made_, spark, "owned").gaps[0][1].parts() == {1}, "the rows were back, and now the gap ledger knows it"
    shutil.copy(away[0][1], away[1][0])
    assert mend(made_, spark, "owned").gaps[0][1].parts() == {1}, "another file's rows are no rows of this one"
    shutil.copy(away[1][1], away[1][0])
    assert mend(made_, spark, "owned").gaps == ()
    module.write_text(text)
    run_epoch(made_, spark, "owned", "2")
    assert holds(3)
    assert made_.control("owned").gaps().gaps == ()

    # What a stage lost comes back with its next epoch, computed from its whole inputs.
    for name in ("totals", "counts"):
        lost = next(cell for cell in taken(made_, "owned", name).cells() if cell[0] == 2)
        local(data_file(taken(made_, "owned", name), *lost).file.path).unlink()
    module.write_text(text.replace('F.sum("amount")', '(F.sum("amount") + 1)').replace('F.max("id")', '(F.max("id") + 1)'))
    assert {gap.collection for _, gap in mend(made_, spark, "owned").gaps} == {"totals", "counts"}
    module.write_text(text)
    run_epoch(made_, spark, "owned", "3")
    assert holds(4)
    assert [gap.made_good for _, gap in mend(made_, spark, "owned").gaps] == [4, 4]
    again = certify(made_, spark, "owned.counts", "3")
    assert all(each.difference is None for each in again), "it was a correction, and is no proof of anything"
    for cell in taken(made_, "owned", "counts").cells():
        if cell[0] == 3:
            local(data_file(taken(made_, "owned", "counts"), *cell).file.path).unlink()
    found = mend(made_, spark, "owned")
    assert [each.step.collection for each in found.done] == ["counts"], "the correction itself comes back"
    assert found.done[0].rows_left_out == 0
    assert holds(4)
    assert [str(fl.completeness(f"owned.{name}", project=made_)) for name in ("totals", "sums")] == ["4/4", "1/1"]
    assert not fl.completeness("owned.totals", as_of="2", project=made_).is_whole
    run_epoch(made_, spark, "owned", "4")
    assert holds(5)
    assert verify(made_, "owned", spark).problems == ()

    # A rewind takes the correction out, and the next epoch is one again; old rows go when their epochs are merged.
    rewind(made_, graph, 3, "totals", "ana")
    for label in ("3", "4", "5"):
        run_epoch(made_, spark, "owned", label)
    assert holds(6)
    assert {gap.made_good for gap in made_.control("owned").gaps().gaps} == {4}
    with pytest.raises(fl.FirnlineError, match="LOG_DAMAGED"):
        rescales(made_, graph, "counts", 2)
    assert [each.error for each in maintained(made_, graph, lambda: spark, timedelta()) if each.error] == []
    assert made_.control("owned").gaps().gaps == ()
    assert holds(6)
    assert verify(made_, "owned", spark).problems == ()
    assert rescales(made_, graph, "counts", 2)


def _ids(project: Project, name: str, epoch: int, part: int) -> set[int]:
    found = project.catalog.iceberg(name, "visits").scan(row_filter=f"_epoch == {epoch} and _part == {part}").to_arrow()
    return set(found["id"].to_pylist())
