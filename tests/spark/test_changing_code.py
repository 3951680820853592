"""Changed code on real Spark: who is asked, what the epoch after it holds, and that what was published stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.model.fingerprint import Fingerprint
from firnline.runtime.advance import complete
from firnline.runtime.approving import approve
from firnline.runtime.job import advanced
from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="{on_change}")

    @{name}.source(keys=["k"], parts=2)
    def numbers(epoch):
        rows = [(epoch.lower * 10 + n, n % 3, n + epoch.lower, 1) for n in range(6)]
        gone = [((epoch.lower - 1) * 10 + n, n % 3, n + epoch.lower - 1, -1) for n in range(3) if epoch.lower]
        return epoch.spark.createDataFrame(rows + gone, "k bigint, g bigint, x bigint, _diff int")

    @{name}.stage(keys=["k"], parts=2)
    def large(numbers):
        return {large}

    @{name}.stage(keys=["g"])
    def totals(large):
        return large.groupBy("g").agg(F.sum("x").alias("x"), F.max("k").alias("k"))
"""
OLD = 'numbers.where(F.col("x") > 1)'
REFACTORED = 'numbers.filter(numbers.x > 1).select("*")'
NEW = 'numbers.where(F.col("x") > 3)'
Make = Callable[..., Project]


def written(project: Make, name: str, large: str, on_change: str) -> Project:
    return project(**{name: PIPELINE.format(name=name, large=large, on_change=on_change)})


def oracle(epoch: int, least: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """What the two stages hold after an epoch, had there always been one code."""
    there: dict[int, tuple[int, int, int]] = {}
    for at in range(epoch + 1):
        there |= {at * 10 + n: (at * 10 + n, n % 3, n + at) for n in range(6)}
        for n in range(3 if at else 0):
            del there[(at - 1) * 10 + n]
    large = [row for row in there.values() if row[2] > least]
    groups = {g: [row for row in large if row[1] == g] for g in {row[1] for row in large}}
    return sorted(large), sorted((g, sum(row[2] for row in of), max(row[0] for row in of)) for g, of in groups.items())


def held(made: Project, name: str, epoch: int) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    graph = made.graph(name)
    large, totals = (rows(made, graph, each, str(epoch)) for each in ("large", "totals"))
    return sorted(large), sorted(totals)


def made_by(made: Project, name: str) -> list[Fingerprint]:
    return [entry.fingerprint for entry in made.log(name, "large").entries()][::-1]


@pytest.mark.parametrize("on_change", ["await_approval", "allow", "reject"])
def test_changed_code_goes_on_if_it_may(project: Make, spark: SparkSession, on_change: str) -> None:
    name = f"asked_{on_change}"
    made = written(project, name, OLD, on_change)
    run_epoch(made, spark, name, "0")
    made = written(project, name, REFACTORED, on_change)
    run_epoch(made, spark, name, "1")
    made = written(project, name, NEW, on_change)
    if on_change != "allow":
        code = "CHANGE_NOT_APPROVED" if on_change == "await_approval" else "CHANGE_REJECTED"
        with pytest.raises(FirnlineError, match=code) as caught:
            run_epoch(made, spark, name, "2")
        assert "'large'" in str(caught.value)
        assert not caught.value.retryable
        assert made.log(name, "large").head().description.upper == 2  # type: ignore[union-attr]
    if on_change == "reject":
        with pytest.raises(FirnlineError, match="CHANGE_REJECTED"):
            approve(made, made.graph(name), "ana")
        return
    if on_change == "await_approval":
        (given,) = approve(made, made.graph(name), "ana")
        assert (given.collection, given.at, given.owner) == ("large", 2, "ana")
        assert given.plan is not None
    run_epoch(made, spark, name, "2")
    run_epoch(made, spark, name, "3")
    assert [held(made, name, epoch) for epoch in range(4)] == [oracle(e, 1 if e < 2 else 3) for e in range(4)]
    first, second, third, fourth = made_by(made, name)
    assert first.plan == second.plan != third.plan == fourth.plan
    assert approve(made, made.graph(name), "ana") == ()
    if on_change == "await_approval":  # back is a change like any other
        made = written(project, name, OLD, on_change)
        with pytest.raises(FirnlineError, match="CHANGE_NOT_APPROVED"):
            run_epoch(made, spark, name, "4")


def rerun(made: Project, spark: SparkSession, name: str, at: int, force: str | None = None) -> str:
    """What a DAG run does whose epoch is there already."""
    epoch = made.graph(name).schedule.epoch_at(at)
    how = advanced(made, name, None, epoch, lambda _: nullcontext(spark), force)
    complete(made, made.graph(name), epoch)
    return how


def test_a_run_for_a_published_epoch_replays_what_other_code_made(project: Make, spark: SparkSession) -> None:
    name = "backfilled"
    made = written(project, name, OLD, "await_approval")
    for epoch in range(4):
        run_epoch(made, spark, name, str(epoch))
    old = [oracle(epoch, 1) for epoch in range(4)]
    assert rerun(made, spark, name, 1) == "kept"
    numbers = made.log(name, "numbers").head()

    made = written(project, name, REFACTORED, "await_approval")
    assert rerun(made, spark, name, 1) == "kept"
    made = written(project, name, NEW, "await_approval")
    with pytest.raises(FirnlineError, match="CHANGE_NOT_APPROVED"):
        rerun(made, spark, name, 2)
    assert [held(made, name, epoch) for epoch in range(4)] == old

    assert {each.collection for each in approve(made, made.graph(name), "ana", since=2)} == {"large"}
    assert rerun(made, spark, name, 1) == "kept"
    assert rerun(made, spark, name, 3) == "computed"
    assert rerun(made, spark, name, 2) == "computed", "backwards"
    new = [oracle(epoch, 3) for epoch in range(4)]
    assert [held(made, name, epoch) for epoch in range(4)] == old[:2] + new[2:]
    assert len({each.plan for each in made_by(made, name)[:2]} | {each.plan for each in made_by(made, name)[2:]}) == 2
    assert made.log(name, "numbers").head() == numbers, "what is not changed is not touched"
    assert rerun(made, spark, name, 2) == "kept"

    assert rerun(made, spark, name, 2, force="force_a") == "computed"
    assert rerun(made, spark, name, 2, force="force_a") == "kept"
    assert made.log(name, "numbers").head() != numbers, "sources are forced too, and take in what they took in"
    assert [held(made, name, epoch) for epoch in range(4)] == old[:2] + new[2:]
