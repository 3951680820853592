"""Running pipelines in tests, and reading what they hold."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.session import SparkSession

from firnline.model.graph import Graph
from firnline.runtime import show
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.project import Project
from tests.oracle.amplab import comparable


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


def rows(project: Project, graph: Graph, collection: str, as_of: str | None = None) -> list[tuple[Any, ...]]:
    """A collection's rows after an epoch, as a sorted multiset."""
    return comparable(show.rows(project, graph, collection, as_of)[1])
