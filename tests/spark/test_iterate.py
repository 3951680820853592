"""Recursion over epochs, with edges that come and go: every epoch equals a fixpoint computed from scratch in Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.advance import advance
from firnline.runtime.explain import explain
from firnline.runtime.project import Project
from firnline.tables import scan
from tests.spark.running import run_epoch

Make = Callable[..., Project]
Edge = tuple[int, int]

EPOCHS: list[list[tuple[int, int, int]]] = [
    [(1, 2, 1), (2, 3, 1), (3, 4, 1), (10, 11, 1)],
    [(4, 5, 1), (11, 10, 1)],  # a longer path, and a cycle
    [(2, 3, -1)],  # cut in the middle
    [],
    [(2, 6, 1), (6, 3, 1), (5, 10, 1), (10, 11, -1)],  # joined again by another way
]
PIPELINE = f"""
    import firnline as fl
    from pyspark.sql import functions as F

    {{name}} = fl.Pipeline("{{name}}", schedule=1, start=0)

    @{{name}}.source(keys=["src", "dst"])
    def edges(epoch):
        return epoch.spark.createDataFrame({EPOCHS!r}[epoch.lower], "src int, dst int, _diff int")

    @{{name}}.stage(keys=["src", "dst"], refresh="incremental")
    def reach(edges):
        def step(paths):
            further = paths.join(edges, paths.dst == edges.src).select(paths.src, edges.dst)
            return edges.union(further).distinct()

        return fl.iterate(edges, step)

    @{{name}}.stage(keys=["node"], refresh="incremental")
    def components(edges):
        both = edges.union(edges.select("dst", "src"))
        nodes = both.select(F.col("src").alias("node")).distinct()

        def step(labels):
            spread = labels.join(both, labels.node == both.src).select(both.dst.alias("node"), "label")
            return labels.union(spread).groupBy("node").agg(F.min("label").alias("label"))

        return fl.iterate(nodes.select("node", F.col("node").alias("label")), step)
"""


def reached(edges: set[Edge]) -> set[Edge]:
    found = set(edges)
    while more := {(a, d) for a, b in found for c, d in edges if b == c} - found:
        found |= more
    return found


def smallest(edges: set[Edge]) -> dict[int, int]:
    label = {node: node for edge in edges for node in edge}
    for _ in label:
        for a, b in edges:
            label[a] = label[b] = min(label[a], label[b])
    return label


CASES = [
    pytest.param("reach", 3),
    pytest.param("reach", len(EPOCHS), marks=pytest.mark.nightly),
    pytest.param("components", len(EPOCHS), marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("stage", "count"), CASES)
def test_every_epoch_is_the_fixpoint(project: Make, spark: SparkSession, stage: str, count: int) -> None:
    name = f"graph_{stage}_{count}"
    made = project(**{name: PIPELINE.format(name=name)})
    declared = made.declared(name)
    edges: set[Edge] = set()
    for number, changes in enumerate(EPOCHS[:count]):
        edges = (edges | {(a, b) for a, b, sign in changes if sign > 0}) - {(a, b) for a, b, sign in changes if sign < 0}
        for collection in ("edges", stage):
            list(advance(made, declared, spark, collection, declared.graph.schedule.epoch_at(number)))
        found = scan.state(made.catalog.iceberg(name, stage), number + 1)
        rows = set(zip(*(found[column].to_pylist() for column in found.column_names), strict=True))
        assert rows == (reached(edges) if stage == "reach" else set(smallest(edges).items()))
    explained = explain(made, declared, spark, stage)
    assert "recursion" in explained.steps[0].plan.operator
    if stage == "reach":
        assert explained.lineage == {"src": ("edges.src",), "dst": ("edges.dst",)}


def test_what_never_ends_is_told(project: Make, spark: SparkSession) -> None:
    text = """
        import firnline as fl
        from pyspark.sql import functions as F

        endless = fl.Pipeline("endless", schedule=1, start=0)

        @endless.source(keys=["n"])
        def numbers(epoch):
            return epoch.spark.range(1).select(F.col("id").alias("n"))

        @endless.stage(keys=["n"])
        def all_of_them(numbers):
            return fl.iterate(numbers, lambda found: found.union(found.select(F.col("n") + 1)).distinct(), most=4)
    """
    with pytest.raises(FirnlineError, match=r"NOT_CONVERGED: stage 'all_of_them' at 0: .* after 4 iterations"):
        run_epoch(project(endless=text), spark, "endless", "0")
