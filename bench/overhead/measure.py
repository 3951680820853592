"""What certainty costs: epochs with digests, lineage and commits, and without them; with a slow ledger, and with none; in turns.

Without, an epoch is computed, written and its keys are checked as ever; but nobody adds up digests, writes a sidecar, commits to
the catalog or tells the ledger, and what was staged is dropped, which is not counted. Both kinds of run do the same epoch, one
after the other. Epochs as large follow or come before, one with 5 seconds added to every call of the ledger, one with a ledger
that is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest import mock

from pyspark.sql.connect.session import SparkSession
from sqlalchemy import Connection

from bench.project import project_in
from firnline.engine import staging
from firnline.engine.session import opened
from firnline.errors import FirnlineError
from firnline.ledger import Ledger
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.runtime.advance import advance
from firnline.runtime.project import Declared, Project
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


KINDS = ("off", "on", "slow ledger", "no ledger")
_PUBLISHING = KINDS[1:]


def _steps(number: int) -> list[tuple[str, str, int]]:
    """What a round does in its three epochs: kind, collection and epoch.

    Checking keys takes longer as the state grows. So each round begins with another kind.
    """
    turn = number % len(_PUBLISHING)
    order = enumerate((*_PUBLISHING[turn:], *_PUBLISHING[:turn]), number * len(_PUBLISHING))
    both = [(lower, ("off", kind) if kind == "on" else (kind,)) for lower, kind in order]
    return [(kind, name, lower) for lower, kinds in both for name in COLLECTIONS for kind in kinds]


_LEDGER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one collection's epochs, by kind."""

    collection: str
    seconds: dict[str, list[float]]

    def over(self, kind: str, base: str) -> float:
        """How much longer one kind takes: the median over the rounds, so that a slow moment counts in one only."""
        return median(one / other for one, other in zip(self.seconds[kind], self.seconds[base], strict=True)) - 1


def measured(root: Path, jars: Path, rows: int, runs: int, say: Callable[[str], None]) -> list[Cost]:
    """Run epochs of so many changed rows, with and without, and tell what each took."""
    project = project_in(root, _SETTINGS, NAME, _PIPELINE.format(rows=rows), jars)
    declared = project.declared(NAME)
    taken: dict[tuple[str, str], list[float]] = {(kind, name): [] for kind in KINDS for name in COLLECTIONS}
    with opened(project.settings, NAME) as session:
        for number in range(runs + 1):  # the first warms up
            for kind, name, lower in _steps(number):
                say(f"round {number} of {runs}: {name}, {kind}")
                with _KINDS[kind](project) as attempts:
                    seconds = _timed(project, declared, session, name, Epoch(lower, lower + 1))
                for log, attempt in attempts:
                    log.discard(attempt)
                if number:
                    taken[kind, name].append(seconds)
    costs = [Cost(name, {kind: taken[kind, name] for kind in KINDS}) for name in COLLECTIONS]
    whole = {kind: [sum(each) for each in zip(*(cost.seconds[kind] for cost in costs), strict=True)] for kind in KINDS}
    return [*costs, Cost("the epoch", whole)]


def _timed(project: Project, declared: Declared, session: SparkSession, name: str, epoch: Epoch) -> float:
    began = time.monotonic()
    list(advance(project, declared, session, name, epoch))
    return time.monotonic() - began


Attempts = list[tuple[Log, str]]
"""What was staged and not published."""


@contextmanager
def _off(_: Project) -> Iterator[Attempts]:
    attempts: Attempts = []

    def forgotten(log: Log, generation: int, sidecar: Sidecar, staged: int | None, *, is_one: bool = True) -> Verdict:
        attempts.append((log, sidecar.attempt))
        return Verdict.TAKEN

    one = {(0, 0): Digest(1, 1)}  # some, so that keys are checked
    with mock.patch.object(staging, "digests", return_value=one), mock.patch.object(Log, "publish", forgotten):
        yield attempts


@contextmanager
def _on(_: Project) -> Iterator[Attempts]:
    yield []


@contextmanager
def _slow_ledger(project: Project) -> Iterator[Attempts]:
    @contextmanager
    def slowly(ledger: Ledger, **how: bool) -> Iterator[Connection]:
        time.sleep(_LEDGER_SECONDS)
        with transaction(ledger, **how) as connection:
            yield connection

    transaction = Ledger._transaction
    with mock.patch.object(Ledger, "_transaction", slowly):
        yield []
    project.flusher.drain(60)


@contextmanager
def _no_ledger(project: Project) -> Iterator[Attempts]:
    @contextmanager
    def away(ledger: Ledger, **how: bool) -> Iterator[Connection]:
        raise FirnlineError("LEDGER_UNAVAILABLE", "there is none in this run")
        yield

    with mock.patch.object(Ledger, "_transaction", away):
        yield []
    project.flusher.drain(60)


_KINDS: Mapping[str, Callable[[Project], AbstractContextManager[Attempts]]] = {
    "off": _off,
    "on": _on,
    "slow ledger": _slow_ledger,
    "no ledger": _no_ledger,
}
