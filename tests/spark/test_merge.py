"""Layers of a real pipeline's logs are merged between epochs: every state that may be asked for stays what it was."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

import firnline
from firnline.errors import FirnlineError
from firnline.runtime import show
from firnline.runtime.certificate import certify
from firnline.runtime.lineage import lineage
from firnline.runtime.merge import Merge, Merged, merge, merges
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.safepoint import safe_point
from firnline.runtime.status import status
from firnline.runtime.verify import verify
from firnline.tables.layers import subsumed
from tests.spark.running import run_epoch
from tests.verifying import data_file, local, taken

Row = tuple[Any, ...]
PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    merged = fl.Pipeline("merged", schedule=1, start=0, keep="1 epoch")
    CHANGES = {changes!r}

    @merged.source(keys=["k"], parts=2)
    def given(epoch):
        schema = "k int, g string, x string, m array<int>, s struct<y:double>, _diff int"
        found = epoch.spark.createDataFrame(CHANGES[epoch.lower], schema)
        return found.withColumn("x", F.col("x").cast("double"))

    @merged.source(keys=["g"])
    def names(epoch):
        rows = [("a", "Ann"), ("b", "Bob")] if epoch.lower == 0 else [("c", "Cy")] if epoch.lower == 4 else []
        return epoch.spark.createDataFrame(rows, "g string, name string")

    @merged.stage(keys=["k"], parts=2)
    def named(given, names):
        return given.join(names, "g").select("k", "name", "x")

    @merged.stage(keys=["g"])
    def counted(given):
        return given.groupBy("g").agg(F.count("*").alias("n"), F.max("k").alias("last"), F.max("x").alias("most"))
"""
LATER = """
    @merged.stage(keys=["g"])
    def late(given):
        return given.groupBy("g").agg(F.count("*").alias("n"), F.max("k").alias("last"), F.max("x").alias("most"))
"""
EPOCHS = 8


def row(key: int, version: int) -> Row:
    """A row with nulls, NaN and -0.0, an array and a struct; the version is that of its last change."""
    x = {0: None, 1: "NaN", 2: "-0.0"}.get(key % 5, str(key + version / 2))
    return key, "abc"[key % 3], x, [version, None], (None if key % 4 == 0 else float(key),)


def changes() -> tuple[list[list[Row]], list[dict[int, Row]]]:
    """What each epoch changes, and the state after each: some rows go, some change, one comes, one comes back."""
    state: dict[int, Row] = {}
    found, states = [], []
    for epoch in range(EPOCHS):
        if epoch == 0:
            after = {key: row(key, 0) for key in range(30)}
        else:
            after = {key: of for key, of in state.items() if key not in (epoch, epoch + 8)}
            after |= {key: row(key, epoch) for key in (20, 15 + epoch, 100 + epoch)}
            if epoch == 6:
                after[2] = row(2, 0)
        gone = [(*of, -1) for key, of in state.items() if after.get(key) != of]
        found.append([*gone, *((*of, 1) for key, of in after.items() if state.get(key) != of)])
        state = after
        states.append(state)
    return found, states


def expected(collection: str, state: dict[int, Row], epoch: int) -> list[str]:
    """From scratch, without Spark."""
    rows = [(k, g, None if x is None else float(x) + 0.0, m, {"y": s[0]}) for k, g, x, m, s in state.values()]
    names = {"a": "Ann", "b": "Bob", **({"c": "Cy"} if epoch >= 4 else {})}
    if collection == "given":
        return settled(rows)
    if collection == "named":
        return settled([(k, names[g], x) for k, g, x, *_ in rows if g in names])
    groups: dict[str, list[Row]] = {}
    for each in rows:
        groups.setdefault(each[1], []).append(each)
    # To Spark NaN is greater than any other number.
    most = {g: max((each[2] for each in of if each[2] is not None), key=lambda x: (x != x, x)) for g, of in groups.items()}
    return settled([(g, len(of), max(each[0] for each in of), most[g]) for g, of in groups.items()])


def settled(rows: list[Row]) -> list[str]:
    return sorted(repr(tuple(value + 0.0 if isinstance(value, float) else value for value in each)) for each in rows)


def check(project: Project, states: list[dict[int, Row]], upto: int) -> None:
    """Every collection at every epoch that may be asked for is what it would be from scratch, and no other may."""
    graph = project.graph("merged")
    for name in ("given", "named", "counted"):
        head = project.log("merged", name).head()
        assert head is not None
        for epoch in range(upto):
            if epoch + 1 >= head.description.since:
                found = settled(show.rows(project, graph, name, str(epoch))[1])
                assert found == expected(name, states[epoch], epoch), (name, epoch)
            else:
                with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
                    show.rows(project, graph, name, str(epoch))


def everything(project: Project, lower: int, upper: int) -> list[Merge]:
    """A merge of all epochs of [lower, upper) in every log that has some of them."""
    logs = {name: project.log("merged", name) for name in sorted(project.catalog.names("merged") - {"_frontier"})}
    found = []
    for name, log in logs.items():
        inside = [entry for entry in log.entries() if lower <= entry.lower and entry.description.upper <= upper]
        if len(inside) > 1:
            found.append(Merge("merged", name, inside[-1].lower, upper, len(inside), 0, 0, 1.0))
    return found


def merge_all(project: Project, spark: SparkSession, planned: list[Merge]) -> list[Merged]:
    graph = project.graph("merged")
    safe = safe_point(project, graph).at
    done = [merge(project, graph, spark, each, safe) for each in planned]
    assert all(each is not None for each in done)
    return [each for each in done if each is not None]


def test_merges_between_epochs_change_no_state(project: Callable[..., Project], spark: SparkSession) -> None:
    found, states = changes()
    made = project(merged=PIPELINE.format(changes=found))
    graph = made.graph("merged")
    for epoch in range(4):
        run_epoch(made, spark, "merged", str(epoch))
    check(made, states, 4)
    with pytest.raises(AssertionError):
        merge_all(made, spark, [Merge("merged", "given", 0, 5, 5, 0, 0, 1.0)])  # beyond the safe point

    merge_all(made, spark, everything(made, 1, 3))
    check(made, states, 4)
    run_epoch(made, spark, "merged", "4")
    check(made, states, 5)
    assert [done.rows for done in merge_all(made, spark, everything(made, 0, 4)) if done.merge.collection == "given"] == [
        len(states[3])
    ], "what was undone is gone"
    check(made, states, 5)
    for epoch in (5, 6):
        run_epoch(made, spark, "merged", str(epoch))
    check(made, states, 7)
    for epoch in (3, 6):  # without, and with, removals above the merged layer
        read = firnline.read("merged.given", as_of=str(epoch), session=spark, project=made).collect()
        assert settled([tuple(each.asDict(recursive=True).values()) for each in read]) == expected("given", states[epoch], epoch)
    assert verify(made, "merged", spark).problems == ()

    run_epoch(made, spark, "merged", "7")
    planned = merges(made, graph, safe_point(made, graph).at)
    assert planned
    assert all(each.upper <= 7 for each in planned), "the last epoch is kept by itself"
    merge_all(made, spark, everything(made, 0, 6))
    check(made, states, 8)
    assert verify(made, "merged", spark).problems == ()
    assert firnline.read("merged.given", session=spark, project=made).count() == len(states[7])

    after_merges(made, spark)
    after_losses(made, spark)
    check(made, states, 8)
    a_later_stage(made, spark, found, states)
    for name in made.catalog.names("merged") - {"_frontier"}:
        table = made.log("merged", name).load()
        assert table is not None
        made.catalog.drop(table, sorted(subsumed(table)))
    check(made, states, 8)
    assert verify(made, "merged", spark).problems == ()


def after_merges(made: Project, spark: SparkSession) -> None:
    """What tells of single epochs, tells of those that are left."""
    graph = made.graph("merged")
    assert [(each.epoch, each.inserted, each.removed) for each in show.summary(made, graph) if each.collection == "names"] == [
        ("6", 0, 0),
        ("7", 0, 0),
    ]
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        show.changes(made, graph, "given", "5")
    assert {change[0] for change in show.changes(made, graph, "given")[1]} == {"6", "7"}
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        lineage(made, graph, "named", "2")
    assert {node.collection for node in lineage(made, graph, "named", "6").nodes} == {"named", "given", "names"}
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        certify(made, spark, "merged.named", "5")
    replayed = certify(made, spark, "merged.named")
    assert [(each.epoch, each.difference, each.skipped) for each in replayed if each.collection == "named"] == [
        ("6", None, ""),
        ("7", None, ""),
    ]
    assert [(each.done, each.missing) for each in status(made, graph).collections] == [(EPOCHS, 0)] * 4


def after_losses(made: Project, spark: SparkSession) -> None:
    """Lost rows of merged layers come back from what the inputs hold, though these are merged further; a source's do not."""
    merge_all(made, spark, [each for each in everything(made, 0, 7) if each.collection in ("given", "names")])
    logs = sorted(made.catalog.names("merged") - {"_frontier", "given", "names"})
    for name in logs:
        found = taken(made, "merged", name)
        if (5, 0) in found.cells():
            local(data_file(found, 5, 0).file.path).unlink()
    mended = repair(made, lambda: spark, "merged")
    assert mended.is_whole, [(each.collection, str(each.error)) for each in mended.failed]
    assert {"named", "counted"} <= {each.step.collection for each in mended.done}
    assert verify(made, "merged", spark).problems == ()

    path = local(data_file(taken(made, "merged", "given"), 6, 1).file.path)
    kept = path.read_bytes()
    path.unlink()
    (failed,) = repair(made, lambda: spark, "merged").failed
    assert (failed.collection, failed.error.code) == ("given", "NOT_REPAIRABLE")
    path.write_bytes(kept)


def a_later_stage(made: Project, spark: SparkSession, found: list[list[Row]], states: list[dict[int, Row]]) -> None:
    """It begins where its inputs keep single epochs."""
    code = PIPELINE.format(changes=[*found, []]) + LATER
    (made.settings.root / "include" / "pipelines" / "merged.py").write_text(textwrap.dedent(code))
    again = Project.load(made.settings.root)
    run_epoch(again, spark, "merged", "8")
    graph = again.graph("merged")
    ranges = [(entry.lower, entry.description.upper) for entry in again.log("merged", "late").entries()]
    assert ranges == [(8, 9), (7, 8), (0, 7)]
    for epoch in (6, 7):
        assert settled(show.rows(again, graph, "late", str(epoch))[1]) == expected("counted", states[epoch], epoch)
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        show.rows(again, graph, "late", "5")
