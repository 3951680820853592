"""How what a source returns becomes a delta. What is expected is made of what was delivered, in plain Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.plan import looking_up
from firnline.runtime import finding
from firnline.runtime.certificate import certify
from firnline.runtime.maintain import maintained
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.rescale import rescale, rescales
from firnline.runtime.verify import verify
from tests.oracle.amplab import comparable
from tests.spark.running import rows, run_epoch
from tests.verifying import local, taken

Make = Callable[..., Project]
Row = tuple[Any, ...]

PIPELINE = """
    import firnline as fl
    from decimal import Decimal
    from math import inf, nan
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="1 epoch")
    DELIVERED = {delivered!r}

    @{name}.source(keys=["k"], {options})
    def items(epoch):
        return epoch.spark.createDataFrame(DELIVERED[epoch.lower], "{schema}")

    @{name}.stage(keys=["g"])
    def totals(items):
        return items.groupBy(F.coalesce("v", F.lit("none")).alias("g")).agg(F.count("*").alias("n"))
"""
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"taken_in_{os.getpid()}_{next(_numbers)}"


def text(name: str, delivered: Sequence[Sequence[Row]], options: str, schema: str = "k int, v string") -> dict[str, str]:
    return {name: PIPELINE.format(name=name, delivered=delivered, options=options, schema=schema)}


def after(made: Project, spark: SparkSession, name: str, epoch: int) -> list[Row]:
    run_epoch(made, spark, name, str(epoch))
    return rows(made, made.graph(name), "items")


def refused(made: Project, spark: SparkSession, name: str, epoch: int) -> FirnlineError:
    before = made.log(name, "items").head()
    with pytest.raises(FirnlineError) as caught:
        run_epoch(made, spark, name, str(epoch))
    table = made.log(name, "items").load()
    assert made.log(name, "items").head() == before, "nothing is published"
    assert table is not None
    assert not [each for each in table.snapshots.values() if each.id not in {of.id for of in table.main_line()}], "nor staged"
    return caught.value


def same(found: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Whether these are the same rows, NaN being one value, and -0.0 and 0.0 another."""
    settled = [tuple(each + 0.0 if isinstance(each, float) else each for each in row) for row in expected]
    return repr(found) == repr(comparable(settled))


def counted(items: Sequence[Row]) -> dict[str, int]:
    groups = [row[1] or "none" for row in items]
    return {group: groups.count(group) for group in groups}


def totals(made: Project, name: str) -> Mapping[str, int]:
    return {str(group): int(number) for group, number in rows(made, made.graph(name), "totals")}


def lose(made: Project, name: str, epoch: int) -> None:
    """One of the epoch's data files."""
    manifests = [each for revision in taken(made, name, "items").revisions for each in revision.manifests or ()]
    local(min(data.file.path for each in manifests for data in each.data if data.first == epoch)).unlink()


def mended(made: Project, spark: SparkSession, name: str) -> None:
    """The damage is found, and repaired for good."""
    assert verify(made, name).problems
    repair(made, lambda: spark, name)
    assert verify(made, name, spark).problems == ()


DUMPS = [
    [],
    [(1, "a", Decimal("1.50"), float("nan")), (2, None, None, 0.0), (3, "雪", Decimal("0.10"), 1.0), (None, "d", None, None)],
    [(1, "a", Decimal("1.5"), float("nan")), (2, None, None, -0.0), (3, "雪", Decimal("0.10"), 1.0), (None, "d", None, None)],
    [(1, "a", Decimal("1.50"), float("nan")), (2, "b", None, 0.0), (3, None, None, None), (None, "e", None, None)],
    [(2, "b", None, 0.0), (3, None, None, None), (4, "a", Decimal("7.00"), 2.5), (5, "a", None, float("inf"))],
    [(1, "a", Decimal("1.50"), float("nan")), (2, "b", None, 0.0), (5, "a", None, float("inf"))],
]


def test_of_a_dump_the_difference_is_kept(project: Make, spark: SparkSession, name: str) -> None:
    schema = "k int, v string, amount decimal(9, 2), x double"
    made = project(**text(name, DUMPS, "parts=4, snapshot=True", schema))
    for epoch in range(5):
        assert same(after(made, spark, name, epoch), DUMPS[epoch]), f"after {epoch}"
        assert totals(made, name) == counted(DUMPS[epoch])
    sizes = {entry.lower: entry.rows for entry in made.log(name, "items").entries()}
    assert sizes == {0: 0, 1: 4, 2: 0, 3: 6, 4: 4}, "what stays as it is is not written"

    lose(made, name, 3)
    lose(made, name, 4)
    mended(made, spark, name)
    assert same(rows(made, made.graph(name), "items"), DUMPS[4])
    assert [each.difference for each in certify(made, spark, f"{name}.items")] == [None] * 3

    assert [done.error for done in maintained(made, made.graph(name), lambda: spark, timedelta()) if done.error] == []
    assert same(after(made, spark, name, 5), DUMPS[5]), "over merged layers"
    assert [each.difference for each in certify(made, spark, f"{name}.items", "5")] == [None]


def test_a_dump_that_lost_the_world_is_refused(project: Make, spark: SparkSession, name: str) -> None:
    full = [(number, "a") for number in range(10)]

    def given(*delivered: Sequence[Row], shrink: str = "") -> Project:
        return project(**text(name, delivered, f"snapshot=True, {shrink}"))

    made = given(full, [])
    assert len(after(made, spark, name, 0)) == 10
    error = refused(made, spark, name, 1)
    assert error.code == "DUMP_SHRANK"
    assert "the dump has 0 rows where there were 10: it lost 100%, more than shrink=0.5 allows" in error.what

    assert refused(given(full, full[:4]), spark, name, 1).code == "DUMP_SHRANK"
    assert after(given(full, full[:5]), spark, name, 1) == comparable(full[:5]), "half of them may go"
    assert refused(given(full, full[:5], full[:3], shrink="shrink=0.3"), spark, name, 2).code == "DUMP_SHRANK"
    assert after(given(full, full[:5], [], shrink="shrink=1"), spark, name, 2) == [], "if it is meant"
    assert refused(given(full, full[:5], [], [(1, "a"), (1, "a")]), spark, name, 3).code == "KEY_NOT_UNIQUE"


def test_changes_are_told_by_iceberg_words_too(project: Make, spark: SparkSession, name: str) -> None:
    good = [
        [(1, "a", "INSERT", 0), (2, "b", "insert", 0)],
        [(1, "a", "UPDATE_BEFORE", 0), (1, "c", "update_after", 1), (2, "b", "DELETE", 2)],
    ]

    def given(kind: str | None, options: str = "", fourth: str = "_change_ordinal") -> Project:
        columns = f"k int, v string, _change_type string, {fourth} int"
        return project(**text(name, [*good, [(3, "d", kind, 1)]], options, columns))

    made = given("UPSERT")
    assert after(made, spark, name, 0) == [(1, "a"), (2, "b")]
    assert after(made, spark, name, 1) == [(1, "c")]
    assert totals(made, name) == {"c": 1}
    error = refused(made, spark, name, 2)
    assert (error.code, "_change_type is UPSERT" in error.what) == ("STAGE_FAILED", True)
    assert "_change_type is null" in refused(given(None), spark, name, 2).what
    assert refused(given("INSERT", fourth="_diff"), spark, name, 2).code == "WRONG_COLUMNS"
    assert refused(given("INSERT", "snapshot=True", "_diff"), spark, name, 2).code == "RESERVED_COLUMN"


def fresh(delivered: Sequence[Sequence[Row]], horizon: int | None = None) -> list[list[Row]]:
    """What each epoch counts, of what is delivered: the least row of every id that was not seen, or not for so many epochs."""
    seen: dict[Any, int] = {}
    counted: list[list[Row]] = []
    for epoch, records in enumerate(delivered):
        least: dict[Any, Row] = {}
        for row in records:
            least[row[0]] = min(least.get(row[0], row), row, key=lambda each: (each[1] is not None, each[1] or ""))
        new = [row for key, row in least.items() if key not in seen or (horizon is not None and seen[key] < epoch - horizon)]
        seen.update({row[0]: epoch for row in new})
        counted.append(new)
    return counted


def together(epochs: Sequence[Sequence[Row]]) -> list[Row]:
    return [row for each in epochs for row in each]


DELIVERED = [
    [("a", "1"), ("b", "2"), ("a", "1"), ("b", None), (None, "n")],
    [("a", "9"), ("c", "1"), ("c", "1"), ("雪", "1")],
    [],
    [("a", "1"), (None, "m"), ("d", "4"), ("雪", "2")],
    [("a", "1"), ("b", "2"), ("c", "3"), ("d", "5"), ("e'`", "1")],
    [("e'`", "1"), ("f", "1"), ("", "1"), ("c", "7")],
    [("f", "1"), ("", "1"), ("g", "2"), ("a", "0"), (None, "n")],
]


@pytest.fixture
def looks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows there are, they are found through the concordance."""
    monkeypatch.setenv("FIRNLINE_CONCORDANCE", "true")
    monkeypatch.setattr("firnline.tables.concordance._SMALL", 0)


@pytest.mark.parametrize("how", ["scanned", "filtered", "found"])
def test_a_record_that_is_delivered_twice_counts_once(
    project: Make, spark: SparkSession, name: str, how: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if how == "found":
        request.getfixturevalue("looks_up")
    else:
        monkeypatch.setattr(finding, "FEW_ROWS", -1)
        monkeypatch.setattr(looking_up, "LEAST_ROWS", 0 if how == "filtered" else looking_up.LEAST_ROWS)
    expected = fresh(DELIVERED)

    def given(parts: int) -> Project:
        return project(**text(name, DELIVERED, f"parts={parts}, dedup=True", "k string, v string"))

    made = given(4)
    for epoch in range(5):
        assert after(made, spark, name, epoch) == comparable(together(expected[: epoch + 1])), f"after {epoch}"
        assert totals(made, name) == counted(together(expected[: epoch + 1]))
    assert how != "found" or any(made.settings.work.glob("concordance/*/*"))
    lose(made, name, 3)
    lose(made, name, 4)
    mended(made, spark, name)
    assert [each.difference for each in certify(made, spark, f"{name}.items")] == [None] * 4

    assert [done.error for done in maintained(made, made.graph(name), lambda: spark, timedelta()) if done.error] == []
    made = given(2)
    assert refused(made, spark, name, 5).code == "PLACEMENT_CHANGED"
    for planned in rescales(made, made.graph(name), "items"):
        rescale(made, lambda: spark, planned)
    assert after(made, spark, name, 5) == comparable(together(expected[:6])), "over merged layers, and cut anew"
    lose(made, name, 5)
    mended(made, spark, name)
    assert rows(made, made.graph(name), "items") == comparable(together(expected[:6]))


@pytest.mark.usefixtures("looks_up")
def test_seen_records_are_forgotten_behind_the_horizon(project: Make, spark: SparkSession, name: str) -> None:
    made = project(**text(name, DELIVERED, 'dedup=True, dedup_horizon="2 epochs"', "k string, v string"))
    expected = [(*row, epoch) for epoch, new in enumerate(fresh(DELIVERED, 2)) for row in new]
    assert len(expected) > len(together(fresh(DELIVERED))), "some come again"
    for epoch in range(7):
        found = after(made, spark, name, epoch)
        assert found == comparable([row for row in expected if row[2] <= epoch]), f"after {epoch}"
        assert totals(made, name) == counted([row for row in expected if row[2] <= epoch])
        if epoch == 4:
            assert [done.error for done in maintained(made, made.graph(name), lambda: spark, timedelta()) if done.error] == []
    assert {each.difference for each in certify(made, spark, f"{name}.items")} == {None}
