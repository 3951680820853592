"""Random stages over random histories: the derived changes, plain Spark and the Z-set reference agree at every epoch.

A failing case is made small and printed as Python. It comes back by its seed: FIRNLINE_SEEDS=17, or 100:200 for a range.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal

import pytest
from pyspark.sql.connect.session import SparkSession

from tests.spark.grammar import aggregate, expression, stage, window
from tests.spark.grammar.case import Case
from tests.spark.grammar.shrinking import smallest
from tests.spark.histories import History

SAMPLE = range(24)
NIGHTLY = range(1000, 4000)
AS_IN_PRODUCTION = 10
"""At night, one case out of so many runs under the settings that stages run with."""
TRIES = 80
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Random plans are never the same, so compiling each is most of the time; these settings change no answer."""


def seeds() -> list[object]:
    first, _, last = os.environ.get("FIRNLINE_SEEDS", "").partition(":")
    if first:
        return [*range(int(first), int(last or int(first) + 1))]
    return [*SAMPLE, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in NIGHTLY)]


@pytest.fixture
def session(spark: SparkSession, seed: int) -> Iterator[SparkSession]:
    if seed in NIGHTLY and seed % AS_IN_PRODUCTION == 0:
        yield spark
        return
    before = {name: spark.conf.get(name) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield spark
    for name, found in before.items():
        spark.conf.set(name, str(found))


def difference(case: Case, session: SparkSession) -> str | None:
    """What the opinions differ in, or the error that one of them ends with."""
    try:
        case.check(session)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("seed", seeds())
def test_three_opinions_agree(session: SparkSession, seed: int) -> None:
    case = Case.of(seed)
    found = difference(case, session)
    if found is not None:
        kind = found.split(":")[0]
        small = smallest(case, lambda each: (difference(each, session) or "").startswith(kind), TRIES)
        pytest.fail(f"seed {seed}: {difference(small, session)}\n\n{small}", pytrace=False)


def test_a_failing_case_is_made_small() -> None:
    def fails(case: Case) -> bool:
        return any(isinstance(each, stage.Group) for each in stage.walk(case.stage))

    large = [case for case in map(Case.of, SAMPLE) if fails(case) and case.work > 1]
    for case in large:
        small = smallest(case, fails, 1000)
        assert [type(each).__name__ for each in stage.walk(small.stage)] == ["Group", "Source"]
        assert not any(history.upto(case.epochs) for history in small.histories.values())
    assert large


def test_a_case_is_its_seed_and_what_it_prints() -> None:
    names = {**vars(aggregate), **vars(expression), **vars(stage), **vars(window)}
    names |= {"Case": Case, "History": History, "Decimal": Decimal, "nan": float("nan"), "inf": float("inf")}
    for seed in SAMPLE:
        case = Case.of(seed)
        assert repr(Case.of(seed)) == repr(case)
        assert repr(eval(repr(case), dict(names))) == repr(case)
