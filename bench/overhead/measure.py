"""What certainty costs: the same epochs with digests, lineage and commits, and without them, in turns.

Without, an epoch is computed, written and its keys are checked as ever; but nobody adds up digests, writes a sidecar, commits to
the catalog or tells the ledger, and what was staged is dropped, which is not counted. Both kinds of run do the same epoch, one
after the other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest import mock

from pyspark.sql.connect.session import SparkSession

from firnline.engine import staging
from firnline.engine.session import opened
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance
from firnline.runtime.project import PIPELINES, Declared, Project
from firnline.settings import FILE, Settings
from firnline.tables.log import Log
from firnline.tables.sidecar import Sidecar

NAME = "overhead"
COLLECTIONS = ("events", "enriched")
_SETTINGS = """\
spark_master = "local[2]"
spark_memory = "8g"
spark_shuffle_partitions = 4
"""
_PIPELINE = """\
import firnline as fl
from pyspark.sql import functions as F

overhead = fl.Pipeline("overhead", schedule=1, start=0)
ROWS = {rows}


@overhead.source(keys=["id"], parts=4)
def events(epoch):
    numbers = epoch.spark.range(epoch.lower * ROWS, (epoch.lower + 1) * ROWS, numPartitions=4)
    hashed = F.xxhash64("id")
    return numbers.select(
        "id",
        F.pmod(hashed, F.lit(100_000)).alias("user_id"),
        F.hex(hashed).alias("page"),
        (F.pmod(hashed, F.lit(10_000)) / 100).cast("decimal(12,2)").alias("price"),
        F.timestamp_seconds(F.lit(1_700_000_000) + F.col("id") / 1000).alias("at"),
    )


@overhead.stage(keys=["id"], parts=4, refresh="incremental")
def enriched(events):
    return events.where("price > 1").withColumn("day", F.to_date("at")).withColumn("page", F.lower("page"))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one collection's epochs, with and without."""

    collection: str
    on: tuple[float, ...]
    off: tuple[float, ...]

    @property
    def share(self) -> float:
        """How much longer it takes with everything on: the median over the rounds, so that a slow moment counts in one only."""
        return median(on / off for on, off in zip(self.on, self.off, strict=True)) - 1


def measured(root: Path, jars: Path, rows: int, runs: int, say: Callable[[str], None]) -> list[Cost]:
    """Run epochs of so many changed rows, with and without, and tell what each took."""
    project = _project(root, jars, rows)
    declared = project.declared(NAME)
    times: dict[tuple[str, bool], list[float]] = {(name, is_on): [] for name in COLLECTIONS for is_on in (True, False)}
    with opened(project.settings, NAME) as session:
        for number in range(runs + 1):  # the first warms up
            for name in COLLECTIONS:
                for is_on in (False, True):
                    say(f"epoch {number} of {runs}: {name}, {'on' if is_on else 'off'}")
                    seconds = _epoch(project, declared, session, name, Epoch(number, number + 1), is_on=is_on)
                    if number:
                        times[name, is_on].append(seconds)
    costs = [Cost(name, tuple(times[name, True]), tuple(times[name, False])) for name in COLLECTIONS]
    whole = [tuple(map(sum, zip(*(getattr(cost, kind) for cost in costs), strict=True))) for kind in ("on", "off")]
    return [*costs, Cost("the epoch", *whole)]


def _project(root: Path, jars: Path, rows: int) -> Project:
    pipelines = root / PIPELINES
    pipelines.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(_SETTINGS)
    (pipelines / f"{NAME}.py").write_text(_PIPELINE.format(rows=rows))
    settings = Settings.load(root)
    settings.work.mkdir(exist_ok=True)
    if not os.path.lexists(settings.jars):
        settings.jars.symlink_to(jars)
    return Project(settings)


def _epoch(project: Project, declared: Declared, session: SparkSession, name: str, epoch: Epoch, *, is_on: bool) -> float:
    with _everything_on() if is_on else _all_off() as attempts:
        began = time.monotonic()
        list(advance(project, declared, session, name, epoch))
        seconds = time.monotonic() - began
    for log, attempt in attempts:
        log.discard(attempt)
    return seconds


@contextmanager
def _everything_on() -> Iterator[list[tuple[Log, str]]]:
    yield []


@contextmanager
def _all_off() -> Iterator[list[tuple[Log, str]]]:
    attempts: list[tuple[Log, str]] = []

    def forgotten(log: Log, generation: int, sidecar: Sidecar, staged: int | None) -> Verdict:
        attempts.append((log, sidecar.attempt))
        return Verdict.TAKEN

    one = {(0, 0): Digest(1, 1)}  # some, so that keys are checked
    with mock.patch.object(staging, "digests", return_value=one), mock.patch.object(Log, "publish", forgotten):
        yield attempts
