"""Logs of a real pipeline compared with storage: what is damaged is told, fast where it can be, by digests where it must be."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.model.names import EPOCH
from firnline.plan.verification import Holding
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from tests.project import firnline, make_project
from tests.spark.running import run_epoch
from tests.verifying import all_told, cut, data_file, flip, forget_checksum, local, taken

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    damaged = fl.Pipeline("damaged", schedule=1, start=0)

    @damaged.source(keys=["id"], parts=2)
    def orders(epoch):
        rows = [(epoch.lower * 1000 + n, n % 40, n % 7) for n in range(400)]
        return epoch.spark.createDataFrame(rows, "id int, who int, amount int")

    @damaged.stage(keys=["id"], parts=2)
    def large(orders):
        return orders.where("amount > 2").withColumn("twice", F.col("amount") * 2)

    @damaged.stage(keys=["who"], parts=2)
    def spent(large):
        return large.groupBy("who").agg(F.sum("twice").alias("total"), F.avg("amount").alias("mean"))
"""

QUICK = 'spark_master = "local[1]"\nspark_java_options = "-XX:TieredStopAtLevel=1"\n'


@pytest.fixture(scope="module")
def ran(lake: tuple[Path, SparkSession], tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("damaged"), f'work = "{lake[0]}"\n{QUICK}', damaged=PIPELINE)
    for label in ("0", "1"):
        run_epoch(project, lake[1], "damaged", label)
    return project


@pytest.fixture
def project(ran: Project, tmp_path: Path) -> Iterator[Project]:
    """The same project for every test: what one of them damages is mended after it."""
    folder = local(ran.settings.warehouse) / "damaged"
    kept = shutil.copytree(folder, tmp_path / "kept")
    yield ran
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)


def large(project: Project) -> Holding:
    return taken(project, "damaged", "large")


def test_a_healthy_pipeline_has_no_problem(project: Project, spark: SparkSession) -> None:
    names = project.catalog.names("damaged")
    assert any("__" in name for name in names), "arrangements are verified, too"
    assert verify(project, "damaged").problems == ()
    found = verify(project, "damaged", spark)
    assert found.problems == ()
    assert found.collections == len(names)
    assert found.not_added == ()


def sidecar_of(log: Holding) -> str:
    sidecar = log.revisions[1].sidecar
    assert sidecar is not None
    return sidecar.path


def manifest_of(log: Holding) -> str:
    (manifest,) = log.revisions[1].manifests or ()
    return manifest.file.path


Damage = tuple[Callable[[Holding], str], Callable[[Path], object], str, tuple[int, ...], tuple[int, ...]]
FAST: dict[str, Damage] = {
    "delete a data file": (lambda log: data_file(log, 1, 1).file.path, Path.unlink, "missing", (1,), (1,)),
    "truncate a data file": (lambda log: data_file(log, 0, 1).file.path, cut, "truncated", (0,), (1,)),
    "delete a manifest": (manifest_of, Path.unlink, "missing", (1,), (0, 1)),
    "truncate a manifest list": (lambda log: log.revisions[1].manifest_list.path, cut, "truncated", (1,), (0, 1)),
    "corrupt a sidecar": (sidecar_of, lambda path: path.write_bytes(b"\0" * 100), "unreadable", (1,), ()),
    "delete the metadata file": (lambda log: log.metadata.path, Path.unlink, "missing", (), ()),
}


@pytest.mark.parametrize("name", FAST)
def test_damage_to_files_is_told_without_spark(project: Project, spark: SparkSession, name: str) -> None:
    which, damage, kind, epochs, parts = FAST[name]
    path = which(large(project))
    damage(local(path))
    found = verify(project, "damaged")
    assert all_told(found) == [("large", kind, epochs, parts)]
    assert found.problems[0].file == path
    assert found.collections == len(project.catalog.names("damaged"))
    deep = verify(project, "damaged.large", spark)
    assert deep.problems == found.problems, "reading the rows adds nothing to what is known"
    assert deep.not_added == (() if "data" in name.split() or "sidecar" in name else ("damaged.large",))


def test_a_flipped_byte_is_told_by_reading_the_rows(project: Project, spark: SparkSession) -> None:
    flip_page(local(data_file(large(project), 1, 0).file.path))
    assert verify(project, "damaged").problems == ()
    ((collection, kind, epochs, parts),) = all_told(verify(project, "damaged.large", spark))
    assert (collection, epochs, parts) == ("large", (1,), (0,))
    assert kind in ("unreadable", "altered")


def flip_page(path: Path) -> None:
    """Flip the bits of a byte among the values of the first column."""
    chunk = pq.read_metadata(path).row_group(0).column(0)
    flip(path, chunk.data_page_offset + chunk.total_compressed_size // 2)


def test_other_rows_are_told_by_their_digest(project: Project, spark: SparkSession) -> None:
    file = data_file(large(project), 0, 1).file
    path = local(file.path)
    rows = pq.ParquetFile(path).read()
    put = rows.schema.get_field_index("twice")
    changed = rows.set_column(put, rows.schema.field(put), pc.add(rows["twice"], pa.scalar(2, pa.int32())))
    assert file.size is not None
    write_padded(path, changed, file.size)
    assert pq.read_table(path)[EPOCH].unique().to_pylist() == [0]
    assert verify(project, "damaged").problems == ()
    found = verify(project, "damaged.large", spark)
    assert all_told(found) == [("large", "altered", (0,), (1,))]
    assert found.problems[0].file == file.path


def write_padded(path: Path, rows: pa.Table, size: int) -> None:
    """A Parquet file of exactly this size: with nothing of use before its footer."""
    pq.write_table(rows, path, store_schema=False, write_statistics=False, compression="zstd", compression_level=19)
    content = path.read_bytes()
    assert len(content) <= size
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[:footer] + bytes(size - len(content)) + content[footer:])
    forget_checksum(path)


def test_all_that_is_damaged_is_found_at_once(project: Project, spark: SparkSession) -> None:
    log = large(project)
    for epoch, part in ((0, 0), (1, 1)):
        path = local(data_file(log, epoch, part).file.path)
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(len(content) // 4) + content[4 + len(content) // 4 :])
        forget_checksum(path)
    local(data_file(log, 0, 1).file.path).unlink()
    found = verify(project, "damaged", spark)
    assert sorted(all_told(found)) == [
        ("large", "missing", (0,), (1,)),
        ("large", "unreadable", (0,), (0,)),
        ("large", "unreadable", (1,), (1,)),
    ]


def test_the_command_ends_with_one_and_a_document(project: Project) -> None:
    flip_page(local(data_file(large(project), 1, 0).file.path))
    root = project.settings.root
    (problem,) = firnline(root, "verify", "damaged.large", "--deep", "--json", code=1)["problems"]
    assert (problem["collection"], problem["epochs"], problem["parts"]) == ("large", ["1"], [0])
