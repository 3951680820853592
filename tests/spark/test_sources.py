"""What sources take from the outside, over real files, a real PostgreSQL and Iceberg tables that are not ours."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import psycopg
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime import show
from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]

PIPELINE = """
    import firnline as fl

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=[{keys}])
    def items(epoch):
        {source}
"""
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"from_outside_{os.getpid()}_{next(_numbers)}"


def text(name: str, source: str, keys: str = '"k"') -> dict[str, str]:
    return {name: PIPELINE.format(name=name, source=source, keys=keys)}


def after(made: Project, spark: SparkSession, name: str, epoch: int) -> list[tuple[object, ...]]:
    run_epoch(made, spark, name, str(epoch))
    return rows(made, made.graph(name), "items")


def refused(made: Project, spark: SparkSession, name: str, epoch: int) -> FirnlineError:
    with pytest.raises(FirnlineError) as caught:
        run_epoch(made, spark, name, str(epoch))
    return caught.value


def test_new_files_come_when_they_are_found(project: Make, spark: SparkSession, name: str, tmp_path: Path) -> None:
    made = project(**text(name, 'return epoch.new_files("in/**", format="text", schema="k string")'))
    (tmp_path / "in" / "deep").mkdir(parents=True)
    assert after(made, spark, name, 0) == []
    (tmp_path / "in" / "b.txt").write_text("one\n雪\n")
    assert after(made, spark, name, 1) == [("one",), ("雪",)]
    (tmp_path / "in" / "deep" / "a.txt").write_text("late\n")
    assert after(made, spark, name, 2) == [("late",), ("one",), ("雪",)]
    assert after(made, spark, name, 3) == after(made, spark, name, 2)


def test_lines_that_are_no_text_are_set_aside(project: Make, spark: SparkSession, name: str, tmp_path: Path) -> None:
    source = """one = epoch.files("in/*.txt", format="text", schema="k string")
        two = epoch.files("in/*.csv", format="csv", schema="k string, n int").select("k")
        three = epoch.files("in/*.json", format="json", schema="k string").select("k")
        return one.union(two).union(three)"""
    made = project("quarantine_fraction = 0.5\n", **text(name, source))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes("grün\n".encode() + "weiß\n".encode("latin-1"))
    (tmp_path / "in" / "a.csv").write_bytes("k,n\nblå,1\n".encode() + "Köln,2\n".encode("latin-1"))
    (tmp_path / "in" / "a.json").write_bytes('{"k": "ß"}\n'.encode() + '{"k": "é"}\n'.encode("latin-1"))
    assert after(made, spark, name, 0) == [("blå",), ("grün",), ("ß",)]
    aside = show.rows(made, made.graph(name), "items__quarantine")[1]
    assert sorted(Path(str(row[1])).name for row in aside) == ["a.csv", "a.json", "a.txt"]
    assert {row[0] for row in aside} == {"holds bytes that are no UTF-8"}


def test_avro_files_have_types_of_their_own(project: Make, spark: SparkSession, name: str, tmp_path: Path) -> None:
    made = project(**text(name, 'return epoch.files("in/{epoch}/", format="avro", schema="k bigint, v string")'))
    for epoch, columns in (("0", ["k", "v"]), ("1", ["k", "w"])):
        frame = spark.createDataFrame([(1, "a"), (2, None)], f"{columns[0]} bigint, {columns[1]} string")
        frame.write.format("avro").save(str(tmp_path / "in" / epoch))
    assert after(made, spark, name, 0) == [(1, "a"), (2, None)]
    assert refused(made, spark, name, 1).code == "SCHEMA_MISMATCH"


def test_a_file_that_changes_while_it_is_read_is_refused(project: Make, spark: SparkSession, name: str, tmp_path: Path) -> None:
    source = """rows = epoch.files("in/*.csv", format="csv", schema="k string")
        from pathlib import Path
        if (Path(__file__).parents[2] / "writing").exists():
            with (Path(__file__).parents[2] / "in" / "a.csv").open("a") as file:
                file.write("more\\n")
        return rows"""
    made = project(**text(name, source))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k\none\n")
    (tmp_path / "writing").touch()
    found = refused(made, spark, name, 0)
    assert (found.code, "a.csv changed while it was read" in found.what) == ("FILE_CHANGED", True)
    assert made.control(name).frontier() is None
    (tmp_path / "writing").unlink()
    (tmp_path / "in" / "a.csv").write_text("k\none\n")
    assert after(made, spark, name, 0) == [("one",)]


def test_a_table_of_a_database_is_read_as_far_as_its_watermark_has_come(
    project: Make, spark: SparkSession, name: str, postgres_uri: Callable[[], str]
) -> None:
    uri = postgres_uri()
    jdbc = "jdbc:" + uri.replace("firnline@", "")
    source = f'return epoch.jdbc("{jdbc}", "orders", watermark="changed_at", user="firnline")'
    made = project(**text(name, source, '"id", "changed_at"'))
    with psycopg.connect(uri, autocommit=True) as database:
        database.execute("CREATE TABLE orders (id bigint, what text, changed_at timestamp(6))")
        assert after(made, spark, name, 0) == []
        database.execute("INSERT INTO orders VALUES (1, 'it''s', '2026-01-01 00:00:00.000001'), (2, NULL, '2026-01-02')")
        assert [row[:2] for row in after(made, spark, name, 1)] == [(1, "it's"), (2, None)]
        database.execute("INSERT INTO orders VALUES (3, '雪', '2026-01-02 00:00:00.5')")
        assert [row[:2] for row in after(made, spark, name, 2)] == [(1, "it's"), (2, None), (3, "雪")]
        assert [row[0] for row in after(made, spark, name, 3)] == [1, 2, 3]
        database.execute("ALTER TABLE orders RENAME TO gone")
    assert refused(made, spark, name, 4).code == "STAGE_FAILED"
    gone = project(**text(name, source.replace("/test_", "/nowhere_"), '"id", "changed_at"'))
    found = refused(gone, spark, name, 4)
    assert (found.code, found.retryable) == ("SOURCE_UNAVAILABLE", True), found


def test_a_table_that_is_not_ours_is_followed_from_snapshot_to_snapshot(project: Make, spark: SparkSession, name: str) -> None:
    table = f"lake.{name}_theirs.prices"
    made = project(**text(name, f'return epoch.table("{table}")'))
    spark.sql(f"CREATE NAMESPACE lake.{name}_theirs")

    def make(more: str = "") -> None:
        spark.sql(f"CREATE TABLE {table} (k bigint, price double) USING iceberg TBLPROPERTIES ('format-version'='2'{more})")

    def now() -> list[tuple[object, ...]]:
        return sorted(tuple(row) for row in spark.table(table).collect())

    changes = [
        "INSERT INTO {0} VALUES (1, 1.0), (2, 2.0)",
        "INSERT INTO {0} VALUES (3, 3.0)",
        "UPDATE {0} SET price = 9.0 WHERE k = 2",
        "DELETE FROM {0} WHERE k = 1",
        "INSERT OVERWRITE {0} VALUES (3, 3.0), (4, 4.0)",
    ]
    make()
    assert after(made, spark, name, 0) == []
    for epoch, change in enumerate(changes, 1):
        spark.sql(change.format(table))
        assert after(made, spark, name, epoch) == now()
    modes = ", ".join(f"'write.{what}.mode'='merge-on-read'" for what in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({modes})")
    spark.sql(f"INSERT INTO {table} VALUES (5, 5.0), (6, 6.0), (7, 7.0)")
    spark.sql(f"DELETE FROM {table} WHERE k = 6")
    assert after(made, spark, name, 6) == now()
    spark.sql(f"CALL lake.system.rewrite_data_files('{table.removeprefix('lake.')}')")
    assert after(made, spark, name, 7) == now()

    def settle() -> None:
        named = (
            f"table => '{table.removeprefix('lake.')}', options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        )
        spark.sql(f"CALL lake.system.rewrite_data_files({named})")
        (last,) = spark.sql(
            f"SELECT summary['total-delete-files'] FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        ).collect()
        assert last[0] == "0"

    settle()
    assert after(made, spark, name, 8) == now()
    spark.sql(f"INSERT INTO {table} VALUES (1, 1.0), (2, 2.0), (8, 3.0)")
    spark.sql(f"DELETE FROM {table} WHERE k = 2")
    settle()  # no row is deleted beside its file at either end, and one was in between
    assert after(made, spark, name, 9) == now()
    spark.sql(f"ALTER TABLE {table} ADD COLUMN note string")
    spark.sql(f"INSERT INTO {table} VALUES (6, 4.0, 'new'), (9, 5.0, NULL)")
    spark.sql(f"DELETE FROM {table} WHERE k = 8")
    assert after(made, spark, name, 10) == now()

    before = after(made, spark, name, 11)
    spark.sql(f"DROP TABLE {table} PURGE")
    make()
    spark.sql(f"INSERT INTO {table} VALUES (1, 1.0)")
    found = refused(made, spark, name, 12)
    assert found.code == "TABLE_REPLACED"
    assert rows(made, made.graph(name), "items") == before
