"""Stretches and overlap on real Spark: cut at random and beside one another, epochs leave the logs that one by one leaves."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from bench.catchup.measure import rounds
from bench.catchup.pipeline import MODULE, NAMES
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.overlap import overlapped
from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from firnline.world import World, replaced
from tests.happening import At, Killed, die
from tests.spark.running import rows as rows_of

EPOCHS = 5
STAGES = ("big", "described", "totals", "shares", "overall", "largest")
APART = "largest"
"""The one stage of which no stretch is computed."""
PIPELINE = """
    import datetime
    from decimal import Decimal

    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)
    ORDERS = {orders!r}
    ITEMS = {items!r}

    @{name}.source(keys=["k"], parts=2)
    def orders(epoch):
        schema = "k bigint, c bigint, x double, price decimal(9,2), note string, _diff bigint"
        return epoch.spark.createDataFrame(ORDERS[epoch.lower], schema)

    @{name}.source(keys=["i"])
    def items(epoch):
        return epoch.spark.createDataFrame(ITEMS[epoch.lower], "i bigint, title string, _diff bigint")

    @{name}.stage(keys=["k", "side"], parts=2)
    def big(orders):
        found = orders.where(F.col("x") > 1).withColumn("double", F.col("x") * 2)
        one, other = (found.select("k", "note", "double", F.lit(side).alias("side")) for side in ("one", "other"))
        return one.unionAll(other)

    @{name}.stage(keys=["k"])
    def described(orders, items):
        return orders.join(items, F.col("c") % 3 == F.col("i"))

    @{name}.stage(keys=["title"])
    def totals(described):
        return described.groupBy("title").agg(
            F.sum("x").alias("x"), F.avg("price").alias("price"), F.count("note").alias("notes"), F.count("*").alias("n")
        )

    @{name}.stage(keys=["k"])
    def shares(described, totals):
        return described.join(totals, "title").select("k", (described.x / totals.n).alias("share"))

    @{name}.stage(keys=["n"])
    def overall(orders):
        return orders.agg(F.count("*").alias("n"), F.sum("price").alias("price"))

    @{name}.stage(keys=["c"])
    def largest(orders):
        return orders.groupBy("c").agg(F.max("x").alias("x"))
"""
Make = Callable[..., Project]
Changes = list[list[tuple[Any, ...]]]


def changes(random: random.Random, row: Callable[[int], tuple[Any, ...]], keys: int) -> Changes:
    """Rows that come, go and are replaced, with epochs in which nothing happens."""
    there: dict[int, tuple[Any, ...]] = {}
    found: Changes = []
    for _ in range(EPOCHS):
        now: list[tuple[Any, ...]] = []
        for key in random.sample(range(keys), random.choice((0, 0, 1, 2, keys // 2))):
            if key in there:
                now.append((*there.pop(key), -1))
            if random.random() < 0.7:
                there[key] = row(key)
                now.append((*there[key], 1))
        found.append(now)
    return found


def module(name: str, seed: int) -> str:
    chosen = random.Random(seed)

    def order(key: int) -> tuple[Any, ...]:
        x = chosen.choice((0.1, 0.2, 1e17, 3.0, -1e17, 2.5, None))
        return key, chosen.randrange(5), x, Decimal(chosen.randrange(999)) / 100, chosen.choice((None, "", "née", "x"))

    def item(key: int) -> tuple[Any, ...]:
        return key, chosen.choice(("a", "b", None))

    return PIPELINE.format(name=name, orders=changes(chosen, order, 14), items=changes(chosen, item, 4))


def run(project: Project, session: SparkSession, name: str, targets: list[int]) -> list[Outcome]:
    """Bring every collection through each of these epochs, and complete it."""
    declared = project.declared(name)
    schedule = declared.graph.schedule
    done: list[Outcome] = []
    for target in targets:
        epoch = schedule.epoch_at(target)
        for collection in declared.graph.collections:
            done += advance(project, declared, session, collection.name, epoch)
        complete(project, declared.graph, epoch)
    return [each for each in done if each.how != "kept"]


def written(project: Project, name: str) -> dict[tuple[str, int], Any]:
    """What stands in every log about every epoch, arrangements included, but for what no two runs share."""
    found: dict[tuple[str, int], Any] = {}
    for log in (project.log(name, each) for each in sorted(project.catalog.names(name)) if each != "_frontier"):
        for entry in log.entries():
            sidecar = log.sidecar(entry)
            assert (log.collection, entry.lower) not in found, "an epoch is in one snapshot"
            read = {of: (each.upper, each.rows, each.parts) for of, each in sidecar.inputs.items()}
            digests = {cell: each for cell, each in sidecar.digests.items() if each.rows}
            totals = (entry.description.upper, entry.rows, entry.weight, entry.fingerprint.plan)
            found[log.collection, entry.lower] = (*totals, digests, read, dict(sidecar.determinants))
    return found


def states(project: Project, name: str) -> Iterator[tuple[str, int, Any]]:
    graph = project.graph(name)
    for collection in graph.collections:
        for epoch in range(EPOCHS):
            yield collection.name, epoch, rows_of(project, graph, collection.name, str(epoch))


def cuts(seed: int) -> list[int]:
    chosen = random.Random(seed + 1)
    return sorted({chosen.randrange(EPOCHS // 2), EPOCHS - 1})


def seeds() -> list[object]:
    first = os.environ.get("FIRNLINE_SEEDS", "")
    return [int(first)] if first else [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 40))]


@pytest.mark.parametrize("seed", seeds())
def test_any_cut_into_stretches_gives_what_epoch_by_epoch_gives(project: Make, spark: SparkSession, seed: int) -> None:
    single, together = f"single{seed}", f"together{seed}"
    made = project(**{name: module(name, seed) for name in (single, together)})
    run(made, spark, single, [*range(EPOCHS)])
    done = run(made, spark, together, cuts(seed))
    assert Counter(each.collection for each in done) == dict.fromkeys(("orders", "items", *STAGES), EPOCHS)
    assert {each.collection for each in done if each.at_once > 2} == {"orders", "items", *STAGES} - {APART}
    expected, found = written(made, single), written(made, together)
    assert found.keys() == expected.keys()
    assert {cell: found[cell] for cell in found if found[cell] != expected[cell]} == {}
    assert list(states(made, together)) == list(states(made, single))
    assert verify(made, together, spark).problems == ()


SMALL = """
    import firnline as fl
    from pyspark.sql import functions as F

    {name} = fl.Pipeline("{name}", schedule=1, start=0)

    @{name}.source(keys=["k"])
    def numbers(epoch):
        low = epoch.lower
        rows = [(10 * low + n, n % 3, 0.1 * n, 1) for n in range(4)] + [(10 * low - 9, 1, 0.1, -1)] * (low > 0)
        return epoch.spark.createDataFrame(rows + {more}.get(low, []), "k bigint, g bigint, x double, _diff bigint")

    @{name}.stage(keys=["k"])
    def marked(numbers):
        return numbers.withColumn("mark", F.col("x") > 0.1)

    @{name}.stage(keys=["g"])
    def totals(marked):
        return marked.groupBy("g").agg(F.sum("x").alias("x"), F.count("*").alias("n"))
"""


def small(name: str, more: dict[int, list[tuple[Any, ...]]] | None = None) -> str:
    return SMALL.format(name=name, more=more or {})


class Slow(World):
    """Loses a little time at every point."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)

    def reach(self, point: str) -> None:
        time.sleep(self.random.choice((0, 0, 0.02, 0.2)))


def test_a_stretch_that_dies_anywhere_and_epochs_that_overlap_give_the_same(project: Make, spark: SparkSession) -> None:
    single, dying, slow = "small_single", "small_dying", "small_slow"
    made = project(**{name: small(name) for name in (single, dying, slow)})
    run(made, spark, single, [*range(EPOCHS)])
    expected = written(made, single)
    run(made, spark, dying, [0])
    for _ in ("source", "stage", "arrangement"):
        with replaced(At("publish.committed", die, 1)), pytest.raises(Killed):
            run(made, spark, dying, [EPOCHS - 1])
    done = run(made, spark, dying, [EPOCHS - 1])
    assert {(each.collection, each.at_once) for each in done} == {("totals", EPOCHS - 1)}
    assert written(made, dying) == expected
    with replaced(Slow(5)):
        done = list(overlapped(made, made.declared(slow), spark, Epoch(EPOCHS - 1, EPOCHS)))
    assert Counter(each.collection for each in done) == dict.fromkeys(("numbers", "marked", "totals"), EPOCHS)
    assert written(made, slow) == expected
    frontier = made.control(slow).frontier()
    assert frontier is not None
    assert frontier.upper == EPOCHS


def test_catching_up_is_measured_and_equal(project: Make, spark: SparkSession) -> None:
    made = project(**{name: MODULE.format(name=name, rows=50) for name in NAMES})
    (found,) = rounds(made, spark, first=1, count=3, runs=1, say=lambda _: None)
    assert found.differences == ()
    assert (len(found.single), found.at_once) == (3, 3)
    assert found.ratio > 0


@pytest.mark.parametrize(
    ("row", "code"), [((12, 0, 0.5, 1), "KEY_NOT_UNIQUE"), ((99, 0, 0.5, -1), "NEGATIVE_WEIGHT")], ids=["twice", "not there"]
)
def test_an_epoch_that_is_wrong_fails_by_itself_and_those_before_it_are_complete(
    project: Make, spark: SparkSession, row: tuple[Any, ...], code: str
) -> None:
    name = f"wrong_{code.lower()}"
    made = project(**{name: small(name, more={3: [row]})})
    with pytest.raises(FirnlineError, match=f"{code}.* at 3") as error:
        list(overlapped(made, made.declared(name), spark, Epoch(EPOCHS - 1, EPOCHS)))
    assert error.value.code == code
    frontier = made.control(name).frontier()
    assert frontier is not None
    assert frontier.upper == 3
    heads = [made.log(name, each.name).head() for each in made.graph(name).collections]
    assert [head.description.upper for head in heads if head] == [3, 3, 3]
