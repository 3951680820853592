"""Merging layers: many small epochs of a log become one, and what one of them undid of another is gone.

The merged rows are staged beside the main line and exchanged for those they stand for only if they add up to the same digests,
part by part. Epochs go on meanwhile: a publish in between is kept, and of two that exchange files of one log at once one does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.gap import Gap
from firnline.model.graph import Graph
from firnline.plan.layers import Group, Layer, groups
from firnline.runtime.project import Project
from firnline.tables.control import TABLE as CONTROL
from firnline.tables.layers import MERGE, newest_exchange
from firnline.tables.log import Entry, Log, counting, cut_into, entries_of, head_of
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Input, Sidecar
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.metadata import Metadata

Digests = Mapping[tuple[int, int], Digest]


@dataclass(frozen=True, slots=True)
class Merge:
    """Layers of a log that are to be one."""

    pipeline: str
    collection: str
    lower: int
    upper: int
    layers: int
    rows: int
    """The rows in them, insertions and removals."""
    bytes: int
    """About how many bytes are to be written."""
    benefit: float
    """Rows that nobody reads in vain any more, for every byte that is written."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that is done."""

    merge: Merge
    rows: int
    """The rows of it that are left."""
    bytes: int
    """Bytes that were written."""
    seconds: float


def merges(project: Project, graph: Graph, safe: int) -> list[Merge]:
    """What is worth merging in the logs of a pipeline, nothing of it beyond the safe point; the most beneficial first."""
    found = []
    gaps = project.control(graph.name).gaps()
    for name in sorted(project.catalog.names(graph.name) - {CONTROL}):
        table = project.log(graph.name, name).load()
        # What may come back, comes back to where it was.
        held = min((span.first for gap in gaps.of(name) if not _is_over(gap, safe) for span in gap.spans), default=safe)
        if table is not None:
            found += [_merge(graph, name, group) for group in groups(_layers(graph, table), min(safe, held))]
    return sorted(found, key=lambda each: each.benefit, reverse=True)


def _is_over(gap: Gap, safe: int) -> bool:
    """Whether the states from the safe point on have the rows of a gap, which their stage has made again."""
    return gap.made_good is not None and gap.made_good <= safe


def _merge(graph: Graph, collection: str, group: Group) -> Merge:
    return Merge(graph.name, collection, group.lower, group.upper, len(group.layers), group.rows, group.bytes, group.benefit)


def _layers(graph: Graph, table: Metadata) -> list[Layer]:
    """The layers of a log, oldest first."""

    def layer(entry: Entry) -> Layer:
        upper = entry.description.upper
        size = int(table.snapshots[entry.snapshot].summary.get("added-files-size", 0))
        return Layer(entry.lower, upper, graph.schedule.count(entry.lower, upper), entry.rows, entry.weight, size)

    return [layer(entry) for entry in entries_of(table)][::-1]


def merge(project: Project, graph: Graph, session: SparkSession, planned: Merge, safe: int) -> Merged | None:
    """Merge layers as planned; nothing if the log is not as it was then.

    Raises:
        FirnlineError: ``MERGE_DIFFERS`` if what comes out is not the sum of what was published; nothing is changed then.
    """
    log = project.log(planned.pipeline, planned.collection)
    table = log.load()
    if table is None or planned.upper > safe:
        return None
    entries = [entry for entry in entries_of(table) if planned.lower <= entry.lower and entry.description.upper <= planned.upper]
    is_as_planned = len(entries) > 1 and (entries[-1].lower, entries[0].description.upper) == (planned.lower, planned.upper)
    gaps = tuple(gap for gap in project.control(graph.name).gaps().of(planned.collection) if _is_over(gap, safe))
    return _Merging(graph, session, log, table, planned, entries, gaps).done() if is_as_planned else None


@dataclass(frozen=True)
class _Merging:
    """Layers of a log on their way into one."""

    graph: Graph
    session: SparkSession
    log: Log
    table: Metadata
    """The log as it was looked at."""
    planned: Merge
    entries: Sequence[Entry]
    """The layers, newest first."""
    gaps: tuple[Gap, ...]
    """Those that are over, whose rows the layers may still count."""

    def done(self) -> Merged | None:
        began = time.monotonic()
        attempt = world().new_id()
        sidecars = [self.log.sidecar(entry) for entry in self.entries]
        going = [
            file for file in self.log.held(self.table) if self.planned.lower <= file.first and file.last < self.planned.upper
        ]
        try:
            staged, digests = self._staged(attempt)
            self._compare([self._stored(*each) for each in zip(self.entries, sidecars, strict=True)], digests)
            note = self._note(attempt, sidecars, digests)
            out = frozenset(file.path for file in going)
            change = Exchange(out=out, staged=() if staged is None else (staged,))
            newest, head = newest_exchange(self.table), head_of(self.table)
            since = None if newest is None else newest.id
            verdict = self.log.exchange(head.description.generation, since, replace(note, out=tuple(sorted(out))), change)
        except BaseException:
            self.log.discard(attempt)
            raise
        if verdict is not Verdict.FREE:
            return None
        rows = sum(digest.rows for digest in digests.values())
        return Merged(self.planned, rows, self._written(attempt), time.monotonic() - began)

    def _written(self, attempt: str) -> int:
        entry = next((entry for entry in self.log.entries() if entry.attempt == attempt), None)
        files = () if entry is None else self.log.sidecar(entry).files
        return sum(file.bytes for file in files or ())

    def _staged(self, attempt: str) -> tuple[int | None, Digests]:
        """The merged rows, staged, and their digests; nothing where there are none."""
        from pyspark.errors import PySparkException

        from firnline.runtime.evaluation import diagnosed

        if not any(entry.rows for entry in self.entries):
            return None, {}
        try:
            return self._written_rows(attempt)
        except PySparkException as error:
            code, text = diagnosed(error)
            raise FirnlineError(code, f"{self._name}: {text}") from error

    def _written_rows(self, attempt: str) -> tuple[int | None, Digests]:
        from firnline.engine import staging
        from firnline.engine.frames import table_name

        planned, table = self.planned, self.table
        assert table.current is not None, "a log with layers has a head"
        name = table_name(planned.pipeline, planned.collection)
        # The schedule may be another one than then.
        epoch = max(self.graph.schedule.epoch_at(planned.upper - 1).lower, self.entries[0].lower)
        rows = staging.merged(self.session, name, table.current, planned.lower, planned.upper, epoch)
        columns = staging.columns_of(rows.schema, table.columns)
        few = staging.gathered(rows, columns) if sum(entry.rows for entry in self.entries) <= staging.FEW else None
        if few is not None and not few.digests:
            return None, {}
        if few is not None:
            self.log.stage(attempt, planned.lower, few.rows, MERGE)
            world().reach("stage.written")
            return self.log.staged(attempt), few.digests
        staging.stage(self.session, rows, name, attempt, planned.lower, kind=MERGE)
        world().reach("stage.written")
        snapshot = self.log.staged(attempt)
        loaded = self.log.load()
        parent = None if loaded is None else loaded.snapshots[snapshot].parent
        assert parent is not None, "what is merged stands on something"
        return snapshot, staging.digests(staging.staged_rows(self.session, name, snapshot, parent), columns)

    def _stored(self, entry: Entry, sidecar: Sidecar) -> Digests:
        """The digests of a layer without the rows that were left out of it."""
        gone = [gap for gap in self.gaps if entry.snapshot in counting(self.table, gap)]
        return {cell: digest for cell, digest in sidecar.digests.items() if not any(cell in gap for gap in gone)}

    def _compare(self, layers: Sequence[Digests], digests: Digests) -> None:
        """Refuse rows that are not the sum of those that were published, and not left out."""
        published, found = by_part(*layers), by_part(digests)
        parts = sorted(published.keys() | found.keys())
        wrong = [part for part in parts if not published.get(part, Digest()).is_same_state(found.get(part, Digest()))]
        if wrong:
            what = f"parts {', '.join(map(str, wrong))}: the merged rows are not the sum of those that were published"
            raise FirnlineError("MERGE_DIFFERS", f"{self._name}, {what}")

    @property
    def _name(self) -> str:
        label, planned = self.graph.schedule.label, self.planned
        return f"{planned.pipeline}.{planned.collection} from {label(planned.lower)} to {label(planned.upper)}"

    def _note(self, attempt: str, sidecars: Sequence[Sidecar], digests: Digests) -> Sidecar:
        """What a publish of all of it would have written down."""
        return Sidecar(
            self.planned.collection,
            self.planned.lower,
            self.planned.upper,
            attempt,
            sidecars[0].fingerprint,
            dict(_inputs(sidecars)),
            digests,
            sum(entry.seconds for entry in self.entries),
            merged=tuple(entry.attempt for entry in self.entries),
            parts=cut_into(self.table),
        )


def by_part(*several: Digests) -> dict[int, Digest]:
    """Digests added up over epochs."""
    added: dict[int, Digest] = {}
    for digests in several:
        for (_, part), digest in digests.items():
            added[part] = added.get(part, Digest()) + digest
    return added


def _inputs(sidecars: Sequence[Sidecar]) -> Iterator[tuple[str, Input]]:
    """What the newest of several publishes read, with the rows of all of them."""
    for name, newest in sidecars[0].inputs.items():
        every = [sidecar.inputs[name] for sidecar in sidecars if name in sidecar.inputs]
        is_same = all(each.parts == "same" for each in every)
        yield name, replace(newest, rows=sum(each.rows for each in every), parts="same" if is_same else "all")
