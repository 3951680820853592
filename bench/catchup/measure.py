"""What catching up costs: many small epochs as ``firnline run`` computes them, against one, and against one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql.connect.session import SparkSession

from bench.catchup.pipeline import MODULE, NAMES, SETTINGS
from bench.project import project_in
from firnline.engine.session import opened
from firnline.runtime.overlap import overlapped
from firnline.runtime.project import Project
from firnline.runtime.show import rows

WARM_UP = 3
"""Epochs before the first round: the first is a load, and later ones are Spark's own warming up."""
SINGLE, TOGETHER = NAMES


@dataclass(frozen=True, slots=True)
class Round:
    """So many epochs, both ways."""

    single: tuple[float, ...]
    """Seconds of each epoch, one after the other."""
    together: float
    """Seconds of all of them at once."""
    at_once: int
    """The most epochs that one job computed."""
    differences: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """How many times the price of one epoch all of them cost."""
        return self.together / median(self.single)


def measured(root: Path, jars: Path, count: int, changed: int, runs: int, say: Callable[[str], None]) -> list[Round]:
    """Counted rounds of so many epochs with so many rows each; one more warms up."""
    for name in NAMES:
        project = project_in(root, SETTINGS, name, MODULE.format(name=name, rows=changed), jars)
    with opened(project.settings, "firnline bench catchup") as session:
        return list(rounds(project, session, WARM_UP, count, runs + 1, say))[1:]


def rounds(
    project: Project, session: SparkSession, first: int, count: int, runs: int, say: Callable[[str], None]
) -> Iterator[Round]:
    """Rounds of so many epochs each, after the first few."""
    for name in NAMES:
        for epoch in range(first):
            say(f"epoch {epoch} of {name}")
            _run(project, session, name, epoch)
    for number in range(runs):
        say(f"round {number + 1} of {runs}")
        yield _round(project, session, first + number * count, count)


def _round(project: Project, session: SparkSession, first: int, count: int) -> Round:
    single = tuple(_run(project, session, SINGLE, epoch)[0] for epoch in range(first, first + count))
    seconds, at_once = _run(project, session, TOGETHER, first + count - 1)
    return Round(single, seconds, at_once, tuple(_differences(project, range(first, first + count))))


def _run(project: Project, session: SparkSession, name: str, last: int) -> tuple[float, int]:
    """Bring a pipeline through an epoch, as ``firnline run`` does; how long it took, and the most epochs of one job."""
    declared = project.declared(name)
    began = time.monotonic()
    outcomes = list(overlapped(project, declared, session, declared.graph.schedule.epoch_at(last)))
    return time.monotonic() - began, max(each.at_once for each in outcomes)


def _differences(project: Project, epochs: range) -> Iterator[str]:
    """Where the two disagree: digests and lineage of every epoch of every log, rows of every collection after every epoch."""
    logs = {name for name in project.catalog.names(SINGLE) if name != "_frontier"}
    for log in sorted(logs):
        one, other = (_written(project, name, log, epochs.start) for name in NAMES)
        yield from (f"{log} at {epoch}" for epoch in epochs if one.get(epoch) != other.get(epoch) or epoch not in one)
    for collection in project.graph(SINGLE).collections:
        for epoch in epochs:
            states = [_state(project, name, collection.name, epoch) for name in NAMES]
            if states[0] != states[1]:
                yield f"{collection.name} as of {epoch}"


def _written(project: Project, name: str, collection: str, after: int) -> dict[int, object]:
    log = project.log(name, collection)
    found: dict[int, object] = {}
    for entry in log.entries(after):
        sidecar = log.sidecar(entry)
        read = {of: (each.upper, each.rows, each.parts) for of, each in sidecar.inputs.items()}
        found[entry.lower] = (entry.description.upper, entry.rows, entry.weight, sidecar.digests, read)
    return found


def _state(project: Project, name: str, collection: str, epoch: int) -> list[str]:
    return sorted(map(repr, rows(project, project.graph(name), collection, str(epoch))[1]))
