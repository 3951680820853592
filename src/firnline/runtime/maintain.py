"""Maintenance: what keeps logs small without changing a row. It is planned, then done in small steps, each idempotent and short.

Layers behind the safe point are merged; snapshots that nothing needs are dropped; files that nobody names any more are removed
after the grace time; and what was noted about single epochs below since is forgotten. Each step looks, does one small thing and
looks again. It takes no lock: where an epoch is published meanwhile, the step is tried again, not the epoch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.model.duration import time_of
from firnline.model.graph import Graph
from firnline.model.names import parted
from firnline.plan.seeing import voided
from firnline.runtime.gaps import close_made_good
from firnline.runtime.history import Run, Sample, remember, sampled
from firnline.runtime.project import Project
from firnline.runtime.pruning import entries_to_forget, forget_entries, notes_to_forget
from firnline.runtime.safepoint import let_go, safe_point
from firnline.tables.control import TABLE
from firnline.tables.expiry import expirable, outdated, unset
from firnline.tables.trash import Piece, Record, Trash, file_key
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.merge import Merge
    from firnline.tables.metadata import Metadata

_logger = logging.getLogger(__name__)
What = Literal["merge", "expire", "delete", "prune", "undo"]
_PIECES = 200
"""Files that are removed in one step."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A step: what it does, or did, and to how much."""

    pipeline: str
    collection: str
    what: What
    layers: int = 0
    snapshots: int = 0
    files: int = 0
    bytes: int = 0
    """Of a merge those that it writes, of a removal those that go."""
    entries: int = 0
    benefit: float = 0.0
    """Of a merge: bytes that a reader of the state is spared, for each that is written."""

    @property
    def name(self) -> str:
        """Which log."""
        return f"{self.pipeline}.{self.collection}" if self.collection else self.pipeline

    def told(self) -> str:
        """How much, in words."""
        counts = {"layers": self.layers, "snapshots": self.snapshots, "files": self.files, "entries of the ledger": self.entries}
        return ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "settings"


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was taken, or could not be."""

    step: Planned
    seconds: float
    error: FirnlineError | None = None


@dataclass
class Budget:
    """How much may be rewritten, and until when steps may begin."""

    bytes: int | None = None
    until: float | None = None
    spent: int = 0

    @classmethod
    def of(cls, size: int | None = None, seconds: float | None = None) -> Budget:
        """So many bytes, and so many seconds from now."""
        return cls(size, None if seconds is None else time.monotonic() + seconds)

    def is_spent(self) -> bool:
        """Whether nothing may begin any more."""
        return self.until is not None and time.monotonic() >= self.until

    def allows(self, size: int) -> bool:
        """Whether so many bytes may be rewritten."""
        return not self.is_spent() and (self.bytes is None or self.spent + size <= self.bytes)


def grace_of(project: Project, asked: timedelta | None = None) -> timedelta:
    """How long what is let go of stays."""
    return time_of(project.settings.trash) if asked is None else asked


def planned(project: Project, graph: Graph, grace: timedelta) -> list[Planned]:
    """What ``maintained`` would do now; what becomes possible only by its steps is not among it."""
    maintenance = _Maintenance(project, graph, grace)
    return [
        *maintenance.merging(),
        *maintenance.expiring(),
        *(
            step
            for table, record in maintenance.due()
            for step in maintenance.looked_at("delete", table.name, partial(maintenance.deleted, table, record))
        ),
        *maintenance.pruning(),
    ]


def is_tidy(project: Project, graph: Graph, grace: timedelta) -> bool:
    """Whether there is nothing to do; not where that cannot be told."""
    maintenance = _Maintenance(project, graph, grace)
    every = (maintenance.merging, maintenance.expiring, maintenance.due, maintenance.pruning)
    try:
        return not any(next(iter(find()), None) for find in every)
    except FirnlineError:
        return False


def maintained(
    project: Project, graph: Graph, session: Callable[[], SparkSession], grace: timedelta, budget: Budget | None = None
) -> Iterator[Done]:
    """Do what is to be done with the logs of a pipeline, step by step, as far as the budget goes.

    A step that fails is told and does not keep the others from being taken.

    Args:
        project: The project.
        graph: Its pipeline.
        session: Starts Spark; asked only if there are layers to merge.
        grace: How long what is let go of stays.
        budget: How much may be done; everything by default.
    """
    began, at = time.monotonic(), world().now()
    maintenance = _Maintenance(project, graph, grace, budget or Budget())
    before, taken = maintenance.samples(), list[Done]()
    for done in chain(maintenance.merge(session), maintenance.tidy()):
        taken.append(done)
        yield done
    well = [each.step for each in taken if each.error is None]
    if well and maintenance.safe is not None:
        freed = [each for each in well if each.what in ("delete", "prune")]
        run = Run(
            at,
            round(time.monotonic() - began, 3),
            maintenance.safe,
            before,
            maintenance.samples(),
            sum(each.bytes for each in well if each.what == "merge"),
            sum(each.what == "merge" for each in well),
            sum(each.snapshots for each in well),
            sum(each.files for each in freed),
            sum(each.bytes for each in freed),
        )
        remember(project, graph.name, run)


def tidied(project: Project, graph: Graph, grace: timedelta, budget: Budget | None = None) -> Iterator[Done]:
    """All of maintenance but merges: what needs no engine."""
    yield from _Maintenance(project, graph, grace, budget or Budget()).tidy()


def undone(project: Project, graph: Graph) -> list[Planned]:
    """Undo the newest merge of every log of a pipeline where that can be; what was undone."""
    from firnline.tables.undoing import undo

    found = []
    for name in sorted(project.catalog.names(graph.name) - {TABLE}):
        done = undo(project.catalog, project.log(graph.name, name))
        if done is not None:
            found.append(Planned(graph.name, name, "undo", layers=done.layers, files=done.files, bytes=done.bytes))
    return found


@dataclass
class _Maintenance:
    """One pipeline while it is maintained."""

    project: Project
    graph: Graph
    grace: timedelta
    budget: Budget = field(default_factory=Budget)
    failed: set[tuple[What, str]] = field(default_factory=set)
    """What could not be done, and is not tried again."""
    safe: int | None = None
    """The safe point, once it is known."""

    @property
    def pipeline(self) -> str:
        return self.graph.name

    @cached_property
    def trash(self) -> Trash:
        return Trash(self.project.catalog)

    def tables(self, space: str | None = None) -> Iterator[Metadata]:
        """The pipeline's tables as they are now, or those of a branch."""
        asked = space or self.pipeline
        for name in sorted(self.project.catalog.names(asked)):
            table = self.project.catalog.table(asked, name)
            if table is not None:
                yield table

    def readable(self) -> Iterator[Metadata]:
        """Those of the pipeline that can be read."""
        for name in sorted(self.project.catalog.names(self.pipeline)):
            try:
                table = self.project.catalog.table(self.pipeline, name)
            except FirnlineError as error:
                _logger.warning("%s.%s is not looked at: %s", self.pipeline, name, error)
                continue
            if table is not None:
                yield table

    def samples(self) -> tuple[Sample, ...]:
        """How the logs are now."""
        return tuple(sampled(table) for table in self.readable() if table.name != TABLE and table.head is not None)

    def merge(self, session: Callable[[], SparkSession]) -> Iterator[Done]:
        """Merge layers, the best first, as far as the budget goes."""
        try:
            self.safe = safe_point(self.project, self.graph).at
            if not self._merges(self.safe):
                return
            safe = let_go(self.project, self.graph)
        except FirnlineError as error:
            yield Done(Planned(self.pipeline, "", "merge"), 0.0, error)
            return
        while True:
            allowed = [each for each in self._merges(safe) if self.budget.allows(each.bytes)]
            if not allowed:
                return

            yield from self._try(self._planned(allowed[0]), partial(self._merge, session, allowed[0], safe))

    def tidy(self) -> Iterator[Done]:
        """One step after the other of what needs no engine."""
        for step in self.expiring():
            yield from self._try(step, partial(self._expire, step))
        self._close_gaps()
        yield from self._empty()
        for step in self.pruning():
            yield from self._try(step, partial(self._prune, step))

    def _close_gaps(self) -> None:
        """Close the gaps that are over; if a log or the gap ledger cannot be read, the next maintenance does."""
        try:
            close_made_good(self.project, self.graph)
        except FirnlineError as error:
            _logger.warning("the gaps of %s stay as they are: %s", self.pipeline, error)

    def merging(self) -> Iterator[Planned]:
        """The merges that could be done now, the best first."""
        try:
            merges = self._merges(safe_point(self.project, self.graph).at)
        except FirnlineError:  # whoever merges is told why not
            yield Planned(self.pipeline, "", "merge")
        else:
            yield from map(self._planned, merges)

    def expiring(self) -> Iterator[Planned]:
        """The tables that have snapshots which nothing needs, or do not say what becomes of old metadata files."""
        for name in sorted(self.project.catalog.names(self.pipeline)):
            yield from self.looked_at("expire", name, partial(self._expirable, name))

    def _expirable(self, name: str) -> Planned | None:
        table = self.project.catalog.table(self.pipeline, name)
        if table is None:
            return None
        is_control = name == TABLE
        found = outdated(table) if is_control else expirable(table, world().now(), self.grace, self._voided(name))
        return Planned(self.pipeline, name, "expire", snapshots=len(found)) if found or unset(table) else None

    def looked_at(self, what: What, name: str, look: Callable[[], Planned | None]) -> Iterator[Planned]:
        """A step, if there is something to do; or if that cannot be told: whoever takes it is told why, and goes on."""
        try:
            found = look()
        except FirnlineError:
            found = Planned(self.pipeline, name, what)
        if found is not None:
            yield found

    def _voided(self, log: str) -> frozenset[int]:
        """The generations of a log whose last epochs sinks and readers have to be told of as void."""
        now = world().now()
        return voided((each for each in self.project.control(self.pipeline).holds() if not each.is_expired(now)), log)

    def due(self) -> Iterator[tuple[Metadata, Record]]:
        """What is in the trash for long enough."""
        for table in self.readable():
            for record in self.trash.records(table):
                is_due = self.trash.is_due(record, self.grace) and not self.trash.is_waiting(table, record)
                if is_due and self._is_free(table, record):
                    yield table, record

    def _is_free(self, table: Metadata, record: Record) -> bool:
        """Whether no branch needs a record; if that cannot be told, whoever removes it is told why not."""
        try:
            return not self._others() or self._pieces(table, record) is not None
        except FirnlineError:
            return True

    def deleted(self, table: Metadata, record: Record) -> Planned:
        """What would be removed of a record."""
        pieces = self._pieces(table, record) or []
        return Planned(self.pipeline, table.name, "delete", files=len(pieces), bytes=sum(piece.bytes for piece in pieces))

    def pruning(self) -> Iterator[Planned]:
        """What is known about epochs that are not kept by themselves any more."""
        notes = notes_to_forget(self.project, self.pipeline, self._sinces())
        if notes:
            yield Planned(self.pipeline, "", "prune", files=len(notes))
        for name in sorted(self._sinces()):
            yield from self.looked_at("prune", name, partial(self._prunable, name))

    def _prunable(self, name: str) -> Planned | None:
        entries = entries_to_forget(self.project, self.pipeline, name)
        return Planned(self.pipeline, name, "prune", entries=len(entries)) if entries else None

    def _merge(self, session: Callable[[], SparkSession], chosen: Merge, safe: int) -> Planned:
        from firnline.runtime.merge import merge

        done = merge(self.project, self.graph, session(), chosen, safe)
        if done is None:
            self.failed.add(("merge", chosen.collection))  # somebody else is at it
            return replace(self._planned(chosen), layers=0, bytes=0)
        self.budget.spent += done.bytes
        return replace(self._planned(chosen), bytes=done.bytes)

    def _expire(self, step: Planned) -> Planned:
        if step.collection == TABLE:
            dropped = self.project.control(self.pipeline).expire()
        else:
            dropped = self.project.log(self.pipeline, step.collection).expire(self.grace, self._voided(step.collection))
        return Planned(self.pipeline, step.collection, "expire", snapshots=dropped)

    def _empty(self) -> Iterator[Done]:
        """Remove what is due, some files at a time."""
        for table, record in list(self.due()):
            is_more = True
            while is_more:
                done = list(self._try(Planned(self.pipeline, table.name, "delete"), partial(self._remove, table.name, record)))
                is_more = any(each.error is None and each.step.files == _PIECES for each in done)
                yield from done

    def _remove(self, name: str, record: Record) -> Planned:
        """Remove some files of a record, as the tables are now, and forget it if these were the last."""
        table = self.project.catalog.table(self.pipeline, name)
        assert table is not None, "it was looked at"
        pieces = self._pieces(table, record)
        if pieces is None:
            return Planned(self.pipeline, name, "delete")
        gone = list(self.trash.remove(self._without_copies(pieces[:_PIECES])))
        if len(gone) == len(pieces):
            self.trash.close(table, record)
        return Planned(self.pipeline, name, "delete", files=len(gone), bytes=sum(each.bytes for each in gone))

    def _without_copies(self, pieces: list[Piece]) -> list[Piece]:
        """The first pieces, up to one whose copy at a replica cannot go yet: what names it stays as long."""
        if not self.graph.replicas:
            return pieces
        from firnline.runtime.replicate import forget

        forgotten = forget(self.project, self.graph, [piece.path for piece in pieces])
        return list(takewhile(lambda piece: piece.path in forgotten, pieces))

    def _prune(self, step: Planned) -> Planned:
        if step.collection:
            forgotten = forget_entries(self.project, self.pipeline, step.collection)
            return Planned(self.pipeline, step.collection, "prune", entries=forgotten)
        freed = []
        for path in notes_to_forget(self.project, self.pipeline, self._sinces()):
            freed.append(self.project.catalog.remove(path))
            world().reach("prune.removed")
        return Planned(self.pipeline, "", "prune", files=len(freed), bytes=sum(freed))

    def _try(self, step: Planned, act: Callable[[], Planned]) -> Iterator[Done]:
        began = time.monotonic()
        if self.budget.is_spent() or (step.what, step.collection) in self.failed:
            return
        try:
            yield Done(act(), time.monotonic() - began)
        except FirnlineError as error:
            self.failed.add((step.what, step.collection))
            yield Done(step, time.monotonic() - began, error)

    def _pieces(self, table: Metadata, record: Record) -> list[Piece] | None:
        """The files of a record that nobody names; None as long as a branch, or what this one branched from, needs some of it.

        Or as long as a log is there that was about to be forgotten when somebody died.
        """
        own = [*self.tables()]
        others = [each for space in self._others() for each in self.tables(space)]
        pieces = self.trash.contents(table, record, self._named(own))
        if any(each.location in record.folders for each in (*own, *others)):
            return None
        elsewhere = self._named(others)
        return None if any(file_key(piece.path) in elsewhere for piece in pieces) else pieces

    def _named(self, tables: Iterable[Metadata]) -> set[str]:
        """Every file that a snapshot of some tables names."""
        return {path for table in tables for path in self.trash.named(table)}

    def _others(self) -> list[str]:
        """Where else tables are that may name the same files: branches, and what they branched from."""
        pipeline = parted(self.pipeline)[0]
        return sorted({pipeline, *self.project.catalog.branches(pipeline)} - {self.pipeline})

    def _sinces(self) -> dict[str, int]:
        return {sample.collection: sample.since for sample in self.samples()}

    def _merges(self, safe: int) -> list[Merge]:
        from firnline.runtime.merge import merges

        return [each for each in merges(self.project, self.graph, safe) if ("merge", each.collection) not in self.failed]

    def _planned(self, merge: Merge) -> Planned:
        return Planned(self.pipeline, merge.collection, "merge", layers=merge.layers, bytes=merge.bytes, benefit=merge.benefit)
