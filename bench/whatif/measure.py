"""What a what-if costs: a branch, run and compared, against computing everything anew and comparing it row by row.

The rival is what one does without branches: compute all stages from the sources with the new code, in one Spark job each, write
the results, and join each with what there is, on its key. Both answer the same: how many rows of each stage would be others.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from bench.project import project_in
from bench.whatif.pipeline import KEYS, LEAST, MODULE, NAME, SETTINGS, STAGES
from firnline.engine.session import opened
from firnline.model.graph import Graph
from firnline.runtime.advance import advance, complete
from firnline.runtime.branch import create, drop
from firnline.runtime.branch_run import missing, run
from firnline.runtime.diff import diff, sides
from firnline.runtime.project import Declared, Project
from firnline.runtime.read import frame

Seconds = dict[str, float]
Differing = dict[str, int]


@dataclass(frozen=True, slots=True)
class Round:
    """Both ways once."""

    ours: Seconds
    """By step: create, run, diff."""
    full: Seconds
    """By step: compute, compare."""
    computed: int
    """Epochs of collections that the branch computed; all others it took."""
    ours_differing: Differing
    full_differing: Differing

    @property
    def ratio(self) -> float:
        """How many times as long the rival took."""
        return sum(self.full.values()) / sum(self.ours.values())


def measured(root: Path, jars: Path, rows: int, epochs: int, runs: int, say: Callable[[str], None]) -> list[Round]:
    """Counted rounds at the end of so many epochs; one more warms up."""
    project = project_in(root, SETTINGS, NAME, _module("before", rows, epochs), jars)
    other = root / "after"
    project_in(other, SETTINGS, NAME, _module("after", rows, epochs), jars)
    with opened(project.settings, "firnline bench whatif") as session:
        declared = project.declared(NAME)
        _prepare(project, declared, session, epochs, say)
        found = []
        for number in range(runs + 1):
            say(f"round {number} of {runs}")
            found.append(_round(project, session, other, epochs))
    return found[1:]


def _module(which: str, rows: int, epochs: int) -> str:
    return MODULE.format(rows=rows, epochs=epochs + 1, least=LEAST[which])


def _prepare(project: Project, declared: Declared, session: SparkSession, epochs: int, say: Callable[[str], None]) -> None:
    graph = declared.graph
    for epoch in graph.schedule.epochs(0, epochs):
        say(f"epoch {epoch.lower + 1} of {epochs}")
        for collection in graph.collections:
            for _ in advance(project, declared, session, collection.name, epoch):
                pass
        complete(project, graph, epoch)


def _round(project: Project, session: SparkSession, other: Path, epochs: int) -> Round:
    ours, full = Seconds(), Seconds()
    graph, space = project.graph(NAME), f"{NAME}__after"
    with _timed(ours, "create"):
        create(project, graph, "after", epochs - 1, str(other))
    with _timed(ours, "run"):
        outcomes = list(run(project, space, missing(project, space), lambda: session))
    with _timed(ours, "diff"):
        found = diff(*sides(project, graph, "main", "after"))
    functions = project.declared(space)
    drop(project, NAME, "after")
    tables = other / "tables"
    with _timed(full, "compute"):
        made = _computed(project, graph, functions, session, tables, epochs)
    with _timed(full, "compare"):
        differing = {name: _joined(project, graph, session, name, rows, epochs) for name, rows in made.items()}
    shutil.rmtree(tables)
    told = {each.collection: each.added + each.removed + each.changed for each in found.collections if each.collection in STAGES}
    return Round(ours, full, sum(each.how == "computed" for each in outcomes), told, differing)


def _computed(
    project: Project, graph: Graph, declared: Declared, session: SparkSession, folder: Path, epochs: int
) -> dict[str, DataFrame]:
    """Every stage from the sources as they are now, each written and read back, as who looks at them all would have it."""
    found: dict[str, DataFrame] = {}
    for collection in graph.collections:
        if collection.kind == "source":
            found[collection.name] = frame(project, session, graph, collection.name, epochs)
            continue
        made = declared.functions[collection.name](**{name: found[name] for name in collection.inputs})
        path = str(folder / collection.name)
        made.write.mode("overwrite").parquet(path)
        found[collection.name] = session.read.parquet(path)
    return {name: found[name] for name in STAGES}


def _joined(project: Project, graph: Graph, session: SparkSession, name: str, rows: DataFrame, epochs: int) -> int:
    """How many rows differ, by a full outer join on the key."""
    old, new, key = frame(project, session, graph, name, epochs).alias("old"), rows.alias("new"), KEYS[name]
    unequal = reduce(or_, (~F.col(f"old.{column}").eqNullSafe(F.col(f"new.{column}")) for column in rows.columns))
    return old.join(new, F.col(f"old.{key}") == F.col(f"new.{key}"), "full_outer").where(unequal).count()


@contextmanager
def _timed(into: Seconds, step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    into[step] = time.monotonic() - began
