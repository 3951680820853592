"""Maintenance: what keeps logs tidy without changing a row. Every step is idempotent and short, and may meet epochs at work.

So far it drops staging that crashed attempts left behind, once their epochs are in the log and nobody can publish it any more.
Files are not removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firnline.runtime.project import Project
from firnline.tables.control import TABLE


@dataclass(frozen=True, slots=True)
class Swept:
    """Abandoned staging of one log."""

    collection: str
    snapshots: int


def maintain(project: Project, pipeline: str) -> list[Swept]:
    """Sweep the logs of a pipeline; those in which there was something to do."""
    swept = [Swept(name, project.log(pipeline, name).sweep()) for name in _logs(project, pipeline)]
    return [each for each in swept if each.snapshots]


def planned(project: Project, pipeline: str) -> list[Swept]:
    """What ``maintain`` would do now."""
    found = [Swept(name, len(project.log(pipeline, name).abandoned())) for name in _logs(project, pipeline)]
    return [each for each in found if each.snapshots]


def _logs(project: Project, pipeline: str) -> Iterator[str]:
    yield from sorted(project.catalog.names(pipeline) - {TABLE})
