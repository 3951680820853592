"""Layers of a log: which of its snapshots hold the rows of which epochs.

A publish holds the rows of its range [lower, upper). A merge holds those of neighbouring layers, as one: it stands for every
older snapshot whose range lies in its own. What no newer merge stands for are the layers, and their ranges follow one another.
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
MERGE = "merge"
"""The kind of a snapshot that holds the same states as the one before, from its layer's end on, in other files."""


@dataclass(frozen=True, slots=True)
class Range:
    """The epochs that a snapshot brought: [lower, upper)."""

    lower: int
    upper: int

    def __contains__(self, other: Range) -> bool:
        return self.lower <= other.lower and other.upper <= self.upper


def layers(table: Metadata) -> list[Snapshot]:
    """The snapshots of the present generation that no newer merge stands for, the newest range first."""
    found = [snapshot for snapshot, is_subsumed in _judged(table) if not is_subsumed and not is_repair(snapshot)]
    return sorted(found, key=lambda snapshot: range_of(table, snapshot).lower, reverse=True)


def subsumed(table: Metadata) -> set[int]:
    """The snapshots of the present generation that newer merges stand for; a repair, once they stand for all that it saw."""
    return {snapshot.id for snapshot, is_subsumed in _judged(table) if is_subsumed}


def _judged(table: Metadata) -> Iterator[tuple[Snapshot, bool]]:
    """The snapshots of the present generation, newest first, each with whether newer merges stand for it."""
    merges: list[Range] = []
    every = list(of_generation(table))
    start = min((range_of(table, snapshot).lower for snapshot in every if not is_repair(snapshot)), default=0)
    for snapshot in every:
        seen = Range(start, description_of(table, snapshot).upper) if is_repair(snapshot) else range_of(table, snapshot)
        is_subsumed = any(seen in merge for merge in merges)
        yield snapshot, is_subsumed
        if is_merge(snapshot) and not is_subsumed:
            merges.append(seen)


def of_generation(table: Metadata) -> Iterator[Snapshot]:
    """The published snapshots of the head's generation, newest first."""
    present = None
    for snapshot in table.main_line():
        found = description_of(table, snapshot).generation
        if present is not None and found != present:
            return
        present = found
        yield snapshot


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
    """Whether a snapshot only exchanged files: a repair, or a rescale."""
    return snapshot.summary.get(KIND) in (REPAIR, RESCALE)


def is_merge(snapshot: Snapshot) -> bool:
    """Whether a snapshot made one layer of several."""
    return snapshot.summary.get(KIND) == MERGE


def is_for_exchange(staged: Snapshot) -> bool:
    """Whether a staged snapshot waits to be exchanged for layers that the log holds already."""
    return staged.summary.get(KIND) in (MERGE, RESCALE)


def newest_rescale(table: Metadata) -> Snapshot | None:
    """The newest rescale of the present generation: it wrote down anew how every layer before it is cut."""
    return next((snapshot for snapshot in of_generation(table) if snapshot.summary.get(KIND) == RESCALE), None)


def newest_exchange(table: Metadata) -> Snapshot | None:
    """The newest repair, rescale or merge of the main line: older snapshots may name files that are gone."""
    return next((snapshot for snapshot in table.main_line() if is_repair(snapshot) or is_merge(snapshot)), None)
