"""A log that is rescaled holds the same rows after every epoch, and goes on: what is read part by part still is, or is not."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.runtime.advance import advance
from firnline.runtime.certificate import certify
from firnline.runtime.lineage import lineage
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.rescale import Rescaled, rescale, rescales
from firnline.runtime.verify import verify
from firnline.tables.log import Log, cut_into
from firnline.world import World, replaced
from tests.oracle.amplab import comparable
from tests.spark.running import rows, run_epoch
from tests.verifying import data_file, local, taken

pytestmark = pytest.mark.spark

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    wide = fl.Pipeline("wide", schedule=1, start=0)

    @wide.source(keys=["id"], partition_by=["page"], parts={visits})
    def visits(epoch):
        n = epoch.lower
        page = "if(id % 17 = 0, null, cast(pmod(id * 7, 40) as string)) page"
        rows = epoch.spark.range(n * 100, n * 100 + 100).selectExpr("id", page, "cast(id % 13 as int) spent", "1L _diff")
        gone = epoch.spark.range((n - 1) * 100, n * 100 - 60).selectExpr("id", page, "cast(id % 13 as int) spent", "-1L _diff")
        return rows.union(gone) if n else rows

    @wide.source(keys=["page"], parts={pages})
    def pages(epoch):
        n = epoch.lower
        rank = "cast(pmod(id * 31, 97) + {{}} as int) rank"
        new = epoch.spark.range(30).selectExpr("cast(id as string) page", rank.format(n), "1L _diff")
        old = epoch.spark.range(30).selectExpr("cast(id as string) page", rank.format(n - 1), "-1L _diff")
        return new.union(old) if n else new

    @wide.stage(keys=["id"], partition_by=["page"], parts={ranked})
    def ranked(visits, pages):
        return visits.join(pages, "page", "left").select("id", "page", "rank", "spent")

    @wide.stage(keys=["page"], parts={totals})
    def totals(ranked):
        return ranked.groupBy("page").agg(F.sum("spent").alias("spent"), F.count("*").alias("visits"))
"""
COLLECTIONS = ("visits", "pages", "ranked", "totals")


class Telling(World):
    """Does something at a point, once."""

    def __init__(self, point: str, do: Callable[[], Any]) -> None:
        super().__init__()
        self.point, self.do = point, do

    def reach(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            self.do()


class KilledError(BaseException):
    """The driver is gone."""


def _kill() -> None:
    raise KilledError


def contents(project: Project, epochs: int) -> dict[str, Any]:
    """Every collection after every epoch, by PyIceberg."""
    graph = project.graph("wide")
    return {f"{each} {epoch}": rows(project, graph, each, str(epoch)) for each in COLLECTIONS for epoch in range(epochs)}


def expected(epochs: int) -> dict[str, Any]:
    """The same, from what the sources deliver."""
    found: dict[str, Any] = {}
    present = set[int]()
    for n in range(epochs):
        present |= set(range(n * 100, n * 100 + 100))
        present -= set(range((n - 1) * 100, n * 100 - 60))
        visits = [(each, None if each % 17 == 0 else str(each * 7 % 40), each % 13) for each in present]
        pages = {str(each): each * 31 % 97 + n for each in range(30)}
        of_page: dict[str | None, list[int]] = defaultdict(list)
        for _, page, spent in visits:
            of_page[page].append(spent)
        found[f"visits {n}"] = comparable(visits)
        found[f"pages {n}"] = comparable(pages.items())
        found[f"ranked {n}"] = comparable((each, page, pages.get(page or ""), spent) for each, page, spent in visits)
        found[f"totals {n}"] = comparable((page, sum(each), len(each)) for page, each in of_page.items())
    return found


def test_rescaled_logs_hold_the_same_rows_and_go_on(
    project: Callable[..., Project], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coded(parts: int, **others: int) -> Project:
        return project(wide=PIPELINE.format(**{**dict.fromkeys(COLLECTIONS, parts), **others}))

    def cut(found: Project, collection: str) -> int:
        table = found.log("wide", collection).load()
        assert table is not None
        return cut_into(table)

    def rescaled(found: Project, collection: str, parts: int | None = None) -> list[Rescaled]:
        planned = rescales(found, found.graph("wide"), collection, parts)
        return [done for each in planned if (done := rescale(found, lambda: spark, each))]

    found = coded(2)
    for epoch in range(2):
        run_epoch(found, spark, "wide", str(epoch))
    assert contents(found, 2) == expected(2)
    hidden = [name for name in sorted(found.catalog.names("wide")) if name.startswith("totals__")]
    assert hidden, "the totals keep their sums"

    # Code first: its runs are refused until the log follows; without a number the code's is taken.
    found = coded(2, visits=8)
    with pytest.raises(FirnlineError, match=r"PLACEMENT_CHANGED.*parts=8.*has 2.*firnline rescale wide\.visits --parts 8"):
        run_epoch(found, spark, "wide", "2")
    (done,) = rescaled(found, "visits")
    assert (done.rescale.before, done.rescale.parts, done.rescale.layers, cut(found, "visits")) == (2, 8, 2, 8)
    assert rescales(found, found.graph("wide"), "visits") == []
    assert contents(found, 2) == expected(2)
    run_epoch(found, spark, "wide", "2")  # the join now reads logs that are cut otherwise than its own

    # A crash in the middle loses nothing that is staged; large layers are written by Spark.
    found = coded(8)
    monkeypatch.setattr("firnline.engine.staging.FEW", 50)
    planned = rescales(found, found.graph("wide"), "ranked")
    with replaced(Telling("rescale.staged", _kill)), pytest.raises(KilledError):
        rescale(found, lambda: spark, planned[-1])
    (again,) = rescaled(found, "ranked")
    assert (again.kept, again.rescale.layers) == (1, 3)
    monkeypatch.undo()

    # What a stage keeps is cut with it.
    assert [each.rescale.collection for each in rescaled(found, "totals")] == [*hidden, "totals"]
    rescaled(found, "pages")
    assert {cut(found, name) for name in (*COLLECTIONS, *hidden)} == {8}
    run_epoch(found, spark, "wide", "3")
    assert contents(found, 4) == expected(4)

    # And down again, while somebody publishes: what it placed by the old number is cut, too, or is not taken.
    graph, epoch = found.graph("wide"), found.graph("wide").schedule.epoch_at(4)
    planned = rescales(found, graph, "visits", 4)

    def publish() -> None:
        list(advance(found, found.declared("wide"), spark, "visits", epoch))

    with replaced(Telling("rescale.staged", publish)):
        down = rescale(found, lambda: spark, planned[0])
    assert down is not None
    assert cut(found, "visits") == 4
    head = found.log("wide", "visits").head()
    assert head is not None
    assert head.description.upper == 5

    verdicts: list[Verdict] = []
    publishing = Log.publish

    def noted(*arguments: Any, **options: Any) -> Verdict:
        verdicts.append(publishing(*arguments, **options))
        return verdicts[-1]

    monkeypatch.setattr(Log, "publish", noted)
    late = rescales(found, graph, "pages", 4)
    telling = Telling("stage.audited", lambda: rescale(found, lambda: spark, late[0]))
    with replaced(telling), pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
        list(advance(found, found.declared("wide"), spark, "pages", epoch))
    monkeypatch.undo()
    assert verdicts == [Verdict.MOVED]
    with pytest.raises(FirnlineError, match=r"PLACEMENT_CHANGED.*parts=8.*has 4"):
        list(advance(found, found.declared("wide"), spark, "pages", epoch))

    # All at four.
    found = coded(4)
    for name in ("ranked", "totals"):
        rescaled(found, name)
    run_epoch(found, spark, "wide", "4")
    assert contents(found, 5) == expected(5)
    whole = verify(found, "wide", spark)
    assert (whole.problems, whole.not_added, whole.gaps) == ((), (), ())

    # Lost parts come back, of epochs from before and after; and replays agree.
    for name, lost in (("visits", 1), ("ranked", 0), ("ranked", 4), (hidden[0], 2), ("totals", 3)):
        log = taken(found, "wide", name)
        part = next(of for epoch, of in log.cells() if epoch == lost)
        local(data_file(log, lost, part).file.path).unlink()
    assert repair(found, lambda: spark, "wide").is_whole
    assert contents(found, 5) == expected(5)
    replays = [*certify(found, spark, "wide.ranked"), *certify(found, spark, "wide.totals", "1")]
    assert len(replays) == 7, "five epochs, and one with what it keeps"
    assert [each for each in replays if each.difference] == []
    assert {each.skipped for each in replays} == {""}

    # Lineage speaks of parts as they are.
    one = lineage(found, found.graph("wide"), "ranked", "4", part=3)
    assert {node.collection: node.of_parts for node in one.nodes} == {"ranked": (3,), "visits": (3,), "pages": (3,)}
    rescaled(found, "visits", 2)
    one = lineage(found, found.graph("wide"), "ranked", "4", part=3)
    assert {node.collection: node.of_parts for node in one.nodes} == {"ranked": (3,), "visits": (1,), "pages": (3,)}
    assert found.flusher.drain(30)
    parts = {each.part for each in found.ledger.parts("wide", "visits")}
    assert parts == {0, 1}

    # What is damaged is not rescaled.
    log = taken(found, "wide", "pages")
    file = local(data_file(log, 0, log.cells()[0][1]).file.path)
    shutil.move(file, file.with_suffix(".away"))
    with pytest.raises(FirnlineError, match="LOG_DAMAGED"):
        rescales(found, found.graph("wide"), "pages", 16)
    for parts_asked, code in ((3, "BAD_OPTION"), (0, "BAD_OPTION")):
        with pytest.raises(FirnlineError, match=code):
            rescales(found, found.graph("wide"), "visits", parts_asked)
