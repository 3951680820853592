"""A table that is there as a collection's first epoch. What is expected is what Spark reads of that table itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

import firnline as fl
from firnline.errors import FirnlineError
from firnline.runtime import branch
from firnline.runtime.maintain import maintained, undone
from firnline.runtime.project import Project
from firnline.runtime.rescale import rescale, rescales
from firnline.runtime.verify import verify
from tests.oracle.amplab import comparable
from tests.spark.running import rows, run_epoch
from tests.verifying import local

Make = Callable[..., Project]

PIPELINE = """
    import firnline as fl

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1 epoch")

    @{name}.source(keys=["k"], adopt="{table}", {options})
    def items(epoch):
        return epoch.table("{table}")
"""
COLUMNS = "k bigint, gone string, g string, price decimal(9, 2), at timestamp, more struct<a: int, b: array<double>>"
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"adopted_{os.getpid()}_{next(_numbers)}"


def theirs(spark: SparkSession, name: str, properties: str = "") -> str:
    """A table with a past: files by partition, a column that went and one that came, an odd name, nulls, a file without rows."""
    table = f"lake.{name}_theirs.things"
    spark.sql(f"CREATE NAMESPACE lake.{name}_theirs")
    spark.sql(
        f"CREATE TABLE {table} ({COLUMNS}) USING iceberg PARTITIONED BY (g) TBLPROPERTIES ('format-version'='2'{properties})"
    )
    one = "timestamp'2026-01-01 00:00:00', named_struct('a', 1, 'b', array(0.5D, double('NaN'), null))"
    spark.sql(
        f"INSERT INTO {table} VALUES (1, 'x', 'u', 1.50, {one}), (2, 'x', null, null, null, null), (3, 'y', '雪', 0.10, {one})"
    )
    spark.sql(f"ALTER TABLE {table} DROP COLUMN gone")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN `new one` double")
    spark.sql(f"INSERT INTO {table} VALUES (4, 'u', 7.00, null, null, -0.0D), (null, 'v', 1.00, {one}, double('NaN'))")
    spark.sql(f"INSERT INTO {table} VALUES (5, 'u', 7.00, null, null, 1.0D), (6, 'u', null, null, null, null)")
    return table


def told(found: Iterable[tuple[Any, ...]]) -> str:
    """Rows as text, in which NaN is one value, inside of others too, and 0.0 another."""
    return repr(comparable([tuple(each + 0.0 if isinstance(each, float) else each for each in row) for row in found]))


def now(spark: SparkSession, table: str) -> str:
    return told(tuple(row.values()) for row in spark.table(table).toArrow().to_pylist())


def held(made: Project, name: str) -> str:
    return told(rows(made, made.graph(name), "items"))


def scanned(made: Project, name: str) -> str:
    """By PyIceberg alone, and nothing lost on the way."""
    found = fl.scan(f"{name}.items", project=made).to_arrow()
    return told(tuple(row.values()) for row in found.to_pylist())


def own_files(made: Project, name: str) -> list[str]:
    table = made.log(name, "items").load()
    assert table is not None
    return [path for path in made.catalog.paths(table.location) if path.endswith(".parquet")]


def maintain(made: Project, spark: SparkSession, name: str, grace: timedelta) -> None:
    assert [done.error for done in maintained(made, made.graph(name), lambda: spark, grace) if done.error] == []


def outcome(made: Project, name: str, table: str) -> Any:
    log = made.log(name, "items")
    return log.sidecar(list(log.entries())[-1]).determinants[f"adopt {table}"]


def test_files_are_named_and_stay_somebody_elses(project: Make, spark: SparkSession, name: str) -> None:
    table = theirs(spark, name)
    made = project(**{name: PIPELINE.format(name=name, table=table, options="")})
    run_epoch(made, spark, name, "0")
    first = now(spark, table)
    assert outcome(made, name, table) == {"files": 6}
    assert own_files(made, name) == [], "no row is copied"
    assert held(made, name) == first
    assert scanned(made, name) == first
    assert verify(made, name, spark).problems == ()
    their_files = [row[0] for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()]

    spark.sql(f"UPDATE {table} SET price = 9.99 WHERE k = 1")
    spark.sql(f"DELETE FROM {table} WHERE k = 3")
    spark.sql(f"INSERT INTO {table} VALUES (7, 'u', 5.00, null, null, 1.0D)")
    run_epoch(made, spark, name, "1")
    assert scanned(made, name) == held(made, name) == now(spark, table)

    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table.removeprefix('lake.')}', older_than => now(), retain_last => 1)"
    )
    assert all(local(path).exists() for path in their_files), "a tag keeps what we name from their housekeeping"
    for epoch in range(2, 6):  # so many that some are merged
        spark.sql(f"INSERT INTO {table} VALUES ({epoch * 10}, 'w', 5.00, null, null, null)")
        run_epoch(made, spark, name, str(epoch))
    maintain(made, spark, name, timedelta(days=1))
    assert undone(made, made.graph(name)), "their files are named again"
    assert scanned(made, name) == held(made, name) == now(spark, table)
    maintain(made, spark, name, timedelta())
    assert own_files(made, name)
    assert all(local(path).exists() for path in their_files), "nor does ours touch them"
    assert scanned(made, name) == held(made, name) == now(spark, table)
    assert verify(made, name, spark).problems == ()


@pytest.mark.nightly
def test_branches_and_rescaling_touch_no_adopted_file(project: Make, spark: SparkSession, name: str) -> None:
    table = theirs(spark, name)
    made = project(**{name: PIPELINE.format(name=name, table=table, options="")})
    run_epoch(made, spark, name, "0")
    before, their_files = now(spark, table), [row[0] for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()]
    branch.create(made, made.graph(name), "other", 1, None)
    branch.drop(made, name, "other")
    (planned,) = (each for each in rescales(made, made.graph(name), "items", 2) if each.collection == "items")
    rescale(made, lambda: spark, planned)
    maintain(made, spark, name, timedelta())
    assert scanned(made, name) == before
    assert all(local(path).exists() for path in their_files)
    assert verify(made, name, spark).problems == ()


@pytest.mark.parametrize(
    ("options", "change", "reason"),
    [
        ("parts=2", None, "its files are not cut into 2 parts"),
        ("dedup=True", "DELETE FROM {table} WHERE k = 5", "rows of it are deleted beside their files"),
    ],
)
def test_what_cannot_be_named_is_copied(
    options: str, change: str | None, reason: str, project: Make, spark: SparkSession, name: str
) -> None:
    table = theirs(spark, name, ", 'write.delete.mode'='merge-on-read'")
    if change:
        spark.sql(change.format(table=table))
    made = project(**{name: PIPELINE.format(name=name, table=table, options=options)})
    run_epoch(made, spark, name, "0")
    assert outcome(made, name, table) == {"copied": reason}
    assert scanned(made, name) == held(made, name) == now(spark, table)


def test_a_table_with_a_key_twice_is_not_adopted(project: Make, spark: SparkSession, name: str) -> None:
    table = theirs(spark, name)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'w', 5.00, null, null, null)")
    made = project(**{name: PIPELINE.format(name=name, table=table, options="")})
    with pytest.raises(FirnlineError, match="k=1") as caught:
        run_epoch(made, spark, name, "0")
    assert caught.value.code == "KEY_NOT_UNIQUE"
    spark.sql(f"DELETE FROM {table} WHERE k = 1 AND g = 'w'")
