"""Rewind on real Spark: with the same code as if it had never been, with other code as if that had been there from the start."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import deltas, table_name
from firnline.model.digest import Digest
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.verify import verify
from firnline.tables.layers import newest_exchange
from tests.spark.running import rows, run_epoch
from tests.verifying import local

EPOCHS = range(4)
PIPELINE = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="allow")

    @{name}.source(keys=["k"], parts=2)
    def numbers(epoch):
        rows = [(epoch.lower * 10 + n, n % 3, float(n)) for n in range(10)]
        return epoch.spark.createDataFrame(rows, "k bigint, g bigint, x double")

    @{name}.stage(keys=["k"], parts=2)
    def large(numbers):
        return numbers.where(F.col("x") > {least})

    @{name}.stage(keys=["g"])
    def totals(large):
        return large.groupBy("g").agg(F.{how}("x").alias("x"), F.count("*").alias("n"))

    @{name}.stage(keys=["g"])
    def counts(numbers):
        return numbers.groupBy("g").agg(F.count("*").alias("n"))
"""
Make = Callable[..., Project]


def run(made: Project, spark: SparkSession, name: str) -> list[tuple[str, int, str]]:
    done = [outcome for epoch in EPOCHS for outcome in run_epoch(made, spark, name, str(epoch))]
    return [(each.collection, each.epoch.lower, each.how) for each in done if each.how != "kept"]


def digests(made: Project, name: str) -> dict[str, dict[tuple[int, int], Digest]]:
    """What every epoch and part of every log holds; empty parts are no difference."""
    found = {}
    for collection in made.graph(name).collections:
        log = made.log(name, collection.name)
        cells = [cell for entry in log.entries() for cell in log.sidecar(entry).digests.items()]
        found[collection.name] = {cell: digest for cell, digest in cells if digest.rows}
    return found


def states(made: Project, name: str) -> dict[str, object]:
    graph = made.graph(name)
    return {f"{each.name}@{epoch}": rows(made, graph, each.name, str(epoch)) for each in graph.collections for epoch in EPOCHS}


def test_a_replay_with_the_same_code_is_as_if_nothing_had_been(project: Make, spark: SparkSession) -> None:
    name = "rewound_same"
    made = project(**{name: PIPELINE.format(name=name, least=3, how="sum")})
    run(made, spark, name)
    before, seen = digests(made, name), states(made, name)
    rewind(made, made.graph(name), 1, None, "ana")
    assert {epoch for epoch, _ in digests(made, name)["totals"]} == {0}
    done = run(made, spark, name)
    assert len(done) == 4 * 3
    assert {how for _, _, how in done} == {"reused"}, "nothing is computed"
    assert digests(made, name) == before
    assert states(made, name) == seen
    assert verify(made, name, spark).problems == ()


def test_a_replay_with_other_code_is_as_if_that_had_been_there_and_an_undo_as_before(project: Make, spark: SparkSession) -> None:
    name, fresh = "rewound_other", "never_rewound"
    made = project(
        **{name: PIPELINE.format(name=name, least=3, how="sum"), fresh: PIPELINE.format(name=fresh, least=6, how="sum")}
    )
    run(made, spark, name)
    before = states(made, name)
    made = project(**{name: PIPELINE.format(name=name, least=6, how="sum")})
    rewind(made, made.graph(name), 0, "large", "ana")
    done = run(made, spark, name)
    assert {(collection, how) for collection, _, how in done} == {("large", "computed"), ("totals", "computed")}
    run(made, spark, fresh)
    assert digests(made, name) == digests(made, fresh)
    assert verify(made, name, spark).problems == ()
    lose_older_lists(made, spark, name)
    undo(made, made.graph(name), "ana")
    assert states(made, name) == before
    assert verify(made, name, spark).problems == ()


def lose_older_lists(made: Project, spark: SparkSession, name: str) -> None:
    """Lose all manifest lists before a rewind, and let them come back: Spark reads what they name as before."""
    table = made.log(name, "large").load()
    assert table is not None
    exchanged = newest_exchange(table)
    assert exchanged is not None
    older = [each for each in table.main_line() if each.sequence < exchanged.sequence]
    assert len(older) == len(EPOCHS)

    def read() -> list[list[object]]:
        return [sorted(deltas(spark, table_name(name, "large"), each.id, len(EPOCHS)).collect()) for each in older]

    before = read()
    for each in older:
        local(each.manifest_list).unlink()
    assert repair(made, lambda: spark, name).is_whole
    assert read() == before


def test_what_is_changed_in_the_middle_is_computed_with_all_that_comes_of_it_and_nothing_else(
    project: Make, spark: SparkSession
) -> None:
    name, fresh = "rewound_middle", "never_rewound_middle"
    made = project(
        **{name: PIPELINE.format(name=name, least=3, how="sum"), fresh: PIPELINE.format(name=fresh, least=6, how="sum")}
    )
    run(made, spark, name)
    made = project(**{name: PIPELINE.format(name=name, least=6, how="sum")})
    rewind(made, made.graph(name), 0, None, "ana")
    done = run(made, spark, name)
    assert {(collection, how) for collection, _, how in done} == {
        ("numbers", "reused"),
        ("counts", "reused"),
        ("large", "computed"),
        ("totals", "computed"),
    }
    run(made, spark, fresh)
    assert digests(made, name) == digests(made, fresh)
    assert verify(made, name, spark).problems == ()


def test_what_a_stage_keeps_since_a_rewind_is_made_anew_after_its_undo(project: Make, spark: SparkSession) -> None:
    name, fresh = "rewound_kept", "never_rewound_kept"
    made = project(**{name: PIPELINE.format(name=name, least=3, how="sum")})
    run(made, spark, name)
    rewind(made, made.graph(name), 2, "large", "ana")
    other = {each: PIPELINE.format(name=each, least=6, how="avg") for each in (name, fresh)}
    made = project(**other)
    run(made, spark, name)
    undo(made, made.graph(name), "ana")
    for epoch in (4, 5):
        run_epoch(made, spark, name, str(epoch))
    run(made, spark, fresh)
    for epoch in (4, 5):
        run_epoch(made, spark, fresh, str(epoch))
        for collection in ("large", "totals"):
            found, expected = (rows(made, made.graph(each), collection, str(epoch)) for each in (name, fresh))
            assert found == expected, f"{collection} after {epoch}"


SINGLE = 'numbers.where("k % 10 < 3").select(F.col("k").alias("g"), "x", F.lit(1).cast("bigint").alias("n"))'
SUMMED = 'numbers.groupBy("g").agg(F.sum("x").alias("x"), F.count("*").alias("n"))'
ARRANGED = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0, on_change="allow")

    @{name}.source(keys=["k"])
    def numbers(epoch):
        gone = [(epoch.lower * 10 - n, n % 3, -1) for n in range(1, 3) if epoch.lower]
        rows = [(epoch.lower * 10 + n, (10 - n) % 3, 1) for n in range(10)]
        return epoch.spark.createDataFrame(gone + rows, "k bigint, g bigint, _diff bigint").withColumn("x", F.col("k") / 4)

    @{name}.stage(keys=["g"])
    def totals(numbers):
        return {totals}
"""


def test_a_rewind_goes_below_the_epoch_from_which_on_a_stage_keeps_something(project: Make, spark: SparkSession) -> None:
    name, fresh = "rewound_arranged", "never_rewound_arranged"
    made = project(**{name: ARRANGED.format(name=name, totals=SINGLE)})
    for epoch in (0, 1):
        run_epoch(made, spark, name, str(epoch))
    made = project(**{each: ARRANGED.format(name=each, totals=SUMMED) for each in (name, fresh)})
    for epoch in (2, 3):
        run_epoch(made, spark, name, str(epoch))
    (kept,) = (each for each in made.catalog.names(name) if each.startswith("totals__"))
    before = states(made, name)
    run(made, spark, fresh)

    report = rewind(made, made.graph(name), 1, "totals", "ana")
    assert [(line.log, line.before, line.after) for line in report.logs] == [(kept, "4", "0"), ("totals", "4", "1")]
    for epoch in (1, 2, 3):
        run_epoch(made, spark, name, str(epoch))
        assert rows(made, made.graph(name), "totals", str(epoch)) == rows(made, made.graph(fresh), "totals", str(epoch))
    assert verify(made, name, spark).problems == ()
    undo(made, made.graph(name), "ana")
    assert states(made, name) == before
    for each in (name, fresh):
        run_epoch(made, spark, each, "4")
    assert rows(made, made.graph(name), "totals") == rows(made, made.graph(fresh), "totals")
    assert verify(made, name, spark).problems == ()
