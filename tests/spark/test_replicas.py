"""Lost pieces of a real pipeline's logs come back from a replica: to the byte, checked, and without computing anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.plan.verification import Holding
from firnline.runtime.merge import Merge, merge
from firnline.runtime.project import EXPECTATIONS, Project
from firnline.runtime.repair import Repaired, planned, repair
from firnline.runtime.replicate import Replicated, replicate
from firnline.runtime.replicated import replicated_upto
from firnline.runtime.verify import verify
from tests.project import make_project
from tests.spark.running import rows, run_epoch
from tests.verifying import cut, flip, local, taken, undone

PIPELINE = """
    import firnline as fl
    from pathlib import Path
    from pyspark.sql import functions as F

    MARK = Path(__file__).with_name("mark")

    safe = fl.Pipeline("safe", schedule=1, start=0, replicas=["file://{place}"])

    @safe.source(keys=["id"], parts=4, on_loss="gap")
    def orders(epoch):
        return epoch.files("landing/{{epoch}}.csv", format="csv", schema="id int, who string, amount int")

    @safe.stage(keys=["id"], parts=4, nondeterministic=True)
    def drawn(orders):
        return orders.select("id", "who", (F.col("amount") * int(MARK.read_text())).alias("amount"))

    @safe.stage(keys=["who"], parts=2, checks=[fl.check("totals_are_sane", on="both")], on_loss="fail")
    def totals(drawn):
        return drawn.groupBy("who").agg(F.sum("amount").alias("total"))

    @safe.stage(keys=["id"], parts=4)
    def large(drawn):
        return drawn.where("amount > 50").withColumn("an odd name", F.col("who"))
"""
EPOCHS = ("0", "1", "2")


def suite(root: Path, most: int) -> None:
    between = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "total", "max_value": most}}
    (root / EXPECTATIONS).mkdir(exist_ok=True)
    (root / EXPECTATIONS / "totals_are_sane.json").write_text(json.dumps({"name": "totals_are_sane", "expectations": [between]}))


@pytest.fixture(scope="module")
def ran(lake: tuple[Path, SparkSession], tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("safe")
    project = make_project(root, f'work = "{lake[0]}"\n', safe=PIPELINE.format(place=root / "b"))
    (root / "include" / "pipelines" / "mark").write_text("1")
    (root / "landing").mkdir()
    suite(root, 1_000_000)
    for epoch in range(3):
        lines = (f"{epoch * 100 + n},who{n % 7},{n}" for n in range(100))
        (root / "landing" / f"{epoch}.csv").write_text("\n".join(["id,who,amount", *lines]) + "\n")
    for label in EPOCHS:
        run_epoch(project, lake[1], "safe", label)
    shutil.rmtree(root / "landing")  # what is lost of the source cannot be made again
    (root / "include" / "pipelines" / "mark").write_text("2")  # and a second run would give other rows
    return project


@pytest.fixture
def project(ran: Project, tmp_path: Path) -> Iterator[Project]:
    """The same project for every test: what one of them damages is undone after it."""
    with undone(ran, "safe", tmp_path):
        yield ran
    shutil.rmtree(ran.settings.root / "b", ignore_errors=True)
    suite(ran.settings.root, 1_000_000)


def copied(project: Project) -> Replicated:
    found = replicate(project, project.graph("safe"))
    assert (found.failed, found.waiting) == ((), 0)
    return found


def mend(project: Project, spark: SparkSession, *, is_deep: bool = False) -> Repaired:
    return repair(project, lambda: spark, "safe", is_deep=is_deep)


def contents(project: Project) -> dict[str, Any]:
    graph = project.graph("safe")
    return {f"{each.name} {label}": rows(project, graph, each.name, label) for each in graph.collections for label in EPOCHS}


def log(project: Project, name: str) -> Holding:
    return taken(project, "safe", name)


def data(project: Project, name: str, epoch: int) -> list[Path]:
    """The data files of an epoch."""
    found = [each for of in log(project, name).revisions for manifest in of.manifests or () for each in manifest.data]
    return [local(each.file.path) for each in found if each.first == epoch]


def test_losses_of_all_kinds_come_back_from_a_replica_and_nothing_is_computed(project: Project, spark: SparkSession) -> None:
    copied(project)
    before = contents(project)
    (sums,) = (name for name in project.catalog.names("safe") if name.startswith("totals__"))
    table = project.log("safe", "orders").load()
    (manifest,) = log(project, "totals").revisions[1].manifests or ()
    sidecar = log(project, "drawn").revisions[0].sidecar
    assert table is not None
    assert sidecar is not None
    lost = [*data(project, "orders", 1), *data(project, "drawn", 0), *data(project, "totals", 1), *data(project, sums, 1)]
    lost += data(project, "large", 1)
    lost += [local(path) for path in (table.version, manifest.file.path, sidecar.path)]
    bytes_before = {path: path.read_bytes() for path in lost}
    for number, path in enumerate(lost):
        cut(path, 60) if number == 0 else path.unlink()

    assert {step.source for step in planned(project, "safe").steps} == {f"from replica file://{project.settings.root}/b"}
    found = mend(project, spark)
    assert found.is_whole, found
    assert {done.step.how for done in found.done} == {"restore"}
    assert sum(done.rows_recomputed for done in found.done) == 0
    assert sum(done.rows_lost for done in found.done) > 0
    assert {path: path.read_bytes() for path in lost} == bytes_before
    assert contents(project) == before
    assert verify(project, "safe", spark).problems == ()
    assert not list(local(project.settings.warehouse).glob("safe/*/firnline/coming/*"))
    assert replicated_upto(project, project.graph("safe")) == {"orders": 3, "drawn": 3, "totals": 3, "large": 3}


def test_altered_rows_are_found_by_their_digest_and_exchanged_for_the_copy(project: Project, spark: SparkSession) -> None:
    copied(project)
    before = contents(project)
    file = data(project, "drawn", 1)[0]
    content = file.read_bytes()
    flip(file, 40)
    found = mend(project, spark, is_deep=True)
    assert found.is_whole, found
    assert [(done.step.how, done.rows_recomputed) for done in found.done] == [("restore", 0)]
    assert file.read_bytes() == content
    assert contents(project) == before


def test_a_copy_of_rows_that_were_damaged_already_is_not_believed(project: Project, spark: SparkSession) -> None:
    before = contents(project)
    file = data(project, "large", 1)[0]
    flip(file, 40)
    copied(project)
    file.unlink()
    found = mend(project, spark)
    assert found.is_whole, found
    assert [done.step.how for done in found.done] == ["recompute"]
    assert contents(project) == before
    assert verify(project, "safe", spark).problems == ()
    assert replicated_upto(project, project.graph("safe"))["large"] == 1
    copied(project)


def test_rows_that_a_check_does_not_let_pass_any_more_are_not_put_back(project: Project, spark: SparkSession) -> None:
    copied(project)
    lost = data(project, "totals", 2)
    for path in lost:
        path.unlink()
    suite(project.settings.root, 1)
    (failed,) = mend(project, spark).failed
    assert failed.error.code == "CHECK_FAILED"
    assert "found at a replica" in failed.error.what
    assert not any(path.exists() for path in lost)
    suite(project.settings.root, 1_000_000)
    assert mend(project, spark).is_whole
    assert all(path.exists() for path in lost)


def test_a_merged_layer_comes_back_whatever_checks_would_say_of_its_epochs_as_one(project: Project, spark: SparkSession) -> None:
    before = rows(project, project.graph("safe"), "totals")
    assert merge(project, project.graph("safe"), spark, Merge("safe", "totals", 0, 2, 2, 0, 0, 1.0), 2) is not None
    copied(project)
    lost = data(project, "totals", 1)
    for path in lost:
        path.unlink(missing_ok=True)
    suite(project.settings.root, 1)
    found = mend(project, spark)
    assert found.is_whole, found
    assert [done.step.how for done in found.done] == ["restore"]
    assert rows(project, project.graph("safe"), "totals") == before


def test_rows_of_a_gap_come_back_when_the_replica_does(project: Project, spark: SparkSession) -> None:
    copied(project)
    before = contents(project)
    place = project.settings.root / "b"
    away = place.rename(place.with_name("away"))
    for path in data(project, "orders", 1):
        path.unlink()
    found = mend(project, spark)
    assert found.is_whole, found
    assert [gap.collection for _, gap in found.gaps] == ["orders"]
    away.rename(place)
    found = mend(project, spark)
    assert sum(done.rows_recomputed for done in found.done) == 0
    assert contents(project) == before
