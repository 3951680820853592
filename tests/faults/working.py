"""What is done to a pipeline, by the process that meets a fault and by whoever does it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from pyspark.sql.connect.session import SparkSession

from firnline.errors import FirnlineError
from firnline.runtime.erase import erase
from firnline.runtime.maintain import maintained, undone
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.replicate import replicate
from firnline.runtime.rescale import rescale, rescales
from firnline.runtime.rewind import rewind, settle
from tests.spark.running import run_epoch

BACK = 2
"""Where a rewind goes."""
ERASED = "k = 3"
RESCALED = 4
"""Parts after a rescale."""

Act = Callable[[Project, SparkSession, str], object]


def _maintain(project: Project, session: SparkSession, name: str) -> None:
    for done in maintained(project, project.graph(name), lambda: session, timedelta()):
        if done.error is not None:
            raise done.error


def _repair(project: Project, session: SparkSession, name: str) -> None:
    for failed in repair(project, lambda: session, name).failed:
        raise failed.error


def _replicate(project: Project, _: SparkSession, name: str) -> None:
    for failed in replicate(project, project.graph(name)).failed:
        raise failed.error


def _rescale(project: Project, session: SparkSession, name: str) -> None:
    for each in rescales(project, project.graph(name), "numbers", RESCALED):
        rescale(project, lambda: session, each)


def _rewind(project: Project, _: SparkSession, name: str) -> None:
    graph = project.graph(name)
    settle(project, graph)
    head = project.log(name, "numbers").head()
    assert head is not None
    if head.description.generation == 0:
        try:
            rewind(project, graph, BACK, None, "ana")
        except FirnlineError as error:  # of two who rewind at once, the second is told that there is nothing to take back
            if error.code != "EPOCH_NOT_COMPLETE":
                raise


ACTS: Mapping[str, Act] = {
    "run": lambda project, session, name: run_epoch(project, session, name, "0"),
    "maintain": _maintain,
    "undo": lambda project, session, name: undone(project, project.graph(name)),
    "repair": _repair,
    "replicate": _replicate,
    "rescale": _rescale,
    "erase": lambda project, session, name: erase(project, session, project.graph(name), "numbers", ERASED, quarantine=False),
    "rewind": _rewind,
}
