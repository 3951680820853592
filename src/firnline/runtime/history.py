"""What maintenance remembers of itself: one small file per run beside the logs, the last ones. Nothing is decided by them.

A sample tells how a log was at one of its ends. Those of runs tell the past; what came after the last run is told by the
snapshots that the log still has.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from firnline.model.graph import Graph
from firnline.runtime.safepoint import safe_point
from firnline.tables.control import TABLE
from firnline.world import world

if TYPE_CHECKING:
    from firnline.runtime.project import Project
    from firnline.tables.metadata import Metadata

FOLDER = "_maintenance"
KEPT = 500
"""Runs that are remembered."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A log as it was when it ended at ``upper``."""

    collection: str
    upper: int
    since: int
    layers: int
    files: int
    bytes: int
    rows: int
    """Stored rows of all layers."""
    weight: int
    """Rows of the state that they add up to."""

    @property
    def amplification(self) -> float | None:
        """How many rows are read for one of the state; None while there is no state."""
        return self.rows / self.weight if self.weight > 0 else None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of maintenance over a pipeline: how its logs were before and after, and what was done."""

    at: datetime
    seconds: float
    safe: int
    before: tuple[Sample, ...]
    after: tuple[Sample, ...]
    rewritten: int = 0
    """Bytes that merges wrote."""
    merges: int = 0
    snapshots: int = 0
    """Those that were dropped."""
    files: int = 0
    """Those that were removed."""
    freed: int = 0
    """Their bytes."""

    def as_json(self) -> bytes:
        """The file's content."""
        return json.dumps({**asdict(self), "at": self.at.isoformat()}).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Run:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(content)
        samples = {name: tuple(Sample(**each) for each in data[name]) for name in ("before", "after")}
        return cls(**{**data, **samples, "at": datetime.fromisoformat(data["at"])})


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a pipeline."""

    graph: Graph
    samples: tuple[Sample, ...]
    """In the order of time, for each log."""
    runs: tuple[Run, ...]
    safe: int
    frontier: int


def remember(project: Project, pipeline: str, run: Run) -> None:
    """Keep a run, and forget the oldest."""
    folder = _folder(project, pipeline)
    stamp = f"{run.at:%Y%m%dT%H%M%S.%f}"
    project.catalog.write(f"{folder}/{stamp}-{world().new_id()[:8]}.json", run.as_json())
    for path in sorted(project.catalog.paths(folder))[:-KEPT]:
        project.catalog.remove(path)


def runs(project: Project, pipeline: str) -> list[Run]:
    """What is remembered, the oldest first."""
    found = [Run.of_json(content) for content in project.catalog.read_all(_folder(project, pipeline)).values()]
    return sorted(found, key=lambda run: run.at)


def sampled(table: Metadata) -> Sample:
    """How a log that holds something is now."""
    from firnline.tables.layers import layers
    from firnline.tables.log import ROWS, WEIGHT, head_of

    assert table.head is not None, "a log that holds something"
    description, found = head_of(table).description, layers(table)
    return Sample(
        table.name,
        description.upper,
        description.since,
        len(found),
        int(table.head.summary.get("total-data-files", 0)),
        int(table.head.summary.get("total-files-size", 0)),
        sum(int(each.summary[ROWS]) for each in found),
        sum(int(each.summary[WEIGHT]) for each in found),
    )


def told(project: Project, graph: Graph) -> Told:
    """All that is known."""
    past = runs(project, graph.name)
    samples = [sample for run in past for sample in (*run.before, *run.after)]
    reached = {sample.collection: sample.upper for sample in samples}
    names = project.catalog.names(graph.name)
    for name in sorted(names - {TABLE}):
        table = project.catalog.table(graph.name, name)
        if table is not None and table.head is not None:
            samples += [*_after(table, reached.get(name)), sampled(table)]
    frontier = project.control(graph.name).frontier() if TABLE in names else None
    end = graph.schedule.start if frontier is None else frontier.upper
    return Told(graph, tuple(samples), tuple(past), safe_point(project, graph).at, end)


def _after(table: Metadata, upper: int | None) -> list[Sample]:
    """How a log was as of each snapshot that it has of what came after a point, the oldest first."""
    from firnline.tables.layers import description_of

    found = []
    for snapshot in table.main_line():
        if upper is not None and description_of(table, snapshot).upper <= upper:
            break
        older = {each.id: each for each in table.snapshots.values() if each.sequence <= snapshot.sequence}
        found.append(sampled(replace(table, snapshots=older, current=snapshot.id)))
    return found[::-1]


def _folder(project: Project, pipeline: str) -> str:
    return f"{project.catalog.warehouse}/{pipeline}/{FOLDER}"
