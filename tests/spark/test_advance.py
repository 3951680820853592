"""A task for epoch e advances its collection through e, in whatever order, however often, with whatever at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.advance import Outcome, advance, complete, is_kept
from firnline.runtime.cut import visible_upto
from firnline.runtime.project import Project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="allow")

    @{name}.source(keys=["k"], parts=2)
    def numbers(epoch):
        if epoch.lower == 2:
            return epoch.spark.createDataFrame([], "k bigint, v string, _diff int")
        if epoch.lower == 3:
            return epoch.spark.createDataFrame([(0, "zero", -1), (0, "null", 1), (None, "ü", 1)], "k bigint, v string, _diff int")
        return epoch.spark.createDataFrame([(epoch.lower, "zero"), (epoch.lower + 10, None)], "k bigint, v string")

    @{name}.stage(keys=["v"])
    def per_value(numbers):
        return numbers.groupBy("v").agg(F.count("*").alias("n"){extra})
"""

Make = Callable[..., Project]


def source(name: str, extra: str = "") -> dict[str, str]:
    return {name: PIPELINE.format(name=name, extra=extra)}


def test_missing_predecessors_are_computed_first_and_in_order(project: Make, spark: SparkSession) -> None:
    made = project(**source("catchup"))
    outcomes = run_epoch(made, spark, "catchup", "3")
    assert [(outcome.collection, outcome.epoch.lower, outcome.how) for outcome in outcomes] == [
        (name, epoch, "computed") for name in ("numbers", "per_value") for epoch in range(4)
    ]
    graph = made.graph("catchup")
    assert rows(made, graph, "per_value", "0") == [("zero", 1), (None, 1)][::1]
    assert rows(made, graph, "numbers", "3") == sorted([(0, "null"), (None, "ü"), (1, "zero"), (10, None), (11, None)], key=repr)
    assert rows(made, graph, "per_value", "3") == sorted([("null", 1), ("ü", 1), ("zero", 1), (None, 2)], key=repr)


def test_backwards_and_doubled_runs_find_nothing_to_do(project: Make, spark: SparkSession) -> None:
    made = project(**source("backwards"))
    first = run_epoch(made, spark, "backwards", "3")
    again = [outcome for epoch in ("3", "2", "1", "0", "0") for outcome in run_epoch(made, spark, "backwards", epoch)]
    assert {outcome.how for outcome in first} == {"computed"}
    assert {outcome.how for outcome in again} == {"kept"}
    assert len(list(made.log("backwards", "numbers").entries())) == 4


def test_an_empty_epoch_is_published_too(project: Make, spark: SparkSession) -> None:
    made = project(**source("empty"))
    outcomes = run_epoch(made, spark, "empty", "2")
    assert [outcome.rows for outcome in outcomes if outcome.epoch.lower == 2] == [0, 0]
    assert made.graph("empty").schedule.label(visible_upto(made, made.graph("empty"))) == "3"


def test_two_attempts_at_once_publish_once(project: Make, spark: SparkSession) -> None:
    made = project(**source("doubled"))
    declared = made.declared("doubled")
    epoch = declared.graph.schedule.epoch_at(1)
    results: list[Outcome | BaseException] = []
    barrier = threading.Barrier(3)

    def attempt() -> None:
        try:
            session = spark.newSession() if hasattr(spark, "newSession") else spark
            barrier.wait()
            results.extend(advance(made, declared, session, "numbers", epoch))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [result for result in results if isinstance(result, BaseException)]
    computed = sorted(result.epoch.lower for result in results if isinstance(result, Outcome) and result.how == "computed")
    assert computed == [0, 1]
    assert [entry.lower for entry in made.log("doubled", "numbers").entries()] == [1, 0]
    table = made.log("doubled", "numbers").load()
    assert table is not None
    assert len(table.snapshots) == 2, "the losers discarded their own staging"


def test_a_stage_before_its_input_is_refused_as_retryable(project: Make, spark: SparkSession) -> None:
    made = project(**source("early"))
    declared = made.declared("early")
    with pytest.raises(FirnlineError, match="INPUT_NOT_READY") as caught:
        list(advance(made, declared, spark, "per_value", declared.graph.schedule.epoch_at(0)))
    assert caught.value.retryable
    with pytest.raises(FirnlineError, match="INPUT_NOT_READY"):
        complete(made, declared.graph, declared.graph.schedule.epoch_at(0))


def test_epochs_before_the_start_are_refused(project: Make) -> None:
    made = project(**source("started"))
    graph = made.graph("started")
    with pytest.raises(FirnlineError, match="BEFORE_START"):
        graph.schedule.epoch_at(-1)


def test_changed_code_keeps_published_epochs_and_corrects_the_next(project: Make, spark: SparkSession) -> None:
    made = project(**source("changing"))
    run_epoch(made, spark, "changing", "0")
    before = rows(made, made.graph("changing"), "per_value")
    changed = project(**source("changing", extra=', F.lit(0).alias("m")'))
    graph = changed.graph("changing")
    head = made.log("changing", "per_value").head()
    assert head is not None
    assert head.fingerprint is not None
    assert graph.fingerprints["per_value"] != head.fingerprint.code
    assert is_kept(changed, graph, "per_value", graph.schedule.epoch_at(0))
    assert rows(changed, graph, "per_value", "0") == before
    again = project(
        **source("changing").copy()
        | {
            "changing": PIPELINE.format(name="changing", extra="")
            .replace('"n")', '"n")')
            .replace('F.count("*")', '(F.count("*") * 100)')
        }
    )
    run_epoch(again, spark, "changing", "1")
    assert rows(again, again.graph("changing"), "per_value", "0") == before
    assert rows(again, again.graph("changing"), "per_value", "1") == [("zero", 200), (None, 200)]


def test_readers_see_nothing_before_an_epoch_is_complete(project: Make, spark: SparkSession) -> None:
    made = project(**source("partial"))
    declared = made.declared("partial")
    list(advance(made, declared, spark, "numbers", declared.graph.schedule.epoch_at(0)))
    with pytest.raises(FirnlineError, match="EPOCH_NOT_COMPLETE"):
        rows(made, declared.graph, "numbers")
    run_epoch(made, spark, "partial", "0")
    list(advance(made, declared, spark, "numbers", declared.graph.schedule.epoch_at(1)))
    assert rows(made, declared.graph, "numbers") == [(0, "zero"), (10, None)]
