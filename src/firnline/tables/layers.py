"""Layers of a log: which of its snapshots hold the rows of which epochs.

A publish holds the rows of its range [lower, upper). A merge holds those of neighbouring layers, as one: it stands for every
older snapshot whose range lies in its own. A rewind to E takes out what older snapshots brought beyond E; its undo takes out what
came beyond E since, and lets that rewind not have been. What is left is the line; what no newer merge of it stands for are the
layers, and their ranges follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.tables.metadata import Metadata, Snapshot

KIND = "firnline.kind"
LOWER = "firnline.lower"
LAYER = "firnline.layer"
"""Of a merge: where its layer ends; its description tells where the log did."""
REPAIR = "repair"
"""The kind of a snapshot that holds the same rows as the one before, in other files."""
RESCALE = "rescale"
"""The kind of a snapshot that holds the same rows as the one before, cut into another number of parts."""
SCHEMA = "schema"
"""The kind of a snapshot that holds the same rows as the one before, under other columns: nulls in those that came."""
MERGE = "merge"
"""The kind of a snapshot that holds the same states as the one before, from its layer's end on, in other files."""
REWIND = "rewind"
"""The kind of a snapshot that holds the states up to a point only, in a new generation."""
REWOUND_TO = "firnline.rewound-to"
"""Of a rewind, and of its undo: the point."""
UNDOES = "firnline.undoes"
"""Of an undo: the sequence number of the rewind; what came from there on beyond the point is not the log's any more."""


@dataclass(frozen=True, slots=True)
class Range:
    """The epochs that a snapshot brought: [lower, upper)."""

    lower: int
    upper: int

    def __contains__(self, other: Range) -> bool:
        return self.lower <= other.lower and other.upper <= self.upper


def layers(table: Metadata) -> list[Snapshot]:
    """The snapshots of the line that no newer merge stands for, the newest range first."""
    found = [snapshot for snapshot, is_subsumed in _judged(table) if not is_subsumed and not is_repair(snapshot)]
    return sorted(found, key=lambda snapshot: range_of(table, snapshot).lower, reverse=True)


def subsumed(table: Metadata) -> set[int]:
    """The snapshots of the line that newer merges stand for; a repair, once they stand for all that it saw."""
    return {snapshot.id for snapshot, is_subsumed in _judged(table) if is_subsumed}


def _judged(table: Metadata) -> Iterator[tuple[Snapshot, bool]]:
    """The snapshots of the line, newest first, each with whether newer merges stand for it."""
    merges: list[Range] = []
    every = list(line(table))
    start = min((range_of(table, snapshot).lower for snapshot in every if not is_repair(snapshot)), default=0)
    for snapshot in every:
        seen = Range(start, description_of(table, snapshot).upper) if is_repair(snapshot) else range_of(table, snapshot)
        is_subsumed = any(seen in merge for merge in merges)
        yield snapshot, is_subsumed
        if is_merge(snapshot) and not is_subsumed:
            merges.append(seen)


def line(table: Metadata) -> Iterator[Snapshot]:
    """The snapshots of the main line that are true, newest first: all but what rewinds and undos took out."""
    return (snapshot for snapshot, by in _walked(table) if not by)


def taken_out(table: Metadata) -> dict[int, tuple[Snapshot, ...]]:
    """The snapshots that rewinds and undos took out, each with all that keep it out, the newest first."""
    return {snapshot.id: by for snapshot, by in _walked(table) if by}


def _walked(table: Metadata) -> Iterator[tuple[Snapshot, tuple[Snapshot, ...]]]:
    """The main line, newest first, each with what took it out."""
    rewinds: list[Snapshot] = []
    for snapshot in table.main_line():
        by = tuple(each for each in rewinds if _takes_out(table, each, snapshot))
        yield snapshot, by
        if is_rewind(snapshot) and not by:
            rewinds.append(snapshot)


def _takes_out(table: Metadata, rewind: Snapshot, older: Snapshot) -> bool:
    """Whether a rewind, or an undo, lets an older snapshot not be true any more."""
    if UNDOES in rewind.summary and older.sequence < int(rewind.summary[UNDOES]):
        return False
    if is_repair(older):
        return is_rewind(older) and UNDOES in rewind.summary and UNDOES not in older.summary
    return range_of(table, older).upper > int(rewind.summary[REWOUND_TO])


def range_of(table: Metadata, snapshot: Snapshot) -> Range:
    """The epochs that a publish or a merge brought."""
    upper = int(snapshot.summary[LAYER]) if is_merge(snapshot) else description_of(table, snapshot).upper
    return Range(int(snapshot.summary[LOWER]), upper)


def description_of(table: Metadata, snapshot: Snapshot) -> Description:
    """The log's description as of a snapshot."""
    try:
        return Description.of_properties(snapshot.summary)
    except KeyError:
        what = f"snapshot {snapshot.id} ({snapshot.summary.get('operation')}) of {table.pipeline}.{table.name} is not Firnline's"
        raise FirnlineError("FOREIGN_SNAPSHOT", what) from None


def is_repair(snapshot: Snapshot) -> bool:
    """Whether a snapshot brought no layer: a repair, a rescale, other columns, a rewind or its undo."""
    return snapshot.summary.get(KIND) in (REPAIR, RESCALE, SCHEMA, REWIND)


def is_rewind(snapshot: Snapshot) -> bool:
    """Whether a snapshot took epochs out, or is the undo of one that did."""
    return snapshot.summary.get(KIND) == REWIND


def is_merge(snapshot: Snapshot) -> bool:
    """Whether a snapshot made one layer of several."""
    return snapshot.summary.get(KIND) == MERGE


def is_for_exchange(staged: Snapshot) -> bool:
    """Whether a staged snapshot waits to be exchanged for layers that the log holds already."""
    return staged.summary.get(KIND) in (MERGE, RESCALE)


def newest_rescale(table: Metadata) -> Snapshot | None:
    """The newest rescale of the line: it wrote down anew how every layer before it is cut."""
    return next((snapshot for snapshot in line(table) if snapshot.summary.get(KIND) == RESCALE), None)


def newest_exchange(table: Metadata) -> Snapshot | None:
    """The newest snapshot that brought no layer, or a merge, of the main line: older ones may name files that are gone."""
    return next((snapshot for snapshot in table.main_line() if is_repair(snapshot) or is_merge(snapshot)), None)
