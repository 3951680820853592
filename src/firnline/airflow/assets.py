"""Collections as Airflow's assets: when an epoch is complete, each has an event, and DAGs that are scheduled on it run.

The task that moves the frontier has them as outlets: whoever runs because of an event finds the epoch in all collections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

if TYPE_CHECKING:
    from firnline.model.epoch import Epoch
    from firnline.model.graph import Graph
    from firnline.plan.frontier import Frontier
    from firnline.runtime.measures import Measure

_PREFIX = "firnline.collection."


def collection_asset(name: str) -> Asset:
    """The asset of a collection, for the schedule of another DAG: ``DAG(..., schedule=[collection_asset("web.visits")])``.

    Args:
        name: ``PIPELINE.COLLECTION``.
    """
    return Asset(name=name, uri=f"firnline://{name.replace('.', '/', 1)}", group="firnline")


def assets_of(graph: Graph) -> list[Asset]:
    """The assets of a pipeline's collections."""
    return [collection_asset(f"{graph.name}.{each.name}") for each in graph.collections]


def tell(graph: Graph, epoch: Epoch, frontier: Frontier, measures: Sequence[Measure], outlet_events: Any) -> None:
    """Let the events say which epoch is complete, where the frontier is, and what the epoch changed in the collection."""
    label = graph.schedule.label
    for asset, collection in zip(assets_of(graph), graph.collections, strict=True):
        figures = {
            each.name.removeprefix(_PREFIX): each.value
            for each in measures
            if each.name.startswith(_PREFIX) and each.tags["collection"] == collection.name
        }
        outlet_events[asset].extra = {"epoch": label(epoch.lower), "frontier": label(frontier.upper), **figures}
