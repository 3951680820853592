"""Bad input gives a clear error with stage, epoch and the user's line; nothing half-visible; the next attempt starts clean."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.approving import approve
from firnline.runtime.project import Project
from firnline.runtime.status import status
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule="@daily", start="2026-01-01")

    @{name}.source(keys=["k"])
    def items(epoch):
        {source}

    @{name}.stage(keys=["k"])
    def doubled(items):
        {stage}
"""
ROWS = 'return epoch.spark.createDataFrame([(1, "a"), (2, None)], "k int, v string")'
SAME = "return items"
CSV = 'return epoch.files("landing/{epoch:%Y-%m-%d}/*.csv", format="csv", schema="k int, v string")'
JSON = 'return epoch.files("landing/*.json", format="json", schema="k int, v string")'
PARQUET = 'return epoch.files("landing/*.parquet", format="parquet", schema="k int, v string")'

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"bad{next(_numbers)}"


def text(name: str, source: str = ROWS, stage: str = SAME) -> dict[str, str]:
    return {name: PIPELINE.format(name=name, source=source, stage=stage)}


def fails(made: Project, spark: SparkSession, name: str, code: str, line_of: str, message: str) -> FirnlineError:
    """The run fails with the code, names stage and epoch, and points at the line of the user's file that holds a text."""
    with pytest.raises(FirnlineError) as caught:
        run_epoch(made, spark, name, "2026-01-01")
    error = caught.value
    path = made.settings.root / "include" / "pipelines" / f"{name}.py"
    line = next(number for number, found in enumerate(path.read_text().splitlines(), 1) if line_of in found)
    assert (error.code, str(error.where)) == (code, f"{path}:{line}")
    assert "2026-01-01" in error.what
    assert re.search(message, str(error)), str(error)
    assert made.control(name).frontier() is None
    return error


STAGES = {
    "raises": ("raise ValueError('no luck')", "STAGE_FAILED", "raise ValueError", "'doubled' at 2026-01-01: ValueError: no luck"),
    "unknown column": ('return items.select("k", "nope")', "STAGE_FAILED", "nope", "nope"),
    "no frame": ("return 42", "NOT_A_DATAFRAME", "@bad", "returned int"),
    "nothing": ("pass", "NOT_A_DATAFRAME", "@bad", "returned NoneType"),
    "key missing": ('return items.select("v")', "WRONG_COLUMNS", "@bad", "no column k; its columns: v"),
    "reserved column": ('return items.withColumn("_epoch", F.lit(1))', "RESERVED_COLUMN", "@bad", "_epoch"),
    "weights of a stage": ('return items.withColumn("_diff", F.lit(1))', "RESERVED_COLUMN", "@bad", "_diff"),
    "column twice": ('return items.select("k", "v", F.lit(1).alias("V"))', "WRONG_COLUMNS", "@bad", "more than once"),
    "type": ('return items.withColumn("i", F.expr("interval 1 day"))', "UNSUPPORTED_TYPE", "@bad", "interval"),
    "map": ('return items.withColumn("m", F.create_map("k", "v"))', "UNSUPPORTED_TYPE", "@bad", "'m' holds a map"),
    "void": ('return items.withColumn("n", F.lit(None))', "UNSUPPORTED_TYPE", "@bad", "void"),
    "not unique": ("return items.union(items)", "KEY_NOT_UNIQUE", "@bad", "k="),
    "fails while running": (
        """return items.withColumn("v", F.expr("if(k < 2, v, raise_error('boom'))"))""",
        "STAGE_FAILED",
        "@bad",
        "boom",
    ),
    "division": ('return items.withColumn("x", F.lit(1) / (F.col("k") - 1))', "STAGE_FAILED", "F.lit(1) /", "DIVIDE_BY_ZERO"),
}


@pytest.mark.parametrize("case", STAGES)
def test_a_stage_that_goes_wrong_names_itself_and_the_next_attempt_is_clean(
    project: Make, spark: SparkSession, name: str, case: str
) -> None:
    stage, code, line_of, message = STAGES[case]
    made = project(**text(name, stage=stage))
    if line_of == "@bad":
        line_of = f"@{name}.stage"
    fails(made, spark, name, code, line_of, message)
    assert "doubled" not in made.catalog.names(name) or made.log(name, "doubled").load().current is None  # type: ignore[union-attr]
    (failed,) = [line for line in status(made, made.graph(name)).collections if line.collection == "doubled"]
    assert code in failed.failed[0]
    if "doubled" in made.catalog.names(name):
        assert not made.log(name, "doubled").load().snapshots, "staging is gone"  # type: ignore[union-attr]
    mended = project(**text(name))
    run_epoch(mended, spark, name, "2026-01-01")
    assert rows(mended, mended.graph(name), "doubled") == [(1, "a"), (2, None)]
    assert not [line.failed for line in status(mended, mended.graph(name)).collections if line.failed]


def test_a_duplicate_key_is_refused_and_its_repair_published(project: Make, spark: SparkSession, name: str) -> None:
    twice = 'return epoch.spark.createDataFrame([(1, "a"), (1, "b")], "k int, v string")'
    made = project(**text(name, source=twice))
    fails(made, spark, name, "KEY_NOT_UNIQUE", f"@{name}.source", "k=1")
    mended = project(**text(name))
    run_epoch(mended, spark, name, "2026-01-01")
    assert rows(mended, mended.graph(name), "doubled") == [(1, "a"), (2, None)]


def test_the_same_row_twice_is_a_duplicate_too(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source='return epoch.spark.createDataFrame([(1, "a")] * 2, "k int, v string")'))
    fails(made, spark, name, "KEY_NOT_UNIQUE", f"@{name}.source", "k=1")


def test_removing_what_is_not_there_is_refused(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source='return epoch.spark.createDataFrame([(1, "a", -1)], "k int, v string, _diff int")'))
    fails(made, spark, name, "NEGATIVE_WEIGHT", f"@{name}.source", "k=1")


def test_a_key_that_went_may_come_back_among_inserts_only(project: Make, spark: SparkSession, name: str) -> None:
    changes = '[[(1, "a", 1)], [(1, "a", -1)], [(1, "b", 1)], [(1, "c", 1)]][epoch.now.day - 2]'
    made = project(**text(name, source=f'return epoch.spark.createDataFrame({changes}, "k int, v string, _diff int")'))
    for day in (1, 2, 3):
        run_epoch(made, spark, name, f"2026-01-0{day}")
    assert rows(made, made.graph(name), "items") == [(1, "b")]
    with pytest.raises(FirnlineError, match="KEY_NOT_UNIQUE"):
        run_epoch(made, spark, name, "2026-01-04")


def test_of_changes_that_cancel_out_the_sum_counts(project: Make, spark: SparkSession, name: str) -> None:
    changes = '[(1, "a", 1), (1, "a", -1), (2, "b", 2), (2, "b", -1), (3, "c", 0)]'
    given = (
        f'return epoch.spark.createDataFrame({changes} if epoch.now.day == 2 else [(3, "d", 1)], "k int, v string, _diff int")'
    )
    made = project(**text(name, source=given, stage='return items.where("k > 0")'))
    run_epoch(made, spark, name, "2026-01-01")
    assert rows(made, made.graph(name), "doubled") == rows(made, made.graph(name), "items") == [(2, "b")]
    run_epoch(made, spark, name, "2026-01-02")
    assert rows(made, made.graph(name), "doubled") == rows(made, made.graph(name), "items") == [(2, "b"), (3, "d")]


def test_a_null_weight_is_refused(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source='return epoch.spark.createDataFrame([(1, "a", None)], "k int, v string, _diff int")'))
    fails(made, spark, name, "STAGE_FAILED", f"@{name}.source", "_diff is null")


def test_columns_that_changed_are_refused(project: Make, spark: SparkSession, name: str) -> None:
    daily = 'return epoch.spark.createDataFrame([(epoch.lower.day, "a")], "k int, v string")'
    made = project(**text(name, source=daily))
    run_epoch(made, spark, name, "2026-01-01")
    changed = project(**text(name, source=daily, stage='return items.withColumn("v", F.length("v"))'))
    approve(changed, changed.graph(name), "me")
    with pytest.raises(FirnlineError, match=r"WRONG_COLUMNS.*returned v int where the collection has v string"):
        run_epoch(changed, spark, name, "2026-01-02")
    assert rows(changed, changed.graph(name), "doubled") == [(1, "a")]


def write(root: Path, path: str, content: str | bytes) -> None:
    file = root / "landing" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


FILES = {
    "missing": (CSV, {}, "MISSING_FILE", "no file matches 'landing/2026-01-01/"),
    "other header": (CSV, {"2026-01-01/a.csv": "x,y\n1,a\n"}, "SCHEMA_MISMATCH", "header"),
    "a new column": (CSV, {"2026-01-01/a.csv": "k,v,w\n1,a,new\n"}, "SCHEMA_MISMATCH", "header"),
    "fewer columns": (CSV, {"2026-01-01/a.csv": "k\n1\n"}, "SCHEMA_MISMATCH", "header"),
    "not parquet": (PARQUET, {"a.parquet": "nothing of the kind, but long enough for a footer"}, "UNREADABLE_FILE", "parquet"),
    "too many": (CSV, {"2026-01-01/a.csv": "k,v\n1,a\none,b\n"}, "TOO_MANY_MALFORMED", "1 of 2 records.*k: 'one' is not int"),
    "too many in json": (JSON, {"a.json": '{"k": 1}\nnot json\n'}, "TOO_MANY_MALFORMED", "not a JSON object"),
    "outside": ('return epoch.files("../*.csv", format="csv", schema="k int")', {}, "PATH_OUTSIDE_ROOT", "outside"),
    "address": ('return epoch.files("s3://bucket/*.csv", format="csv", schema="k int")', {}, "BAD_OPTION", "is an address"),
    "absolute": ('return epoch.files("/etc/passwd", format="csv", schema="k int")', {}, "PATH_OUTSIDE_ROOT", "/etc/passwd"),
    "format": ('return epoch.files("landing/a", format="xml", schema="k int")', {}, "BAD_OPTION", "xml"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_with_its_reason(project: Make, spark: SparkSession, name: str, case: str) -> None:
    source, files, code, message = FILES[case]
    made = project(**text(name, source=source))
    for path, content in files.items():
        write(made.settings.root, path, content)
    line_of = source if code in ("MISSING_FILE", "PATH_OUTSIDE_ROOT", "BAD_OPTION") or source == PARQUET else f"@{name}.source"
    fails(made, spark, name, code, line_of, message)


def test_other_parts_than_the_log_has_are_refused(project: Make, spark: SparkSession, name: str) -> None:
    daily = 'return epoch.spark.createDataFrame([(epoch.lower.day, "a")], "k int, v string")'
    run_epoch(project(**text(name, source=daily)), spark, name, "2026-01-01")
    source = text(name, source=daily)
    source[name] = source[name].replace('.stage(keys=["k"])', '.stage(keys=["k"], parts=2)')
    with pytest.raises(FirnlineError, match=r"PLACEMENT_CHANGED.*parts=1"):
        run_epoch(project(**source), spark, name, "2026-01-02")


def test_an_epoch_that_fails_leaves_nothing_in_quarantine(project: Make, spark: SparkSession, name: str) -> None:
    made = project("quarantine_fraction = 0.5\n", **text(name, source=CSV))
    write(made.settings.root, "2026-01-01/a.csv", "k,v\n1,a\none,b\n1,again\n")
    fails(made, spark, name, "KEY_NOT_UNIQUE", f"@{name}.source", "k=1")
    write(made.settings.root, "2026-01-01/a.csv", "k,v\n1,a\ntwo,b\n")
    run_epoch(made, spark, name, "2026-01-01")
    assert [record for _, _, record in rows(made, made.graph(name), "items__quarantine")] == ["two,b"]


def test_parquet_of_another_schema_is_refused(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source=PARQUET))
    folder = made.settings.root / "landing"
    spark.range(3).selectExpr("id as k", "'x' as v").write.parquet(str(folder / "a.parquet"))
    fails(made, spark, name, "SCHEMA_MISMATCH", PARQUET, "expected k int, found k bigint, v string")
    shutil.rmtree(folder)
    spark.range(3).selectExpr("int(id) as k", "'x' as v").write.parquet(str(folder / "a.parquet"))
    spark.range(3, 4).selectExpr("int(id) as k", "'x' as w").write.parquet(str(folder / "b.parquet"))
    fails(made, spark, name, "SCHEMA_MISMATCH", PARQUET, "no column v")


@pytest.mark.parametrize("source", [JSON, PARQUET])
def test_columns_that_nobody_declared_are_not_read(project: Make, spark: SparkSession, name: str, source: str) -> None:
    made = project(**text(name, source=source))
    folder = made.settings.root / "landing"
    if source == JSON:
        write(made.settings.root, "a.json", '{"k": 1, "v": "a", "new": [1]}\n{"new": 2, "k": 2, "v": null}\n')
    else:
        folder.mkdir()
        table = pa.table({"new": [1, 2], "k": pa.array([1, 2], pa.int32()), "v": ["a", None]})
        pq.write_table(table, folder / "a.parquet")
    run_epoch(made, spark, name, "2026-01-01")
    assert rows(made, made.graph(name), "items") == [(1, "a"), (2, None)]


def test_malformed_records_within_the_limit_go_to_quarantine(project: Make, spark: SparkSession, name: str) -> None:
    made = project("quarantine_fraction = 0.5\n", **text(name, source=CSV, stage='return items.select("k")'))
    write(made.settings.root, "2026-01-01/a.csv", 'k,v\n1,a\none,b\n3,c,d\n2,"ü, x"\n')
    run_epoch(made, spark, name, "2026-01-01")
    graph = made.graph(name)
    found = rows(made, graph, "items__quarantine")
    assert sorted(reason for reason, _, _ in found) == ["is not a record of 2 fields", "k: 'one' is not int"]
    (line,) = [line for line in status(made, graph).collections if line.collection == "items"]
    assert line.malformed == 2
    # A value that is malformed in a column that no stage asks for is malformed all the same.
    assert (1,) in rows(made, graph, "doubled")


def test_a_link_below_a_folder_does_not_lead_outside(project: Make, spark: SparkSession, name: str, tmp_path: Path) -> None:
    source = 'return epoch.files("landing", format="csv", schema="k int, v string")'
    made = project(**text(name, source=source))
    outside = tmp_path.parent / f"{name}.csv"
    outside.write_text("k,v\n1,secret\n")
    write(made.settings.root, "deep/a.csv", "k,v\n2,b\n")
    (made.settings.root / "landing" / "deep" / "link.csv").symlink_to(outside)
    fails(made, spark, name, "PATH_OUTSIDE_ROOT", source, "link.csv")


def test_files_are_read_by_their_very_names(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source=CSV))
    for position, file in enumerate(("a.csv", "[ab].csv", "{a,b}.csv", "a?.csv", "back\\slash.csv", "ü 雪,%20.csv")):
        write(made.settings.root, f"2026-01-01/{file}", f"k,v\n{position},x\n")
    run_epoch(made, spark, name, "2026-01-01")
    assert [row[0] for row in rows(made, made.graph(name), "items")] == list(range(6))


def test_an_optional_file_may_be_missing(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, source=CSV.replace('format="csv"', 'format="csv", optional=True')))
    run_epoch(made, spark, name, "2026-01-01")
    assert rows(made, made.graph(name), "items") == []


def test_udfs_from_the_project_run_in_workers(project: Make, spark: SparkSession, name: str) -> None:
    stage = "return items.withColumn('v', F.udf(lambda k: helper(k), 'string')('k'))"
    source = text(name, stage=stage)
    source[name] = source[name].replace("    from pyspark", "    from include.helping import helper\n    from pyspark", 1)
    made = project(**source)
    (made.settings.root / "include" / "helping.py").write_text("def helper(k):\n    return f'<{k}>'\n")
    run_epoch(made, spark, name, "2026-01-01")
    assert rows(made, made.graph(name), "doubled") == [(1, "<1>"), (2, "<2>")]
