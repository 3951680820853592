"""A log that is published, merged and read without a JVM, on every implementation of its port; a world that ends where asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.tables.layers import KIND, MERGE, REPAIR, newest_exchange
from firnline.tables.log import ATTEMPT, LOWER, Log, head_of
from firnline.tables.metadata import Metadata
from firnline.tables.port import Exchange, Tables
from firnline.tables.rewinding import rewind
from firnline.tables.rewinding import undo as undo_rewind
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.trash import Trash, file_key
from firnline.world import World
from tests.happening import Killed
from tests.simulation.memory import MemoryTables

STORED = pa.schema([("k", pa.string()), ("_epoch", pa.int64()), ("_diff", pa.int64()), ("_part", pa.int32())])
Rows = dict[tuple[str, int], int]
"""Weights by (value, epoch)."""
MADE_BY = Fingerprint("f" * 32, "p" * 32)


class Mortal(World):
    """A world that ends a process at a point, once, or loses an answer; and whose clock can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.kill_at = ""
        self.ahead = timedelta()
        self.reached: list[str] = []

    def reach(self, point: str) -> None:
        self.reached.append(point)
        if point == self.kill_at:
            self.kill_at = ""
            raise Killed

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def sleep(self, seconds: float) -> None:
        pass


@dataclass
class House:
    """One log with what it should hold."""

    tables: Tables
    log: Log = field(init=False)
    expected: Rows = field(default_factory=Counter)
    """All that was published and not taken back."""
    taken: list[tuple[str, int, int, Rows]] = field(default_factory=list)
    """Rewinds that are not undone: their name and point, where the log ended, and what they took back."""
    number: int = 0

    def __post_init__(self) -> None:
        self.log = Log(self.tables, "web", "visits")
        self.log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})

    @property
    def table(self) -> Metadata:
        found = self.log.load()
        assert found is not None
        return found

    def name(self) -> str:
        self.number += 1
        return f"attempt{self.number}"

    def publish(self, empty: int = 0) -> None:
        """One more epoch, as one with some before it that have no rows: two rows come, one of an earlier epoch goes."""
        head = head_of(self.table).description
        epoch, name = head.upper + empty, self.name()
        rows = self.of(epoch)
        self.stage(name, head.upper, rows)
        sidecar = self.sidecar(name, head.upper, epoch + 1, rows)
        verdict = self.log.publish(head.generation, sidecar, self.log.staged(name), is_one=not empty)
        assert verdict is Verdict.FREE
        self.note(epoch, rows)

    def of(self, epoch: int) -> Rows:
        """The rows of an epoch."""
        rows: Rows = {(f"{epoch} stays, {len(self.taken)}", epoch): 1, (f"{epoch} goes", epoch): 1}
        return {**rows, (f"{epoch - 1} goes", epoch): -1} if epoch else rows

    def note(self, epoch: int, rows: Rows) -> None:
        """What is published is expected, however its publisher learned of it."""
        if not any(at == epoch for _, at in self.expected):
            self.expected.update(rows)

    def repair(self, which: int) -> None:
        """Other files for the rows of a layer, counted from the newest."""
        table, chosen = self.table, list(self.log.entries())[which : which + 1]
        for entry in chosen:
            lower, upper = entry.lower, entry.description.upper
            rows = {cell: diff for cell, diff in self.stored().items() if lower <= cell[1] < upper and diff}
            out = tuple(file.path for file in self.tables.held(table) if lower <= file.first < upper)
            if not rows or not out:
                return
            name, since = self.name(), newest_exchange(table)
            self.stage(name, lower, rows, REPAIR)
            note = Repair("visits", name, (), out, (), 0, 0, 0.1)
            change = Exchange(frozenset(out), (self.log.staged(name),))
            self.log.exchange(entry.description.generation, None if since is None else since.id, note, change)

    def rewind(self, to: int, name: str) -> None:
        """Take the log back."""
        before = head_of(self.table).description
        try:
            rewind(self.tables, self.log, name, before.generation + 1, to)
        finally:
            if head_of(self.table).description.generation > before.generation:
                gone = {cell: diff for cell, diff in self.expected.items() if cell[1] >= to}
                self.expected = Counter({cell: diff for cell, diff in self.expected.items() if cell[1] < to})
                self.taken.append((name, to, before.upper, gone))

    def take_back(self, name: str) -> None:
        """Undo the newest rewind."""
        before = head_of(self.table).description
        rewound, to, upper, gone = self.taken[-1]
        try:
            undo_rewind(self.tables, self.log, rewound, name, before.generation + 1)
        finally:
            now = head_of(self.table).description
            if now.generation > before.generation:
                assert now.upper == upper if upper > to else upper <= now.upper <= min(before.upper, to)
                kept = {cell: diff for cell, diff in self.expected.items() if cell[1] < to}
                self.expected = Counter({**kept, **gone})
                self.taken.pop()

    def stage(self, name: str, lower: int, rows: Rows, kind: str = "") -> None:
        """Rows beside the main line, as Spark writes them."""
        summary = {ATTEMPT: name, LOWER: str(lower), **({KIND: kind} if kind else {})}
        tables: Any = self.tables
        if isinstance(tables, MemoryTables):
            tables.stage(self.table, [((value,), epoch, diff) for (value, epoch), diff in rows.items()], summary)
        else:
            stored = [{"k": value, "_epoch": epoch, "_diff": diff, "_part": 0} for (value, epoch), diff in rows.items()]
            tables.stage(self.table, pa.Table.from_pylist(stored, schema=STORED), summary)

    def sidecar(self, name: str, lower: int, upper: int, rows: Rows, **more: Any) -> Sidecar:
        digest = Digest(len(rows), sum(rows.values()), 1, 1)
        return Sidecar("visits", lower, upper, name, MADE_BY, {}, {(upper - 1, 0): digest}, 0.1, **more)

    def merge(self, first: int, last: int) -> Verdict | None:
        """Make one layer of neighbouring ones, counted from the oldest."""
        table = self.table
        chosen = list(self.log.entries())[::-1][first : last + 1]
        if len(chosen) < 2:
            return None
        lower, upper = chosen[0].lower, chosen[-1].description.upper
        rows: Counter[tuple[str, int]] = Counter()
        for (value, epoch), diff in self.stored().items():
            if lower <= epoch < upper:
                rows[value, upper - 1] += diff
        kept = {cell: diff for cell, diff in rows.items() if diff}
        files = [file for entry in chosen for file in self.log.sidecar(entry).files or ()]
        out = tuple(file.path for file in files)
        name, since = self.name(), newest_exchange(table)
        self.stage(name, lower, kept, MERGE)
        note = self.sidecar(name, lower, upper, kept, merged=tuple(each.attempt for each in chosen), out=out)
        generation, change = head_of(table).description.generation, Exchange(frozenset(out), (self.log.staged(name),))
        return self.log.exchange(generation, None if since is None else since.id, note, change)

    def stored(self) -> Counter[tuple[str, int]]:
        """What the head holds, with every file opened."""
        tables: Any = self.tables
        table = self.table
        if isinstance(tables, MemoryTables):
            found = [
                (value, epoch, diff)
                for file in (tables.named[table.head.manifest_list] if table.head else ())
                for (value,), epoch, diff in tables.rows[file]
            ]
        else:
            scanned = tables.iceberg("web", "visits").scan().to_arrow().to_pylist()
            found = [(row["k"], row["_epoch"], row["_diff"]) for row in scanned]
        held: Counter[tuple[str, int]] = Counter()
        for value, epoch, diff in found:
            held[value, epoch] += diff
        return held

    def check(self) -> None:
        """Every point from since on reads as it was published; what any snapshot names is there; layers follow one another."""
        table = self.table
        description, stored = head_of(table).description, self.stored()
        for point in range(description.since, description.upper + 1):
            assert _state(stored, point) == _state(self.expected, point), f"as of {point}, since {description.since}"
        reach = 0
        for entry in reversed(list(self.log.entries())):
            assert entry.lower == reach
            reach = entry.description.upper
            self.log.sidecar(entry)
        assert reach == description.upper
        if isinstance(self.tables, MemoryTables):
            named = {file for each in table.snapshots.values() for file in self.tables.named[each.manifest_list]}
            assert named <= self.tables.rows.keys()
        else:
            for path in Trash(self.tables).named(table):
                assert path == "/" or not path or Path(path).exists(), path

    def empty(self, grace: timedelta = timedelta()) -> int:
        """Remove what is in the trash, as maintenance does; how many files."""
        trash, removed = Trash(self.tables), 0
        for record in trash.records(self.table):
            table = self.table
            if trash.is_due(record, grace) and not trash.is_waiting(table, record):
                removed += len(list(trash.remove(trash.contents(table, record, trash.named(table)))))
                trash.close(table, record)
        return removed

    def data_files(self) -> int:
        """How many data files are in storage, named or not."""
        if isinstance(self.tables, MemoryTables):
            return len(self.tables.stored)
        folder = Path(file_key(self.table.location))
        return len(list(folder.rglob("*.parquet")))


def _state(rows: Rows, point: int) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (value, epoch), diff in rows.items():
        if epoch < point:
            found[value] += diff
    return {value: diff for value, diff in found.items() if diff}


def tolerant(act: Any, *arguments: Any) -> None:
    """Do something that may be interrupted, or lose a race."""
    try:
        act(*arguments)
    except (Killed, FirnlineError):
        return


def several(house: House, epochs: int, merges: Sequence[tuple[int, int]] = ()) -> None:
    """Publish some epochs, then merge."""
    for _ in range(epochs):
        house.publish()
    for first, last in merges:
        assert house.merge(first, last) is Verdict.FREE
