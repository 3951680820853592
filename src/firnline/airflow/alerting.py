"""Airflow says when an epoch is not complete in time: a deadline of the DAG's runs, and what is done when one is missed."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from firnline.model.graph import Graph

_logger = logging.getLogger(__name__)


def deadline_of(graph: Graph) -> DeadlineAlert | None:
    """The deadline of a pipeline that asks for freshness: counted from when its run was queued."""
    if graph.freshness is None:
        return None
    limit = timedelta(seconds=graph.freshness)
    told = SyncCallback(f"{__name__}.tell_late", {"pipeline": graph.name, "freshness": str(limit)})
    return DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, limit, told, name="freshness")


def tell_late(*, pipeline: str, freshness: str, context: Any) -> None:
    """Say that an epoch was not complete in time: in the callback's log, and to Airflow's own stats. A backfill is never late."""
    from airflow.sdk.observability import stats

    if context["dag_run"]["run_type"] == "backfill":  # its runs are queued at once, however long the last of them waits
        return
    run = context["dag_run"]["dag_run_id"]
    _logger.error("late: the run %s of %s was not complete after %s", run, pipeline, freshness)
    stats.incr("firnline.freshness.missed", tags={"pipeline": pipeline})
