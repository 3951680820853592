"""Airflow says when an epoch is not complete in time: a deadline of the DAG's runs, and what is done when one is missed."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from firnline.errors import FirnlineError
from firnline.model.epoch import to_micros
from firnline.model.graph import Graph
from firnline.settings import Settings

_logger = logging.getLogger(__name__)


def deadline_of(settings: Settings, graph: Graph) -> DeadlineAlert | None:
    """The deadline of a pipeline that asks for freshness: counted from when its run was queued."""
    if graph.freshness is None:
        return None
    limit = timedelta(seconds=graph.freshness)
    given = {"root": str(settings.root), "pipeline": graph.name, "freshness": str(limit)}
    told = SyncCallback(f"{__name__}.tell_late", given)
    return DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, limit, told, name="freshness")


def tell_late(*, root: str, pipeline: str, freshness: str, context: Any) -> None:
    """Say that an epoch was not complete in time: in the callback's log, and to Airflow's own stats.

    A backfill is never late, and neither is who runs an epoch again that was complete.
    """
    from airflow.sdk.observability import stats

    run = context["dag_run"]
    if run["run_type"] == "backfill":  # its runs are queued at once, however long the last of them waits
        return
    if _was_complete(root, pipeline, run["data_interval_end"], run["queued_at"]):
        return
    _logger.error("late: the run %s of %s was not complete after %s", run["dag_run_id"], pipeline, freshness)
    stats.incr("firnline.freshness.missed", tags={"pipeline": pipeline})


def _was_complete(root: str, pipeline: str, end: str | None, queued_at: str | None) -> bool:
    """Whether all epochs up to one's end were complete when its run was queued; no if nobody can tell."""
    from firnline.runtime.project import Project

    if end is None or queued_at is None:
        return False
    try:
        frontier = Project.load(Path(root)).control(pipeline).frontier_at(datetime.fromisoformat(queued_at))
    except FirnlineError as error:
        _logger.warning("whether it was complete before is not known: %s", error)
        return False
    return frontier is not None and frontier.upper >= to_micros(datetime.fromisoformat(end))
