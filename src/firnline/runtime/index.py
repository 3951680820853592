"""Keeping the ledger in step with the logs. It is only an index: when it is away, work goes on and it catches up later."""

from __future__ import annotations

import logging

from firnline.errors import FirnlineError
from firnline.ledger.entry import Publication
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE
from firnline.runtime.project import Project

_logger = logging.getLogger(__name__)


def sync(project: Project, graph: Graph, *collections: str) -> None:
    """Record what the logs hold and the ledger does not know yet; all collections by default."""
    known = project.ledger.newest_snapshots(graph.name)
    there = project.catalog.names(graph.name)
    wanted = collections or tuple(collection.name for collection in graph.collections)
    for name in (*wanted, *(name + QUARANTINE for name in wanted)):
        if name not in there:
            continue
        generation, upper = known.get(name, (0, None))
        entries = project.log(graph.name, name).entries(upper)
        project.ledger.record(
            [
                Publication(
                    pipeline=graph.name,
                    collection=name,
                    generation=entry.description.generation,
                    lower=entry.lower,
                    upper=entry.description.upper,
                    snapshot_id=entry.snapshot,
                    rows=entry.rows,
                    weight=entry.weight,
                    fingerprint=entry.fingerprint.code,
                    attempt=entry.attempt,
                    sidecar=entry.sidecar,
                    published_at=entry.published_at,
                    seconds=entry.seconds,
                )
                for entry in entries
                if upper is None or entry.description.generation == generation
            ]
        )


def rebuild(project: Project, graph: Graph) -> None:
    """Make the ledger anew from the logs."""
    project.ledger.forget(graph.name)
    sync(project, graph)


def sync_quietly(project: Project, graph: Graph, *collections: str) -> None:
    """``sync``, off the epoch's conscience: an index that cannot be reached fails nothing."""
    try:
        sync(project, graph, *collections)
    except FirnlineError as error:
        if error.code != "LEDGER_UNAVAILABLE":
            raise
        _logger.warning("the ledger was not reached and will catch up later: %s", error)
