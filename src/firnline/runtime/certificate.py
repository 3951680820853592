"""``firnline verify --replay``: published epochs are computed once more, elsewhere, and compared with what was published.

Every stage is replayed from its inputs as they are stored, so that a difference is that stage's own. What is staged for it is
dropped again: nothing is published, and no log changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import table_name
from firnline.engine.staging import epoch_rows, staged_rows
from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.names import BOOKKEEPING, DIFF, PART, QUARANTINE, quoted
from firnline.plan.repairing import made_of
from firnline.plan.safepoint import compacted
from firnline.runtime.attempt import Staged
from firnline.runtime.gaps import had_gaps
from firnline.runtime.project import Declared, Project
from firnline.runtime.stage_run import StageRun
from firnline.runtime.writing import Placement
from firnline.tables.log import Entry, Log
from firnline.world import world

_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that come out otherwise than they were published."""

    parts: tuple[int, ...]
    columns: tuple[str, ...]
    """The columns in which rows of the same keys differ; all if no keys are the same."""
    published: tuple[dict[str, Any], ...]
    """Some rows that only the log has, with their weights."""
    replayed: tuple[dict[str, Any], ...]
    """Some rows that only the replay has."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One epoch of one log, computed once more."""

    pipeline: str
    stage: str
    """Whose code it is."""
    collection: str
    """The stage's own, or one that it keeps."""
    epoch: str
    rows: int
    seconds: float
    difference: Difference | None = None
    skipped: str = ""
    """Why it was not computed."""


def certify(
    project: Project,
    session: SparkSession,
    asked: str | None = None,
    epoch: str | None = None,
    begun: Callable[[str], None] = lambda _: None,
) -> list[Replayed]:
    """Compute published epochs once more.

    Args:
        project: The project.
        session: Where.
        asked: ``PIPELINE`` with all of its stages, or ``PIPELINE.COLLECTION``; all stages by default. A source is replayed
            only if it is asked for.
        epoch: One epoch; all that the logs keep by themselves by default.
        begun: Told the name and epoch of each before it is computed.
    """
    pipeline, _, name = (asked or "").partition(".")
    done: list[Replayed] = []
    for each in [pipeline] if pipeline else project.pipelines():
        declared = project.declared(each)
        stages = [of for of in declared.graph.collections if of.kind == "stage"]
        chosen = [declared.graph.collection(name)] if name else stages
        for collection in chosen:
            done += _Certifying(project, declared, session, collection, begun).epochs(epoch)
    return done


@dataclass(frozen=True)
class _Certifying:
    """One stage's epochs."""

    project: Project
    declared: Declared
    session: SparkSession
    collection: Collection
    begun: Callable[[str], None]

    def epochs(self, wanted: str | None) -> Iterator[Replayed]:
        graph = self.declared.graph
        only = None if wanted is None else graph.schedule.point(wanted)
        if only is not None:
            graph.schedule.epoch_at(only)  # refused before its start and after its end
        hidden = f"{self.collection.name}__"
        names = [each for each in sorted(self.project.catalog.names(graph.name)) if each.startswith(hidden)]
        for name in (*(each for each in names if not each.endswith(QUARANTINE)), self.collection.name):
            log = self.project.log(graph.name, name)
            entries = list(log.entries())
            since = max((entry.description.since for entry in entries), default=graph.schedule.start)
            if only is not None and only < since:
                raise compacted(graph, name, since)
            for entry in reversed([entry for entry in entries if entry.lower >= since]):
                lowers = sorted({epoch for epoch, _ in log.sidecar(entry).digests})
                for epoch in (graph.schedule.stored(lower, lowers, entry.description.upper) for lower in lowers):
                    if only is None or epoch.lower <= only < epoch.upper:
                        yield self._replayed(log, entry, epoch)

    def _replayed(self, log: Log, entry: Entry, epoch: Epoch) -> Replayed:
        graph = self.declared.graph
        label = graph.schedule.label(epoch.lower)
        expected = {cell: of for cell, of in log.sidecar(entry).digests.items() if cell[0] == epoch.lower}
        rows = sum(of.rows for of in expected.values())
        about = (graph.name, self.collection.name, log.collection, label, rows)
        if self.collection.nondeterministic:
            return Replayed(*about, 0.0, skipped="it is declared nondeterministic=True")
        if entry.fingerprint.code != graph.fingerprints[self.collection.name]:
            return Replayed(*about, 0.0, skipped="it was made by other code than today's")
        if without := had_gaps(self.project, graph, self.collection):
            return Replayed(*about, 0.0, skipped=f"rows of {', '.join(without)} were missing for a while")
        merged = [name for name in made_of(self.collection, log.collection) if self._since(name) > epoch.lower]
        if merged:
            return Replayed(*about, 0.0, skipped=f"{', '.join(merged)} does not keep the epoch by itself any more")
        self.begun(f"{graph.name}.{log.collection} {label}")
        began = time.monotonic()
        table = log.load()
        assert table is not None, "it has entries"
        parts = tuple(range(Placement.of(table).parts))
        run = StageRun(self.project, self.declared, self.session, self.collection, epoch, world().new_id())
        staged = run.replay(log.collection, parts)
        try:
            cells = {*expected, *staged.digests}
            wrong = sorted(part for _, part in cells if expected.get((epoch.lower, part), Digest()) != _of(staged, epoch, part))
            found = self._difference(log, entry, epoch, staged, tuple(wrong)) if wrong else None
        finally:
            log.discard(staged.attempt)
        return Replayed(*about, time.monotonic() - began, found)

    def _since(self, name: str) -> int:
        """Where the single epochs of an input begin."""
        graph = self.declared.graph
        head = self.project.log(graph.name, name).head()
        return graph.schedule.start if head is None else head.description.since

    def _difference(self, log: Log, entry: Entry, epoch: Epoch, staged: Staged, parts: tuple[int, ...]) -> Difference:
        name = table_name(log.pipeline, log.collection)
        stored = epoch_rows(self.session, name, entry.through[0], epoch.lower)
        again = stored.limit(0)
        if staged.snapshot is not None:
            table = log.load()
            parent = table.snapshots[staged.snapshot].parent if table is not None else None
            if parent is None:
                raise FirnlineError("GENERATION_CHANGED", f"what was staged for {log.pipeline}.{log.collection} is gone")
            again = staged_rows(self.session, name, staged.snapshot, parent)
        names = [column for column in stored.columns if column not in BOOKKEEPING]
        then, now = (_merged(rows.where(F.col(PART).isin(*parts)), names) for rows in (stored, again))
        lost, new = then.exceptAll(now), now.exceptAll(then)
        keys = [key for key in self.collection.keys if key in names] if log.collection == self.collection.name else []
        return Difference(parts, _columns(lost, new, keys, names), _sample(lost), _sample(new))


def _of(staged: Staged, epoch: Epoch, part: int) -> Digest:
    return staged.digests.get((epoch.lower, part), Digest())


def _merged(rows: DataFrame, names: list[str]) -> DataFrame:
    """Equal rows as one, with the sum of their weights."""
    return rows.groupBy(*(F.col(quoted(name)) for name in names)).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) != 0)


def _columns(lost: DataFrame, new: DataFrame, keys: list[str], names: list[str]) -> tuple[str, ...]:
    """The columns in which rows with the same keys and weights differ."""
    others = [name for name in names if name not in keys]
    if not keys or not others:
        return tuple(names)
    left, right = lost.alias("published"), new.alias("replayed")
    same = [F.col(f"published.{quoted(key)}").eqNullSafe(F.col(f"replayed.{quoted(key)}")) for key in (*keys, DIFF)]
    pairs = left.join(right, reduce(lambda one, other: one & other, same))
    differ = [
        F.max((~F.col(f"published.{quoted(name)}").eqNullSafe(F.col(f"replayed.{quoted(name)}"))).cast("int")) for name in others
    ]
    found = pairs.agg(*(each.alias(str(number)) for number, each in enumerate(differ))).collect()[0]
    return tuple(name for name, value in zip(others, found, strict=True) if value) or tuple(names)


def _sample(rows: DataFrame) -> tuple[dict[str, Any], ...]:
    return tuple(row.asDict(recursive=True) for row in rows.limit(_SAMPLE).collect())
