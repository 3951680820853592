"""The safe point of a pipeline: the newest point that no recovery will ever need to go behind."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.graph import Graph
from firnline.runtime.project import Project


@dataclass(frozen=True, slots=True)
class SafePoint:
    """Where it is."""

    at: int


def safe_point(project: Project, graph: Graph) -> SafePoint:
    """The present safe point."""
    frontier = project.control(graph.name).frontier()
    return SafePoint(graph.schedule.start if frontier is None else frontier.upper)


def let_go(project: Project, graph: Graph) -> int:
    """The point up to which epochs are let go of."""
    return safe_point(project, graph).at
