"""Undoing the newest merge of a log, while everything that it stands for is still among the table's snapshots.

The undo is an exchange: the files of the merge go, those of its layers come back, and the merge's own snapshot is dropped in the
same commit, so that the layers are what they were. The old files cannot go meanwhile: the snapshots that name them are dropped
before any of them is removed, and then this commit fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from firnline.model.stored_file import StoredFile
from firnline.tables.commit import until_known
from firnline.tables.layers import description_of, is_merge, is_repair, layers, line, range_of
from firnline.tables.log import ATTEMPT, START, Log, repair_summary
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.trash import Trash
from firnline.world import world

UNDONE = "firnline.undone"
"""Of an exchange: the attempt whose merge it undid."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A merge that is undone."""

    lower: int
    upper: int
    layers: int
    """How many there are in its place."""
    files: int
    bytes: int


def undoable(table: Metadata) -> Snapshot | None:
    """The newest merge, if nothing but undoing happened to files since, and all that it stands for is still there."""
    for snapshot in line(table):
        if is_merge(snapshot):
            return snapshot if _is_whole(table, snapshot) else None
        if is_repair(snapshot) and UNDONE not in snapshot.summary:
            return None
    return None


def undo(tables: Tables, log: Log) -> Undone | None:
    """Let a log be as it was before its newest merge; None if that cannot be."""
    attempt = world().new_id()
    done: Undone | None = None

    def attempt_once() -> Undone | None:
        nonlocal done
        table = log.load()
        if table is None:
            return None
        if any(snapshot.summary.get(ATTEMPT) == attempt for snapshot in table.main_line()):
            return done
        merge = undoable(table)
        if merge is None or table.head is None:
            return None
        sidecar = Sidecar.of_json(tables.read(merge.summary[SIDECAR]))
        back = tuple(named_before(tables, table, merge, frozenset(sidecar.out)))
        if len(back) < len(sidecar.out):
            return None
        without = _without(table, merge)
        brought = range_of(table, merge)
        inside = [each for each in layers(without) if range_of(without, each) in brought]
        done = Undone(brought.lower, brought.upper, len(inside), len(back), sum(file.bytes for file in back))
        out = tuple(file.path for file in sidecar.files or ())
        path = f"{table.location}/firnline/{attempt}.json"
        note = Repair(table.name, attempt, (), out, back, 0, 0, 0.0)
        tables.write(path, note.as_json())
        Trash(tables).put(table, [merge.id], "undone")
        before = replace(description_of(table, table.head), since=_since(without))
        summary = {**before.as_properties(), **repair_summary(table, note, path), UNDONE: merge.summary[ATTEMPT]}
        tables.exchange(table, summary, Exchange(out=frozenset(out), back=back, undone=(merge.id,)))
        world().reach("undo.committed")
        return done

    return until_known(f"{log.pipeline}.{log.collection}", attempt_once)


def _without(table: Metadata, merge: Snapshot) -> Metadata:
    """The table as if a merge had never been; whatever stood on it stands alone."""
    kept = {
        each.id: replace(each, parent=None) if each.parent == merge.id else each
        for each in table.snapshots.values()
        if each.id != merge.id
    }
    newest = max((each for each in line(table) if each.id != merge.id), key=lambda each: each.sequence, default=None)
    return replace(table, snapshots=kept, current=None if newest is None else newest.id)


def _is_whole(table: Metadata, merge: Snapshot) -> bool:
    """Whether layers of the same range are there if the merge is not."""
    without, reach = _without(table, merge), range_of(table, merge).lower
    brought = range_of(table, merge)
    found = [range_of(without, each) for each in layers(without)] if without.head is not None else []
    for each in sorted((each for each in found if each in brought), key=lambda each: each.lower):
        if each.lower != reach:
            return False
        reach = each.upper
    return reach == brought.upper


def _since(table: Metadata) -> int:
    """The since of a log by the merges that it has."""
    uppers = [range_of(table, each).upper for each in line(table) if is_merge(each)]
    return max(uppers, default=int(table.properties[START]))


def named_before(tables: Tables, table: Metadata, exchange: Snapshot, paths: frozenset[str]) -> Iterator[StoredFile]:
    """Data files as snapshots before an exchange name them, as far as these are kept."""
    waiting, read = set(paths), set[str]()
    older = [each for each in table.main_line() if each.sequence < exchange.sequence]
    for snapshot in older:
        for manifest in tables.manifests(snapshot.manifest_list) if waiting else ():
            if manifest.path not in read:
                read.add(manifest.path)
                found = [file for file in tables.listed(table, manifest) if file.path in waiting]
                waiting -= {file.path for file in found}
                yield from found
