"""Many small epochs, with maintenance after each and without any: what it costs, and what reading the state costs in the end.

Two pipelines run the same epochs in one session, turn by turn. In the end the state of both is read, and that of a plain table
that is written anew from the same rows. Trash is emptied without grace, so that the files that are left can be counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import log2
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

import firnline
from bench.maintenance.pipeline import LEFT, MAINTAINED, MODULE, READINGS, SUMS
from bench.project import project_in
from firnline.engine.session import opened
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance, complete
from firnline.runtime.maintain import Budget, maintained
from firnline.runtime.project import Project

READ_LIMIT, TIME_LIMIT = 1.15, 0.5
_READS = 7
_SETTINGS = """\
spark_master = "local[2]"
spark_memory = "6g"
spark_shuffle_partitions = 4
"""
_FRESH = "lake.fresh.readings"


@dataclass
class Kept:
    """What a pipeline came to.

    Args:
        epoch_seconds: What each epoch took, the first aside.
        maintenance_seconds: What maintenance took after each.
        ingested: Bytes that epochs wrote.
        rewritten: Bytes that merges wrote.
        reads: What reading the state of the readings took.
        layers: How many layers the readings have.
        named: How many data files their state is in.
        stored: How many data files of theirs there are.
        bytes: How many bytes these have.
    """

    epoch_seconds: list[float] = field(default_factory=list)
    maintenance_seconds: list[float] = field(default_factory=list)
    ingested: int = 0
    rewritten: int = 0
    reads: list[float] = field(default_factory=list)
    layers: int = 0
    named: int = 0
    stored: int = 0
    bytes: int = 0


@dataclass
class Measured:
    """Both pipelines, and what reading a table takes that was written anew."""

    epochs: int
    rows: int
    maintained: Kept = field(default_factory=Kept)
    left: Kept = field(default_factory=Kept)
    fresh: list[float] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def reading(self, kept: Kept) -> float:
        """Reading a state, over reading a fresh table."""
        return median(kept.reads) / median(self.fresh)

    @property
    def rewriting(self) -> float:
        """Bytes rewritten for each that came in."""
        return self.maintained.rewritten / self.maintained.ingested

    @property
    def rewriting_limit(self) -> float:
        """What that should stay below."""
        return log2(self.epochs)

    @property
    def upkeep(self) -> float:
        """The time of maintenance over that of the epochs."""
        return sum(self.maintained.maintenance_seconds) / sum(self.maintained.epoch_seconds)


def measured(root: Path, jars: Path, rows: int, epochs: int, say: Callable[[str], None]) -> Measured:
    """Run it all in a new project."""
    for name in (MAINTAINED, LEFT):
        project = project_in(root, _SETTINGS, name, MODULE.format(name=name, rows=rows), jars)
    with opened(project.settings, "firnline bench maintenance") as session:
        return compared(project, session, rows, epochs, say)


def compared(project: Project, session: SparkSession, rows: int, epochs: int, say: Callable[[str], None]) -> Measured:
    """Run the epochs of both pipelines, then read what they came to."""
    found = Measured(epochs, rows)
    for number in range(epochs):
        say(f"epoch {number + 1} of {epochs}")
        turns = ((MAINTAINED, found.maintained), (LEFT, found.left))
        for name, kept in turns if number % 2 else turns[::-1]:
            _epoch(project, session, name, number, kept)
        _maintain(project, session, found.maintained)
    for name, kept in ((MAINTAINED, found.maintained), (LEFT, found.left)):
        _count(project, name, kept)
    say("reading")
    _read(project, session, found)
    return found


def _epoch(project: Project, session: SparkSession, name: str, number: int, kept: Kept) -> None:
    declared, epoch = project.declared(name), Epoch(number, number + 1)
    began = time.monotonic()
    for collection in (READINGS, SUMS):
        list(advance(project, declared, session, collection, epoch))
    complete(project, declared.graph, epoch)
    if number:
        kept.epoch_seconds.append(time.monotonic() - began)
    for log in (project.log(name, each) for each in _logs(project, name)):
        newest = next(log.entries())
        kept.ingested += sum(file.bytes for file in log.sidecar(newest).files or ())


def _maintain(project: Project, session: SparkSession, kept: Kept) -> None:
    began = time.monotonic()
    graph = project.declared(MAINTAINED).graph
    done = list(maintained(project, graph, lambda: session, timedelta(0), Budget.of(None, None)))
    kept.maintenance_seconds.append(time.monotonic() - began)
    kept.rewritten += sum(each.step.bytes for each in done if each.step.what == "merge" and each.error is None)


def _logs(project: Project, name: str) -> Sequence[str]:
    return sorted(each for each in project.catalog.names(name) if not each.startswith("_"))


def _count(project: Project, name: str, kept: Kept) -> None:
    log = project.log(name, READINGS)
    kept.layers = len(list(log.entries()))
    table = log.load()
    assert table is not None
    assert table.head is not None
    kept.named = int(table.head.summary["total-data-files"])
    stored = list(Path(urlsplit(table.location).path).glob("data/**/*.parquet"))
    kept.stored, kept.bytes = len(stored), sum(path.stat().st_size for path in stored)


def _read(project: Project, session: SparkSession, found: Measured) -> None:
    """Read everything of the states and of a fresh table, turn by turn."""
    frames = {name: firnline.read(f"{name}.{READINGS}", session=session, project=project) for name in (MAINTAINED, LEFT)}
    session.sql("CREATE NAMESPACE IF NOT EXISTS lake.fresh")
    frames[MAINTAINED].repartition(4).sortWithinPartitions("id").writeTo(_FRESH).using("iceberg").createOrReplace()
    frames["fresh"] = session.table(_FRESH)
    seconds: dict[str, list[float]] = {name: [] for name in frames}
    answers: dict[str, Row] = {}
    for _ in range(_READS):
        for name, frame in frames.items():
            began = time.monotonic()
            answers[name] = _everything(frame).collect()[0]
            seconds[name].append(time.monotonic() - began)
    found.maintained.reads, found.left.reads, found.fresh = (seconds[name][2:] for name in (MAINTAINED, LEFT, "fresh"))
    found.differences += [
        f"{name}: {answer} instead of {answers[LEFT]}" for name, answer in answers.items() if answer != answers[LEFT]
    ]


def _everything(frame: DataFrame) -> DataFrame:
    """A look at every value."""
    return frame.agg(
        F.count("*"), F.sum("value"), F.sum(F.xxhash64("id", "sensor", "note").cast("decimal(38,0)")), F.max("taken_at")
    )
