"""Measures through Airflow's own stats: StatsD or OpenTelemetry, as Airflow is configured."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firnline.model.epoch import Epoch
    from firnline.model.graph import Graph
    from firnline.runtime.measures import Measure
    from firnline.runtime.project import Project

_logger = logging.getLogger(__name__)


def emit(project: Project, graph: Graph, epoch: Epoch) -> list[Measure]:
    """Tell what a complete epoch is measured by, and return it; an epoch never fails because of it."""
    from airflow.sdk.observability import stats

    from firnline.runtime.measures import measures

    told: list[Measure] = []
    try:
        told = measures(project, graph, epoch)
        for each in told:
            if each.kind == "seconds":
                stats.timing(each.name, timedelta(seconds=each.value), tags=dict(each.tags))
            else:
                stats.gauge(each.name, each.value, tags=dict(each.tags))
    except Exception as error:  # the epoch is complete, whoever counts
        _logger.warning("the measures of %s were not told: %s", graph.name, error)
    return told
