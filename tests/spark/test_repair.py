"""Lost pieces of a real pipeline's logs come back: the same rows, from what they were made of, and no more than was lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

import firnline as fl
from firnline.plan.verification import Holding
from firnline.runtime.certificate import certify
from firnline.runtime.project import Project
from firnline.runtime.repair import Repaired, planned, repair
from firnline.runtime.verify import verify
from tests.project import make_project
from tests.spark.running import rows, run_epoch
from tests.verifying import cut, data_file, flip, local, taken, undone

PIPELINE = """
    import firnline as fl
    from pathlib import Path
    from pyspark.sql import functions as F

    MARK = Path(__file__).with_name("mark")

    lost = fl.Pipeline("lost", schedule=1, start=0)

    @lost.source(keys=["id"], partition_by=["page"], parts=8)
    def visits(epoch):
        rows = [(epoch.lower * 1000 + n, n % 97, n % 11) for n in range(600)]
        return epoch.spark.createDataFrame(rows, "id int, page int, seconds int")

    @lost.source(keys=["page"], parts=8)
    def pages(epoch):
        first = [(n, f"page {n}") for n in range(90)]
        later = [(90 + epoch.lower, "late")]
        return epoch.spark.createDataFrame(first if epoch.lower == 0 else later, "page int, title string")

    @lost.source(keys=["id"])
    def orders(epoch):
        return epoch.files("landing/{epoch}.csv", format="csv", schema="id int, amount int")

    @lost.stage(keys=["id"], partition_by=["page"], parts=8)
    def seen(visits, pages):
        return visits.join(pages, "page").select("id", "page", "title", "seconds")

    @lost.stage(keys=["page"])
    def marked(pages):
        return pages.withColumn("mark", F.lit(int(MARK.read_text())))

    @lost.stage(keys=["title"], parts=2)
    def spent(seen):
        return seen.groupBy("title").agg(F.sum("seconds").alias("total"), F.count("*").alias("times"))

    @lost.stage(keys=["title"], on_loss="fail")
    def kept(spent):
        return spent.where("times > 1")
"""
EPOCHS = ("0", "1", "2")


@pytest.fixture(scope="session")
def ran(lake: tuple[Path, SparkSession], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Once in a process: tests of other modules may run between these, and the logs are those of the lake."""
    root = tmp_path_factory.mktemp("lost")
    project = make_project(root, f'work = "{lake[0]}"\nquarantine_fraction = 0.5\n', lost=PIPELINE)
    (root / "include" / "pipelines" / "mark").write_text("1")
    (root / "landing").mkdir()
    for epoch in range(5):
        (root / "landing" / f"{epoch}.csv").write_text(f"id,amount\n{epoch},5\n{epoch + 10},7\n{epoch + 20},many\n")
    for label in EPOCHS:
        run_epoch(project, lake[1], "lost", label)
    return project


@pytest.fixture
def project(ran: Project, tmp_path: Path) -> Iterator[Project]:
    """The same project for every test: what one of them damages and repairs is undone after it."""
    with undone(ran, "lost", tmp_path):
        yield ran


def log(project: Project, name: str) -> Holding:
    return taken(project, "lost", name)


def lose(project: Project, name: str, *cells: tuple[int, int]) -> None:
    found = log(project, name)
    for cell in cells:
        local(data_file(found, *cell).file.path).unlink()


def mend(project: Project, spark: SparkSession, asked: str = "lost", *, is_deep: bool = False) -> Repaired:
    return repair(project, lambda: spark, asked, is_deep=is_deep)


def contents(project: Project) -> dict[str, Any]:
    """Every collection after every epoch, by PyIceberg."""
    graph = project.graph("lost")
    return {f"{each.name} {label}": rows(project, graph, each.name, label) for each in graph.collections for label in EPOCHS}


def computed_by_hand() -> Counter[tuple[Any, ...]]:
    """What ``spent`` holds in the end, by a computation that shares nothing with ours."""
    titles = {**{n: f"page {n}" for n in range(90)}, 91: "late", 92: "late"}
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for _ in EPOCHS:
        for n in range(600):
            if n % 97 in titles:
                found = total[titles[n % 97]]
                found[0], found[1] = found[0] + n % 11, found[1] + 1
    return Counter((title, seconds, times) for title, (seconds, times) in total.items())


PARTS = {"one": (3,), "four": (0, 2, 5, 7), "all": tuple(range(8))}


@pytest.mark.parametrize("many", PARTS)
def test_lost_parts_of_a_keyed_join_come_back_at_the_cost_of_what_was_lost(
    project: Project, spark: SparkSession, many: str
) -> None:
    before = contents(project)
    lose(project, "seen", *((1, part) for part in PARTS[many]))
    (planned_step,) = planned(project, "lost").steps
    assert (planned_step.collection, planned_step.how, planned_step.parts()) == ("seen", "recompute", PARTS[many])
    found = mend(project, spark)
    assert found.is_whole, found
    (done,) = found.done
    assert done.rows_lost == planned_step.rows > 0
    assert done.rows_recomputed / done.rows_lost <= 1.1
    assert contents(project) == before
    assert verify(project, "lost", spark).problems == ()


def test_everything_lost_at_once_comes_back_upstream_first(project: Project, spark: SparkSession) -> None:
    before = contents(project)
    (arrangement,) = (name for name in project.catalog.names("lost") if name.startswith("spent__"))
    for name in ("visits", "seen", "spent", arrangement):
        found = log(project, name)
        for epoch, part in found.cells():
            if part < 2 or name == "visits":
                local(data_file(found, epoch, part).file.path).unlink()
    steps = planned(project, "lost").steps
    assert [step.collection for step in steps] == ["visits", "seen", arrangement, "spent"]
    found_after = mend(project, spark)
    assert found_after.is_whole, found_after
    assert contents(project) == before
    assert Counter(rows(project, project.graph("lost"), "spent")) == computed_by_hand()
    assert verify(project, "lost", spark).problems == ()
    read = fl.read("lost.seen", as_of="1", session=spark, project=project)
    assert sorted(map(tuple, read.collect())) == sorted(before["seen 1"])
    run_epoch(project, spark, "lost", "3")
    assert verify(project, "lost", spark).problems == (), "epochs go on from a repaired log"


def test_flipped_bits_and_a_cut_footer_are_repaired(project: Project, spark: SparkSession) -> None:
    before = contents(project)
    found = log(project, "seen")
    flip(local(data_file(found, 2, 4).file.path), 40)
    cut(local(data_file(found, 0, 6).file.path))
    done = mend(project, spark, "lost.seen", is_deep=True)
    assert done.is_whole, done
    assert done.done[0].step.cells == ((0, 6), (2, 4))
    assert contents(project) == before
    assert verify(project, "lost", spark).problems == ()


def test_a_source_and_its_quarantine_come_back_from_the_files_that_were_read(project: Project, spark: SparkSession) -> None:
    before = rows(project, project.graph("lost"), "orders__quarantine")
    lose(project, "orders", (1, 0))
    lose(project, "orders__quarantine", (1, 0))
    found = mend(project, spark, "lost.orders")
    assert found.is_whole, [str(each.error) for each in found.failed]
    assert rows(project, project.graph("lost"), "orders__quarantine") == before
    assert verify(project, "lost", spark).problems == ()
    lose(project, "orders", (0, 0))
    file = project.settings.root / "landing" / "0.csv"
    text = file.read_text()
    file.write_text(text.replace("5", "6"))
    found = mend(project, spark, "lost.orders")
    file.write_text(text)
    assert [each.error.code for each in found.failed] == ["FILE_CHANGED"]
    assert mend(project, spark, "lost.orders").is_whole, "with the file back as it was"


def test_a_run_that_meets_lost_inputs_repairs_them_and_goes_on(project: Project, spark: SparkSession) -> None:
    lose(project, "visits", (1, 3), (0, 4))
    local(log(project, "pages").metadata.path).unlink()
    (manifest,) = log(project, "visits").revisions[2].manifests or ()
    local(manifest.file.path).unlink()
    outcomes = run_epoch(project, spark, "lost", "3")
    assert {outcome.how for outcome in outcomes} == {"computed"}
    assert verify(project, "lost", spark).problems == ()


def test_spark_reads_rebuilt_manifests_after_any_epoch(project: Project, spark: SparkSession) -> None:
    before = contents(project)
    found = log(project, "seen")
    local(found.metadata.path).unlink()
    local(found.revisions[-1].manifest_list.path).unlink()
    for at in (0, 1):
        (manifest,) = found.revisions[at].manifests or ()
        local(manifest.file.path).unlink()
    mended = repair(project, lambda: pytest.fail("nothing is to be computed"), "lost.seen")
    assert mended.is_whole, mended
    assert contents(project) == before
    for label in EPOCHS:
        read = fl.read("lost.seen", as_of=label, session=spark, project=project)
        assert sorted(map(tuple, read.collect())) == sorted(before[f"seen {label}"])
    assert verify(project, "lost", spark).problems == ()


def test_a_sidecar_that_no_ledger_knows_is_made_from_rows(project: Project, spark: SparkSession) -> None:
    table = project.log("lost", "seen")
    entry = list(table.entries())[1]
    before = table.sidecar(entry)
    local(entry.sidecar).unlink()
    project.ledger.forget("lost")
    assert mend(project, spark, "lost.seen").is_whole
    after = table.sidecar(entry)
    assert after.digests == before.digests
    assert after.inputs.keys() == before.inputs.keys()
    assert sorted(file.path for file in after.files or ()) == sorted(file.path for file in before.files or ())


def test_what_its_contract_excludes_is_not_computed_again(project: Project, spark: SparkSession) -> None:
    lose(project, "kept", (0, 0))
    found = mend(project, spark)
    assert not found.is_whole
    assert "on_loss='fail'" in found.refusals[0].what
    assert found.done == ()


def test_a_replay_names_the_stage_the_columns_and_rows_that_differ(project: Project, spark: SparkSession) -> None:
    mark = project.settings.root / "include" / "pipelines" / "mark"
    assert all(each.difference is None for each in certify(project, spark, "lost", "1"))
    mark.write_text("2")
    found = certify(project, spark, "lost.marked")
    mark.write_text("1")
    assert [(each.stage, each.epoch) for each in found] == [("marked", label) for label in EPOCHS]
    difference = found[0].difference
    assert difference is not None
    assert difference.columns == ("mark",)
    assert {row["mark"] for row in difference.published} == {1}
    assert {row["mark"] for row in difference.replayed} == {2}
    assert verify(project, "lost").staged == 0
    assert verify(project, "lost").problems == ()


def test_other_code_is_refused_and_the_log_stays_as_it_is(project: Project, spark: SparkSession) -> None:
    module = project.settings.root / "include" / "pipelines" / "lost.py"
    text = module.read_text()
    lose(project, "seen", (1, 3))
    head = project.log("lost", "seen").head()
    try:
        module.write_text(text.replace('"title", "seconds")', '"title", (F.col("seconds") + 1).alias("seconds"))'))
        found = mend(project, spark)
    finally:
        module.write_text(text)
    assert [each.error.code for each in found.failed] == ["REPLAY_DIFFERS"]
    assert "the code changed since" in found.failed[0].error.what
    assert project.log("lost", "seen").head() == head
    assert verify(project, "lost").staged == 0


def test_rows_of_another_schedule_are_made_again_as_they_were_published(project: Project, spark: SparkSession) -> None:
    module = project.settings.root / "include" / "pipelines" / "lost.py"
    text = module.read_text()
    before = contents(project)
    (arrangement,) = (name for name in project.catalog.names("lost") if name.startswith("spent__"))
    lose(project, "seen", (1, 3))
    lose(project, arrangement, log(project, arrangement).cells()[-1])
    try:
        module.write_text(text.replace("schedule=1", "schedule=4"))
        found = mend(project, spark)
        replayed = certify(project, spark, "lost.spent", "2")
    finally:
        module.write_text(text)
    assert found.is_whole, found
    assert [done.step.how for done in found.done] == ["recompute", "recompute"]
    assert [(each.epoch, each.difference, each.skipped) for each in replayed] == [("2", None, "")] * 2
    assert contents(project) == before
