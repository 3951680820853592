"""Where few rows change, the rows that they concern are looked up, and Spark scans no log; the answers are the same."""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.engine import staging
from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from tests.oracle.amplab import comparable
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from datetime import date
    from decimal import Decimal
    from pyspark.sql import functions as F
    from tests.spark.test_finding import changes

    found = fl.Pipeline("found", schedule=1, start=0)

    @found.source(keys=["id"], partition_by=["page"], parts=2)
    def visits(epoch):
        given = changes("visits", epoch.lower)
        return epoch.spark.createDataFrame(given, "id int, page string, day date, cost decimal(12, 2), _diff int")

    @found.source(keys=["page"], parts=2)
    def pages(epoch):
        return epoch.spark.createDataFrame(changes("pages", epoch.lower), "page string, rank bigint, share double, _diff int")

    @found.stage(keys=["day"], refresh="incremental")
    def by_day(visits, pages):
        joined = visits.join(pages.where("rank > 0"), "page")
        return joined.groupBy("day").agg(F.sum("cost").alias("cost"), F.sum("rank").alias("ranks"))

    @found.stage(keys=["id"], refresh="incremental")
    def ranked(visits, pages):
        return visits.join(pages, "page", "left").select("id", "page", "rank")

    @found.stage(keys=["page"], refresh="incremental")
    def dearest(visits):
        return visits.groupBy("page").agg(F.max("cost").alias("cost"))

    @found.stage(keys=["id", "rank"], refresh="incremental")
    def by_share(visits, pages):
        return visits.join(pages, visits.cost.cast("double") == pages.share).select("id", "rank")
"""
NAMES = ("by_day", "ranked", "dearest", "by_share")
Row = tuple[Any, ...]


def _visit(number: int, page: int) -> Row:
    name = None if page == 0 else "" if page == 1 else f"seite é{page}"
    return number, name, date(2026, 1, 1 + number % 9), Decimal(number % 13) / 4


def _page(page: int, rank: int) -> Row:
    return "" if page == 1 else f"seite é{page}", rank, float(page % 5)


VISITS = [
    {n: _visit(n, n % 17) for n in range(200)},
    {n: _visit(n, n % 17) for n in range(3, 200)} | {n: _visit(n, n % 5) for n in (20, 30, 40, 300)},
    {n: _visit(n, n % 17) for n in range(3, 198)} | {n: _visit(n, n % 7) for n in (0, 20, 30, 40, 300)},
]
PAGES = [
    {n: _page(n, n - 2) for n in range(1, 12)},
    {n: _page(n, n - 2) for n in range(2, 12)} | {4: _page(4, 90), 13: _page(13, 5)},
    {n: _page(n, n - 2) for n in range(1, 12)} | {13: _page(13, -5)},
]


def changes(of: str, epoch: int) -> list[Row]:
    """What an epoch changes."""
    states = VISITS if of == "visits" else PAGES
    before, after = ({*states[at].values()} if at >= 0 else set[Row]() for at in (epoch - 1, epoch))
    return [(*row, -1) for row in before - after] + [(*row, 1) for row in after - before]


def expected(epoch: int) -> dict[str, list[Row]]:
    visits, pages = VISITS[epoch].values(), {page: (rank, share) for page, rank, share in PAGES[epoch].values()}
    days, dearest = defaultdict[date, list[tuple[Decimal, int]]](list), defaultdict[str | None, list[Decimal]](list)
    for _, page, day, cost in visits:
        dearest[page].append(cost)
        if page in pages and pages[page][0] > 0:
            days[day].append((cost, pages[page][0]))
    return {
        "by_day": [(day, sum(cost for cost, _ in each), sum(rank for _, rank in each)) for day, each in days.items()],
        "ranked": [(number, page, pages[page][0] if page in pages else None) for number, page, *_ in visits],
        "dearest": [(page, max(costs)) for page, costs in dearest.items()],
        "by_share": [(number, rank) for number, _, _, cost in visits for rank, share in pages.values() if float(cost) == share],
    }


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The physical plans of what is computed from here on, when everything is looked up that can be."""
    seen: list[str] = []
    gathered = staging.gathered

    def spy(found: DataFrame, columns: Any, *of: Any) -> Any:
        with redirect_stdout(io.StringIO()) as said:
            found.explain()
        seen.append(said.getvalue())
        return gathered(found, columns, *of)

    monkeypatch.setattr("firnline.tables.concordance._SMALL", 0)
    monkeypatch.setattr(staging, "gathered", spy)
    return seen


def test_what_is_looked_up_leads_to_the_same(project: Callable[..., Project], spark: SparkSession, plans: list[str]) -> None:
    made = project("concordance = true\n", found=PIPELINE)
    graph = made.declared("found").graph
    for epoch in range(len(VISITS)):
        plans.clear()
        run_epoch(made, spark, "found", str(epoch))
        for name in NAMES:
            assert rows(made, graph, name) == comparable(expected(epoch)[name]), (name, epoch)
        # Rows are not looked up by floating numbers: of these joins, one scans.
        assert epoch == 0 or sum("BatchScan" in plan for plan in plans) <= 1, plans


KEYED = """
    import firnline as fl
    from tests.spark.test_finding import GIVEN

    NAME = fl.Pipeline("NAME", schedule=1, start=0)

    @NAME.source(keys=["page", "number"], partition_by=["page"], parts=2)
    def given(epoch):
        return epoch.spark.createDataFrame(GIVEN[epoch.lower], "page string, number bigint, cost decimal(12, 2), _diff int")
"""
_OLD = [(page, number, Decimal(number), 1) for page in (None, "", "é") for number in range(20)]
GIVEN: dict[int, list[Row]] = {}


def _explain_checks(monkeypatch: pytest.MonkeyPatch, plans: list[str]) -> None:
    """Let the plan of every check of keys be told."""
    check_keys = staging.check_keys

    def spy(weights: DataFrame, *given: Any, **how: Any) -> None:
        with redirect_stdout(io.StringIO()) as said:
            weights.explain()
        plans.append(said.getvalue())
        check_keys(weights, *given, **how)

    monkeypatch.setattr(staging, "check_keys", spy)


CASES: list[tuple[list[Row], str | None]] = [
    ([("é", 3, Decimal(3), -1), ("é", 3, Decimal(9), 1), ("new", 3, Decimal(1), 1)], None),
    ([(None, 20, Decimal(1), 1), ("x", 3, Decimal(1), 1)], None),
    ([("é", 4, Decimal(9), 1)], "KEY_NOT_UNIQUE.*page='é', number=4"),
    ([(None, 4, Decimal(9), 1)], "KEY_NOT_UNIQUE.*page=None, number=4"),
    ([("x", 1, Decimal(1), 1), ("x", 1, Decimal(2), 1)], "KEY_NOT_UNIQUE.*page='x', number=1"),
    ([("", 4, Decimal(9), -1)], "NEGATIVE_WEIGHT.*page='', number=4"),
    ([("gone", 1, Decimal(1), -1)], "NEGATIVE_WEIGHT.*page='gone', number=1"),
    ([("é", 2, Decimal(2), -1)], "NEGATIVE_WEIGHT.*page='é', number=2"),
]


@pytest.mark.parametrize(("last", "code"), CASES)
def test_the_keys_of_few_rows_are_checked_without_a_scan(
    project: Callable[..., Project],
    spark: SparkSession,
    plans: list[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    last: list[Row],
    code: str | None,
) -> None:
    GIVEN.update({0: _OLD, 1: [("é", 2, Decimal(2), -1)], 2: last})
    name = f"keyed_{request.node.callspec.indices['last']}"
    made = project("concordance = true\n", **{name: KEYED.replace("NAME", name)})
    _explain_checks(monkeypatch, plans)
    for epoch in range(2):
        run_epoch(made, spark, name, str(epoch))
    plans.clear()
    with pytest.raises(FirnlineError, match=code) if code else nullcontext():
        run_epoch(made, spark, name, "2")
    assert len(plans) == 2
    assert not any("BatchScan" in plan for plan in plans), plans
    expected = Counter({row[:3]: 1 for row in _OLD})
    for row in [*GIVEN[1], *(() if code else last)]:
        expected[row[:3]] += row[3]
    found = rows(made, made.declared(name).graph, "given")
    assert found == comparable([row for row, weight in expected.items() if weight])


@pytest.mark.parametrize(("last", "code"), CASES)
def test_the_keys_of_many_rows_are_checked_within_their_bounds(
    project: Callable[..., Project],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    last: list[Row],
    code: str | None,
) -> None:
    GIVEN.update({0: _OLD, 1: [("é", 2, Decimal(2), -1)], 2: last})
    name = f"many_{request.node.callspec.indices['last']}"
    made = project(**{name: KEYED.replace("NAME", name)})
    monkeypatch.setattr(staging, "FEW", -1)
    for epoch in range(2):
        run_epoch(made, spark, name, str(epoch))
    with pytest.raises(FirnlineError, match=code) if code else nullcontext():
        run_epoch(made, spark, name, "2")


def test_files_of_other_keys_are_not_read_to_check_keys(
    project: Callable[..., Project], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = KEYED.replace("NAME", "apart").replace('keys=["page", "number"], partition_by=["page"], parts=2', 'keys=["number"]')
    GIVEN.update({epoch: [("a", epoch * 10 + at, Decimal(1), 1) for at in range(10)] for epoch in range(4)})
    made = project(apart=text)
    monkeypatch.setattr(staging, "FEW", -1)
    plans = list[str]()
    _explain_checks(monkeypatch, plans)
    for epoch in range(4):
        run_epoch(made, spark, "apart", str(epoch))
    pruned = [re.search(rf"filters=[^|]*number >= {epoch}0, number <= {epoch}9", plans[epoch]) for epoch in range(1, 4)]
    assert any(pruned), plans  # on a busy machine Spark may lose what it observed; then all is read
