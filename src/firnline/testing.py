"""For tests of a project's own pipelines: all epochs on real Spark, in a work folder that nobody else uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from firnline.model.epoch import Schedule
from firnline.model.graph import Graph
from firnline.runtime import logical_time, show
from firnline.runtime.project import Project
from firnline.settings import Settings

_BELOW_WORK = {"FIRNLINE_WAREHOUSE": "", "FIRNLINE_CATALOG_URI": "", "FIRNLINE_LEDGER_URI": ""}


@dataclass(frozen=True)
class Ran:
    """A pipeline after its epochs."""

    project: Project
    graph: Graph

    def rows(self, collection: str, as_of: str | None = None) -> list[dict[str, Any]]:
        """The rows of a collection after an epoch, the last one by default."""
        return _named(show.rows(self.project, self.graph, collection, as_of))

    def changes(self, collection: str, as_of: str | None = None) -> list[dict[str, Any]]:
        """The rows that an epoch, or all of them, inserted and removed; ``epoch`` and ``change`` say when and how often."""
        return _named(show.changes(self.project, self.graph, collection, as_of))


def run(pipeline: str, work: Path, *, upto: str | None = None, root: Path | None = None) -> Ran:
    """Run a pipeline from its start, in one Spark session.

    Args:
        pipeline: Its name.
        work: An empty folder for tables, catalog and ledger: wherever the settings say that these are, a test stays in there.
        upto: The last epoch; by default the last one that is due.
        root: A folder of the project; the current one by default.
    """
    from firnline.engine.session import opened
    from firnline.runtime.advance import advance, complete
    from firnline.runtime.status import due

    project = Project(_moved(root, work))
    declared = project.declared(pipeline)
    graph = declared.graph
    end = due(project, graph) if upto is None else graph.schedule.epoch_at(graph.schedule.point(upto)).upper
    with opened(project.settings, f"test of {pipeline}") as session:
        for epoch in graph.schedule.epochs(graph.schedule.start, end):
            for collection in graph.collections:
                list(advance(project, declared, session, collection.name, epoch))
            complete(project, graph, epoch)
    return Ran(project, graph)


@contextmanager
def at(moment: object) -> Iterator[None]:
    """Let ``firnline.epoch_time()`` be a moment (ISO text, a datetime, or an integer), to call a stage's function by itself."""
    is_timed = not isinstance(moment, int)
    point = Schedule.parse("@hourly" if is_timed else 1, "1970-01-01" if is_timed else 0, None).point(moment)
    with logical_time.at(point, is_timed=is_timed):
        yield


def _moved(root: Path | None, work: Path) -> Settings:
    """The project's settings with everything that is written below another folder, and the jars where they are."""
    work = work.resolve()
    jars = work / "jars"
    if not jars.exists():
        work.mkdir(parents=True, exist_ok=True)
        jars.symlink_to(Settings.load(root).jars)
    with mock.patch.dict(os.environ, {"FIRNLINE_WORK": str(work), **_BELOW_WORK}):
        return Settings.load(root)


def _named(found: show.Rows) -> list[dict[str, Any]]:
    columns, rows = found
    return [dict(zip(columns, row, strict=True)) for row in rows]
