"""Logs as the derivation of a change reads them: at the snapshot that ends at a moment, so that no row is filtered out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.connect.proto import Expression, Relation

from firnline.engine.frames import table_name
from firnline.engine.staging import FEW
from firnline.incremental.derivation import Moment, Rows
from firnline.incremental.relation import (
    alias,
    call,
    column,
    exact,
    filtered,
    in_one,
    integer,
    named,
    project,
    small_integer,
    union,
)
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.model.names import DIFF, EPOCH, EPOCH_TIME, PART
from firnline.plan.safepoint import compacted

PARTIAL = "_firnline_partial"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The rows whose keys have one of ``of`` hashes: of what the epoch changes, or of the state after it."""

    keys: tuple[str, ...]
    number: int
    of: int
    is_of_state: bool

    def taken(self, rows: Relation) -> Relation:
        """Its rows."""
        hashed = call("xxhash64", *map(column, self.keys)) if self.keys else integer(0)
        return filtered(rows, call("==", call("pmod", hashed, integer(self.of)), integer(self.number)))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A collection around one epoch.

    Args:
        old: The snapshot that holds the state before, and perhaps more; None if there was nothing.
        new: The snapshot that holds the state after, and perhaps more; None if there is nothing.
        old_ends: Where ``old`` ends; rows beyond the epoch's lower bound are filtered out.
        new_ends: Where ``new`` ends.
        changes: How many rows the epoch changes, insertions and removals.
        is_insert_only: Whether no row was ever removed, up to the epoch's end.
        is_delta_positive: Whether the epoch removes no row.
        is_keyed: Whether a row is there once at most.
        size: How many rows it has after the epoch, about.
        since: The point up to which its epochs are merged.
        floating: The columns that hold floating numbers.
        cut_into: How many parts its rows are cut into, in these snapshots.
        parts: The parts that are read; None for all.
        chunk: What is read of it; None for all.
    """

    old: int | None
    new: int | None
    old_ends: int
    new_ends: int
    changes: int
    is_insert_only: bool
    is_delta_positive: bool
    is_keyed: bool
    size: int = 0
    since: int = 0
    floating: frozenset[str] = frozenset()
    cut_into: int = 1
    parts: tuple[int, ...] | None = None
    chunk: Chunk | None = None


class LogLeaves:
    """The logs of a pipeline around one epoch."""

    def __init__(self, graph: Graph, epoch: Epoch, leaves: Mapping[str, Leaf]) -> None:
        self._graph, self._epoch, self._leaves = graph, epoch, leaves

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        """What the epoch changes; None if nothing."""
        if collection == EPOCH_TIME:
            return Rows(union(self._time(self._epoch.upper, 1), self._time(self._epoch.lower, -1)))
        leaf = self._single(collection, self._epoch.lower)
        if not leaf.changes or leaf.new is None:
            return None
        rows = _of_parts(self._changes(table_name(self._graph.name, collection), leaf), leaf)
        if leaf.chunk is not None and not leaf.chunk.is_of_state:
            rows = leaf.chunk.taken(rows)
        rows = in_one(rows) if leaf.changes <= FEW else rows
        is_positive = leaf.is_delta_positive
        return Rows(_named(rows, names, leaf), is_positive, is_positive and leaf.is_keyed)

    def _changes(self, table: str, leaf: Leaf) -> Relation:
        """The rows between the two states; where snapshots begin and end there, nothing of older epochs is even looked up."""
        if leaf.old is not None and (leaf.old_ends, leaf.new_ends) == (self._epoch.lower, self._epoch.upper):
            return named(table, {"start-snapshot-id": str(leaf.old), "end-snapshot-id": str(leaf.new)})
        rows = filtered(named(table, {"versionAsOf": str(leaf.new)}), call(">=", column(EPOCH), integer(self._epoch.lower)))
        is_beyond = leaf.new_ends > self._epoch.upper
        return filtered(rows, call("<", column(EPOCH), integer(self._epoch.upper))) if is_beyond else rows

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        """The rows before or after the epoch."""
        if collection == EPOCH_TIME:
            point = self._epoch.lower if moment == "old" else self._epoch.upper
            return Rows(self._time(point, 1), is_positive=True, is_unit=True)
        leaf = self._single(collection, self._epoch.lower if moment == "old" else self._epoch.upper)
        snapshot, ends, upto = (
            (leaf.old, leaf.old_ends, self._epoch.lower) if moment == "old" else (leaf.new, leaf.new_ends, self._epoch.upper)
        )
        table = table_name(self._graph.name, collection)
        rows = _of_parts(named(table, {} if snapshot is None else {"versionAsOf": str(snapshot)}), leaf)
        if snapshot is None or ends > upto:
            rows = filtered(rows, call("<", column(EPOCH), integer(upto)))
        if leaf.chunk is not None and leaf.chunk.is_of_state:
            rows = leaf.chunk.taken(rows)
        is_positive = leaf.is_insert_only
        return Rows(_named(rows, names, leaf), is_positive, is_positive and leaf.is_keyed)

    def _single(self, collection: str, point: int) -> Leaf:
        """A collection whose epochs are not merged beyond a point."""
        leaf = self._leaves[collection]
        if point < leaf.since:
            raise compacted(self._graph, collection, leaf.since)
        return leaf

    def _time(self, point: int, weight: int) -> Relation:
        """Logical time, as the one row of a collection."""
        one, time = Relation(), Expression()
        one.range.end, one.range.step, one.range.num_partitions = 1, 1, 1
        if self._graph.schedule.timed:
            time.literal.timestamp = point
        else:
            time.literal.long = point
        return project(one, [alias(time, "time"), alias(integer(weight), DIFF)])


def _named(rows: Relation, names: Sequence[str], leaf: Leaf) -> Relation:
    return project(rows, [*exact(names, leaf.floating), column(DIFF)])


def _of_parts(rows: Relation, leaf: Leaf) -> Relation:
    return rows if leaf.parts is None else filtered(rows, call("in", column(PART), *map(small_integer, leaf.parts)))


@dataclass(frozen=True, slots=True)
class WithPartial:
    """Logs, and under a name of their own rows that some waves have summed up."""

    logs: LogLeaves
    rows: Relation

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        """What the epoch changes; None if nothing."""
        return self._partial(names) if collection == PARTIAL else self.logs.delta(collection, names)

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        """The rows before or after the epoch."""
        return self._partial(names) if collection == PARTIAL else self.logs.state(collection, moment, names)

    def _partial(self, names: Sequence[str]) -> Rows:
        return Rows(project(self.rows, map(column, (*names, DIFF))), is_positive=True, is_unit=True)
