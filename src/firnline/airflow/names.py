"""The ids of DAGs that look after all pipelines of a project, and of tasks that stand for more than one collection."""

from __future__ import annotations

from firnline.model.graph import Graph

REPAIR = "firnline_repair"
MAINTENANCE = "firnline_maintenance"
REPLICATE = "firnline_replicate"


def epoch_task(graph: Graph) -> str:
    """The task that is a whole epoch; no sink's name begins with an underscore."""
    return "_epoch" if any(each.name == "epoch" for each in graph.sinks) else "epoch"
