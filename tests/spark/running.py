"""Running pipelines in tests, and reading what they hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.model.graph import Graph
from firnline.runtime import show
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.project import Project
from tests.oracle.amplab import comparable
from tests.project import environment


def run_epoch(project: Project, session: SparkSession, pipeline: str, label: str) -> list[Outcome]:
    """Advance every collection through an epoch and complete it, as one DAG run does."""
    declared = project.declared(pipeline)
    graph = declared.graph
    epoch = graph.schedule.epoch_at(graph.schedule.point(label))
    outcomes = [
        outcome for collection in graph.collections for outcome in advance(project, declared, session, collection.name, epoch)
    ]
    complete(project, graph, epoch)
    return outcomes


def run_command(project: Project, pipeline: str, last: str, **further: str) -> subprocess.CompletedProcess[str]:
    """``firnline run`` in a process of its own, with a Spark of its own."""
    command = [sys.executable, "-c", "from firnline.cli import main; main()", "run", pipeline, "--to", last, "--json"]
    everything = {**environment(), **further}
    return subprocess.run(command, cwd=project.settings.root, env=everything, capture_output=True, text=True, timeout=300)


def java_below(root: Path) -> list[str]:
    """The drivers that belong to a project."""
    listed = subprocess.run(["ps", "-eo", "args", "ww"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "java" in line and str(root) in line]


def rows(project: Project, graph: Graph, collection: str, as_of: str | None = None) -> list[tuple[Any, ...]]:
    """A collection's rows after an epoch, as a sorted multiset."""
    return comparable(show.rows(project, graph, collection, as_of)[1])
