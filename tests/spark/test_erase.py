"""Rows are forgotten on real Spark and Iceberg, with all that came of them, and epochs go on as if they had never come."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.model.hold import Hold
from firnline.runtime.approving import approve
from firnline.runtime.erase import Report, erase, planned
from firnline.runtime.maintain import tidied
from firnline.runtime.merge import Merge, merge
from firnline.runtime.project import EXPECTATIONS, Project
from firnline.runtime.renaming import keep_all
from firnline.runtime.replicate import replicate
from firnline.runtime.retiring import retire
from firnline.runtime.safepoint import hold, release
from firnline.runtime.verify import verify
from firnline.tables.avro import unpacked
from firnline.tables.failures import Failure
from firnline.tables.trash import Trash, file_key
from firnline.world import World, replaced
from tests.spark.running import rows, run_epoch

MakeProject = Callable[..., Project]

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    forgets = fl.Pipeline("forgets", schedule=1, start=0, replicas=["PLACE"])

    @forgets.source(keys=["id"], partition_by=["page"], parts=2, checks=[fl.check("amounts", blocking=False)])
    def visits(epoch):
        epoch.logged("who is watched", lambda: "Zoë Ångström")
        schema = "diff int, id int, who string, page int, amount double"
        changes = epoch.new_files("data/*.csv", format="csv", schema=schema)
        return changes.withColumnRenamed("diff", "_diff")

    @forgets.source(keys=["page"])
    def pages(epoch):
        return epoch.spark.createDataFrame([(epoch.lower, f"page {epoch.lower}")], "page int, title string")

    @forgets.stage(keys=["id"], partition_by=["page"], parts=2, publish="table")
    def seen(visits, pages):
        return visits.join(pages, "page").select("id", "page", "title", "who", "amount")

    @forgets.stage(keys=["who"])
    def spent(seen):
        return seen.groupBy("who").agg(F.sum("amount").alias("total"), F.count("*").alias("times"))

    @forgets.stage(keys=["id"])
    def best(visits):
        return visits.orderBy(F.desc("amount"), "id").limit(2).select("id", "who", "amount")
"""
WHO = "Zoë Ångström"
CONDITION = "who = 'Zoë Ångström' AND id < 1000"
Row = tuple[int, str | None, int, float]

# By epoch: (weight, id, who, page, amount). Hers come, change, go and come again; some are the best, one is the worst.
CHANGES: dict[int, list[tuple[int, int, str | None, int, float]]] = {
    0: [(1, 1, WHO, 0, 99.5), (1, 2, "bob", 0, 5.25), (1, 3, None, 0, 0.1), (1, 4, " ", 0, 0.2), (1, 5, WHO, 1, -7.0)],
    1: [(-1, 1, WHO, 0, 99.5), (1, 1, WHO, 0, 98.0), (1, 6, "Ünal", 1, 3.5), (1, 7, WHO, 1, 0.3), (-1, 2, "bob", 0, 5.25)],
    2: [(-1, 5, WHO, 1, -7.0), (1, 8, WHO, 2, 55.0), (1, 9, "bob", 2, 1.5), (1, 10, WHO, 4, 12.0)],
    3: [(1, 11, "bob", 1, 40.0), (-1, 6, "Ünal", 1, 3.5), (1, 12, "Ünal", 0, 2.5)],
}


def put(project: Project, epoch: int) -> None:
    folder = project.settings.root / "data"
    folder.mkdir(exist_ok=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in CHANGES[epoch]]
    malformed = [f"1,twelve,{WHO},0,1.0"] if epoch == 0 else []
    (folder / f"{epoch}.csv").write_text("\n".join(["diff,id,who,page,amount", *lines, *malformed, ""]), encoding="utf-8")


def expected(upto: int) -> dict[str, list[tuple[Any, ...]]]:
    """Everything after an epoch, from her rows left out of what came."""
    state: Counter[Row] = Counter()
    for epoch in range(upto + 1):
        for weight, *row in CHANGES[epoch]:
            if row[1] != WHO:
                state[(row[0], row[1], row[2], row[3])] += weight
    visits = [row for row, weight in state.items() if weight]
    titles = {page: f"page {page}" for page in range(upto + 1)}
    seen = [(number, page, titles[page], who, amount) for number, who, page, amount in visits if page in titles]
    amounts: dict[str | None, list[float]] = defaultdict(list)
    for _, _, _, who, amount in seen:
        amounts[who].append(amount)
    best = sorted(visits, key=lambda row: (-row[3], row[0]))[:2]
    return {
        "visits": visits,
        "pages": list(titles.items()),
        "seen": seen,
        "spent": [(who, sum(each), len(each)) for who, each in amounts.items()],
        "best": [(number, who, amount) for number, who, _, amount in best],
    }


def assert_is_expected(project: Project, upto: int) -> None:
    graph = project.graph("forgets")
    for name, wanted in expected(upto).items():
        assert Counter(map(_settled, rows(project, graph, name))) == Counter(map(_settled, wanted)), name


def _settled(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


def holding(folder: Path, text: str) -> list[Path]:
    """The files in which a text is, packed or not, or of which a part is: Iceberg's bounds are cut. Databases are read as bytes,
    with the pages that they do not use any more."""
    forms = (text.encode(), text[:8].encode(), json.dumps(text)[1:-1].encode())
    found = []
    for path in (path for path in (folder, *folder.rglob("*")) if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".avro":
            content = unpacked(content)
        if path.name.endswith(".gz.metadata.json"):
            content = gzip.decompress(content)
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            content += repr(file.read().to_pylist()).encode() + repr(file.metadata.to_dict()).encode()
        if any(form in content for form in forms):
            found.append(path)
    return found


KINDS = {
    "rows": r"/visits/data/.*\.parquet",
    "rows of a stage": r"/forgets/seen/data/.*\.parquet",
    "rows of a plain table": r"/forgets__tables/seen/data/.*\.parquet",
    "sums that a stage keeps": r"/spent__\w+/data/.*\.parquet",
    "malformed records": r"/visits__quarantine/data/.*\.parquet",
    "bounds in manifests": r"/visits/metadata/.*\.avro",
    "sidecars": r"/visits/firnline/\w+\.json",
    "determinants": r"/_determinants/visits/.*",
    "results of checks": r"/_checks/.*",
    "failures": r"/_failures/seen/.*",
}


def trashed(project: Project, name: str) -> set[str]:
    """The files of a log in its trash."""
    table, trash = project.log("forgets", name).load(), Trash(project.catalog)
    assert table is not None
    named = trash.named(table)
    return {file_key(piece.path) for record in trash.records(table) for piece in trash.contents(table, record, named)}


def test_forgotten_rows_are_nowhere_and_epochs_go_on_as_if_they_had_never_come(
    project: MakeProject, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    made = project("quarantine_fraction = 0.5\n", forgets=PIPELINE.replace("PLACE", f"file://{place}"))
    suite = made.settings.root / EXPECTATIONS / "amounts.json"
    suite.parent.mkdir(exist_ok=True)
    positive = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
    suite.write_text(json.dumps({"name": "amounts", "expectations": [positive]}))
    for epoch in range(3):
        put(made, epoch)
        run_epoch(made, spark, "forgets", str(epoch))
    graph = made.graph("forgets")
    assert not replicate(made, graph).failed
    for name in ("visits", "spent"):
        assert merge(made, graph, spark, Merge("forgets", name, 0, 2, 2, 0, 0, 0.0), 2) is not None
        made.log("forgets", name).expire(timedelta(0))
    made.failures("forgets").note(Failure("seen", 3, 4, "a", "STAGE_FAILED", f"no page for {WHO}", False, "2026-01-01"))

    def kept() -> list[str]:
        """Where she is in what the project keeps; the warehouse has other pipelines, too."""
        work, warehouse = made.settings.work, Path(made.settings.warehouse.removeprefix("file://"))
        assert {each.name for each in work.iterdir()} >= {"catalog.db", "ledger.db", warehouse.name}
        folders = [
            warehouse / "forgets",
            warehouse / "forgets__tables",
            *(each for each in work.iterdir() if each not in (warehouse, work / "jars")),
        ]
        return [str(path) for folder in folders for path in holding(folder, WHO)]

    before = kept()
    for kind, pattern in KINDS.items():
        assert any(re.search(pattern, path) for path in before), kind
    assert trashed(made, "visits") & set(before), "the trash holds rows, too"
    copied = list(map(str, holding(place, WHO)))
    for kind in ("rows", "rows of a stage", "malformed records", "bounds in manifests", "sidecars"):
        assert any(re.search(KINDS[kind], path) for path in copied), kind

    def erased(*, quarantine: bool) -> Report:
        return erase(made, spark, graph, "visits", CONDITION, quarantine=quarantine)

    would = planned(made, spark, graph, "visits", CONDITION, quarantine=True)
    assert (would.matching, would.quarantined) == ({"1": 3, "2": 3}, 1)
    assert {each.collection.partition("__")[0] for each in would.logs} == {"visits", "seen", "spent", "best"}
    assert kept() == before, "nothing is done yet"

    first = erased(quarantine=False)
    assert [left.where for left in first.proof.left] == ["forgets.visits__quarantine"]
    assert {each.how for each in first.logs} == {"rewritten", "rebuilt"}
    assert next(each.rows_erased for each in first.logs if each.collection == "visits") == 6
    assert_is_expected(made, 2)
    with replaced(Interrupted({"erase.removed": (0, killed)})), pytest.raises(Killed):
        erased(quarantine=True)
    second = erased(quarantine=True)
    assert second.proof.is_complete, second.proof.left
    assert {each.collection: each.how for each in second.logs}.pop("visits__quarantine") == "dropped"
    assert {each.how for each in second.logs} == {"kept", "dropped"}
    assert kept() == []
    assert holding(place, WHO) == []
    assert_is_expected(made, 2)
    assert not verify(made).problems
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        rows(made, graph, "visits", "0")

    put(made, 3)
    run_epoch(made, spark, "forgets", "3")
    assert_is_expected(made, 3)
    assert not replicate(made, graph).failed
    assert any(path.suffix == ".parquet" for path in place.rglob("visits/**/*"))
    assert len(list(made.log("forgets", "spent").entries())) == 2
    assert not verify(made).problems


SMALL = """
    import firnline as fl
    from pyspark.sql import functions as F

    small = fl.Pipeline("small", schedule=1, start=0)

    @small.source(keys=["id"])
    def items(epoch):
        rows = [(10 * epoch.lower + n, f"customer {n}", n) for n in range(3)]
        return epoch.spark.createDataFrame(rows, "id int, who string, n int")

    @small.stage(keys=["who"])
    def sums(items):
        return items.groupBy("who").agg(F.sum("n").alias("n"), F.count("*").alias("times"))

    @small.stage(keys=["times"])
    def often(sums):
        return sums.groupBy("times").agg(F.count("*").alias("many"))
"""


class Killed(BaseException):
    """What no code that is tested here knows of."""


class Interrupted(World):
    """The real world, in which something happens the first time that points are reached, each after so many passes."""

    def __init__(self, happening: dict[str, tuple[int, Callable[[], None]]]) -> None:
        super().__init__()
        self.happening = dict(happening)

    def reach(self, point: str) -> None:
        passes, happen = self.happening.pop(point, (0, lambda: None))
        if passes:
            self.happening[point] = passes - 1, happen
        else:
            happen()


def killed() -> None:
    raise Killed


def test_whoever_dies_erases_again_and_epochs_may_come_between(project: MakeProject, spark: SparkSession) -> None:
    made = project(small=SMALL)
    graph = made.graph("small")
    for epoch in ("0", "1"):
        run_epoch(made, spark, "small", epoch)

    def erased() -> Report:
        return erase(made, spark, graph, "items", "who = 'customer 1'", quarantine=False)

    for point, passes in (("erase.committed", 0), ("erase.removed", 5)):
        with replaced(Interrupted({point: (passes, killed)})), pytest.raises(Killed):
            erased()
        assert not verify(made).problems
    with replaced(Interrupted({"erase.judged": (1, lambda: run_epoch(made, spark, "small", "2"))})):  # type: ignore[dict-item]
        report = erased()
    assert report.proof.is_complete, report.proof.left
    assert report.upto == "3"
    assert rows(made, graph, "sums") == [("customer 0", 0, 3), ("customer 2", 6, 3)]
    assert rows(made, graph, "often") == [(3, 2)]
    run_epoch(made, spark, "small", "3")
    assert rows(made, graph, "sums") == [("customer 0", 0, 4), ("customer 1", 1, 1), ("customer 2", 8, 4)]
    assert rows(made, graph, "often") == [(1, 1), (4, 2)]

    hold(made, graph, lambda *_: Hold("reader", "bi", 3, "ana", release="firnline safepoint small --release bi"))
    before = made.log("small", "items").head()
    for condition, code in (("who = 'customer 1'", "ERASURE_BLOCKED"), ("whom = 1", "BAD_CONDITION"), ("n + 1", "BAD_CONDITION")):
        with pytest.raises(FirnlineError, match=code):
            erase(made, spark, graph, "items", condition, quarantine=False)
    assert made.log("small", "items").head() == before

    release(made, "small", "bi")
    made = project(small=SMALL.replace('F.sum("n")', '(F.sum("n") + 1)').replace("often", "frequent"))
    graph = made.graph("small")
    with pytest.raises(FirnlineError, match=r"ERASURE_BLOCKED.*'frequent' goes on with the log of 'often'"):
        planned(made, spark, graph, "items", "who = 'customer 1'", quarantine=False)
    keep_all(made, graph)
    with pytest.raises(FirnlineError, match="CHANGE_NOT_APPROVED"):
        planned(made, spark, graph, "items", "who = 'customer 1'", quarantine=False)
    assert made.log("small", "items").head() == before, "rows do not become others because some are forgotten"
    assert [each.collection for each in approve(made, graph, "ana")] == ["sums"]
    report = erase(made, spark, graph, "items", "who = 'customer 1'", quarantine=False)
    assert report.proof.is_complete, report.proof.left
    assert rows(made, graph, "sums") == [("customer 0", 1, 4), ("customer 2", 9, 4)]
    assert rows(made, graph, "frequent") == [(4, 2)]

    made = project(small=SMALL.replace('F.sum("n")', '(F.sum("n") + 1)').partition('@small.stage(keys=["times"])')[0])
    graph = made.graph("small")
    for said, mend in (
        ("frequent of 'small' has a log and no code", lambda: retire(made, graph, "frequent")),
        ("wait to be removed", lambda: list(tidied(made, graph, timedelta(0)))),
    ):
        with pytest.raises(FirnlineError, match=said):
            planned(made, spark, graph, "items", "who = 'customer 0'", quarantine=False)
        mend()
    assert planned(made, spark, graph, "items", "who = 'customer 0'", quarantine=False).matching == {"3": 4}
