"""What a source takes from the outside is logged before it is used: a retry uses it, and the sidecar tells it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.engine.reading import SourceEpoch
from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from firnline.tables.determinants import Determinants
from tests.spark.running import rows, run_epoch

Make = Callable[..., Project]

PIPELINE = """
    from pathlib import Path

    import firnline as fl

    HERE = Path(__file__).parents[2]
    {name} = fl.Pipeline("{name}", schedule="@daily", start="2026-01-01")

    def asked():
        with (HERE / "asked").open("a") as file:
            file.write("x")
        return {value}

    @{name}.source(keys=["k"])
    def items(epoch):
        {source}
"""
LOGGED = """rate = epoch.logged("rate", asked)
        if (HERE / "fail").exists():
            raise ValueError("after it was logged")
        return epoch.spark.createDataFrame([(rate,)], "k int")"""
FILES = 'return epoch.files("landing/{epoch:%Y-%m-%d}/*.csv", format="csv", schema="k int, v string")'
PATTERN = "landing/2026-01-01/*.csv"

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"det{next(_numbers)}"


def text(name: str, source: str, value: str = "7") -> dict[str, str]:
    return {name: PIPELINE.format(name=name, source=source, value=value)}


def write(made: Project, file: str, content: str) -> None:
    path = made.settings.root / "landing" / "2026-01-01" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def determinants(made: Project, name: str) -> Determinants:
    return made.determinants(name, "items", made.graph(name).schedule.start)


def in_sidecar(made: Project, name: str) -> dict[str, Any]:
    log = made.log(name, "items")
    (entry,) = log.entries()
    return dict(log.sidecar(entry).determinants)


def die_after_listing(made: Project, spark: SparkSession, name: str, **options: Any) -> None:
    """What is left of an attempt that was killed when it had listed its files."""
    schedule = made.graph(name).schedule
    epoch = SourceEpoch.of(spark, made.settings, schedule, schedule.epoch_at(schedule.start), determinants(made, name))
    epoch.files(PATTERN, format="csv", schema="k int, v string", **options)
    epoch.close()


def run(made: Project, spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    run_epoch(made, spark, name, "2026-01-01")
    return rows(made, made.graph(name), "items")


def refusal(made: Project, spark: SparkSession, name: str, code: str) -> FirnlineError:
    with pytest.raises(FirnlineError) as caught:
        run_epoch(made, spark, name, "2026-01-01")
    assert caught.value.code == code, caught.value
    return caught.value


def test_a_retry_is_given_the_logged_value_and_does_not_ask_again(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, LOGGED))
    (made.settings.root / "fail").touch()
    refusal(made, spark, name, "STAGE_FAILED")
    (made.settings.root / "fail").unlink()
    changed = project(**text(name, LOGGED, value="8"))
    assert run(changed, spark, name) == [(7,)]
    assert (made.settings.root / "asked").read_text() == "x"
    assert in_sidecar(made, name) == {"rate": 7}


def test_every_epoch_asks_for_itself(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, LOGGED.replace("(rate,)", "(rate + epoch.lower.day,)")))
    run_epoch(made, spark, name, "2026-01-02")
    assert (made.settings.root / "asked").read_text() == "xx"
    assert rows(made, made.graph(name), "items", "2026-01-02") == [(8,), (9,)]


def test_files_are_logged_with_size_and_checksum(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, FILES))
    write(made, "a.csv", "k,v\n1,a\n")
    write(made, "b.csv", "k,v\n2,b\n")
    assert run(made, spark, name) == [(1, "a"), (2, "b")]
    logged = determinants(made, name).all()
    (listing,) = logged.values()
    assert list(logged) == [f"files:{PATTERN}"]
    assert [(file, size, len(checksum)) for file, size, checksum in listing["landing/2026-01-01"]] == [
        ("a.csv", 8, 16),
        ("b.csv", 8, 16),
    ]
    assert in_sidecar(made, name) == logged


def test_files_are_logged_before_spark_reads_them(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, FILES))
    write(made, "a.csv", "not,the\ndeclared,header\n")
    die_after_listing(made, spark, name)
    assert list(determinants(made, name).all()) == [f"files:{PATTERN}"]


def test_after_a_crash_the_files_that_were_listed_are_read_and_no_others(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, FILES))
    write(made, "a.csv", "k,v\n1,a\n")
    die_after_listing(made, spark, name)
    write(made, "late.csv", "k,v\n2,b\n")
    assert run(made, spark, name) == [(1, "a")]
    (listing,) = in_sidecar(made, name).values()
    assert [file for file, *_ in listing["landing/2026-01-01"]] == ["a.csv"]


def test_after_a_crash_no_files_are_no_files(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, FILES.replace('format="csv"', 'format="csv", optional=True')))
    die_after_listing(made, spark, name, optional=True)
    write(made, "late.csv", "k,v\n2,b\n")
    assert run(made, spark, name) == []
    assert in_sidecar(made, name) == {f"files:{PATTERN}": {}}


@pytest.mark.parametrize("content", ["k,v\n1,b\n", "k,v\n1,longer\n", None], ids=["same size", "other size", "gone"])
def test_after_a_crash_a_changed_file_is_refused_until_it_is_back(
    project: Make, spark: SparkSession, name: str, content: str | None
) -> None:
    made = project(**text(name, FILES))
    write(made, "a.csv", "k,v\n1,a\n")
    die_after_listing(made, spark, name)
    if content is None:
        (made.settings.root / "landing" / "2026-01-01" / "a.csv").unlink()
    else:
        write(made, "a.csv", content)
    for _ in range(2):
        error = refusal(made, spark, name, "FILE_CHANGED")
        assert "landing/2026-01-01/a.csv" in error.what
        assert not error.retryable
    write(made, "a.csv", "k,v\n1,a\n")
    assert run(made, spark, name) == [(1, "a")]


@pytest.mark.parametrize("has_died", [False, True])
def test_after_an_error_the_mended_file_and_new_ones_are_read(
    project: Make, spark: SparkSession, name: str, has_died: bool
) -> None:
    made = project(**text(name, FILES))
    write(made, "a.csv", "k,v\none,a\n")
    if has_died:  # a listing that an attempt found is forgotten like one that it made
        die_after_listing(made, spark, name)
    refusal(made, spark, name, "TOO_MANY_MALFORMED")
    assert determinants(made, name).all() == {}
    write(made, "a.csv", "k,v\n1,mended\n")
    write(made, "b.csv", "k,v\n2,new\n")
    assert run(made, spark, name) == [(1, "mended"), (2, "new")]


def test_a_file_that_is_missing_may_come_later(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, FILES))
    refusal(made, spark, name, "MISSING_FILE")
    assert determinants(made, name).all() == {}
    write(made, "a.csv", "k,v\n1,a\n")
    assert run(made, spark, name) == [(1, "a")]
