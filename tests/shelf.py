"""A collection whose epochs are published, merged and completed without a JVM, and what it should hold, in plain Python."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from firnline.model.description import Verdict
from firnline.model.digest import Digest, part_of
from firnline.model.fingerprint import Fingerprint
from firnline.plan.frontier import Frontier
from firnline.runtime.project import Project
from firnline.tables.layers import KIND, MERGE, newest_exchange
from firnline.tables.log import ATTEMPT, LOWER, PARTITION_BY, PARTS, Log, head_of
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Sidecar

Row = dict[str, Any]
Delta = list[tuple[Row, int]]
OURS = [pa.field("_epoch", pa.int64()), pa.field("_diff", pa.int64()), pa.field("_part", pa.int32())]


@dataclass
class Shelf:
    """One collection of a pipeline with integer epochs that begin at 0."""

    project: Project
    pipeline: str
    collection: str
    schema: pa.Schema
    keys: tuple[str, ...]
    parts: int = 1
    deltas: list[Delta] = field(default_factory=list)
    """What each epoch brought."""

    def __post_init__(self) -> None:
        placement = {PARTITION_BY: json.dumps(self.keys), PARTS: str(self.parts)}
        self.log = Log(self.project.catalog, self.pipeline, self.collection)
        self.log.create(self.schema, self.keys, 0, placement)

    def publish(self, *changes: Delta) -> None:
        """One more epoch each."""
        for delta in changes:
            epoch = len(self.deltas)
            head = self.log.head()
            generation = head.description.generation if head else 0
            name = f"{self.collection}{epoch}" + (f"of{generation}" if generation else "")
            self._stage(name, epoch, [(row, epoch, diff) for row, diff in delta])
            assert (
                self.log.publish(generation, self._sidecar(name, epoch, epoch + 1, delta), self.log.staged(name)) is Verdict.FREE
            )
            self.deltas.append(delta)

    def complete(self) -> None:
        """Let readers see all of it."""
        self.project.control(self.pipeline).advance(Frontier(len(self.deltas), {self.collection: 0}))

    def merge(self, lower: int, upper: int) -> list[str]:
        """Make one layer of the epochs in [lower, upper), as maintenance does; the files that are named no more."""
        table = self.log.load()
        assert table is not None
        chosen = [entry for entry in self.log.entries() if lower <= entry.lower and entry.description.upper <= upper]
        out = tuple(file.path for entry in chosen for file in self.log.sidecar(entry).files or ())
        summed = [(row, weight) for row, weight in merged(self.deltas[lower:upper]) if weight]
        name, since = f"{self.collection}{lower}to{upper}", newest_exchange(table)
        self._stage(name, lower, [(row, upper - 1, diff) for row, diff in summed], {KIND: MERGE})
        note = self._sidecar(name, lower, upper, summed, merged=tuple(each.attempt for each in chosen), out=out)
        change = Exchange(frozenset(out), (self.log.staged(name),))
        assert self.log.exchange(head_of(table).description.generation, since.id if since else None, note, change) is Verdict.FREE
        return list(out)

    def state(self, epochs: int) -> list[Row]:
        """The rows after so many epochs."""
        return [row for row, weight in merged(self.deltas[:epochs]) for _ in range(weight)]

    def _stage(self, name: str, lower: int, rows: list[tuple[Row, int, int]], more: dict[str, str] | None = None) -> None:
        table = self.log.load()
        assert table is not None
        placed = [
            {**row, "_epoch": epoch, "_diff": diff, "_part": part_of([row[key] for key in self.keys], self.parts)}
            for row, epoch, diff in rows
        ]
        stored = pa.Table.from_pylist(placed, schema=pa.schema([*self.schema, *OURS]))
        self.project.catalog.stage(table, stored, {ATTEMPT: name, LOWER: str(lower), **(more or {})})

    def _sidecar(self, name: str, lower: int, upper: int, rows: Delta, **more: Any) -> Sidecar:
        digest = Digest(sum(abs(diff) for _, diff in rows), sum(diff for _, diff in rows), 1, 1)
        return Sidecar(self.collection, lower, upper, name, Fingerprint("f" * 32), {}, {(upper - 1, 0): digest}, 0.1, **more)

    @property
    def since(self) -> int:
        table = self.log.load()
        assert table is not None
        return head_of(table).description.since


def emptied(root: Path) -> Project:
    """A project without its data; its compiled graphs stay."""
    work = root / ".firnline"
    shutil.rmtree(work / "warehouse", ignore_errors=True)
    for database in work.glob("*.db*"):
        database.unlink()
    return Project.load(root)


def rescaled(shelf: Shelf, parts: int) -> list[str]:
    """Cut all that is there into other parts, as one layer; the files that are named no more."""
    table = shelf.project.catalog.iceberg(shelf.pipeline, shelf.collection)
    with table.transaction() as transaction:
        transaction.set_properties({PARTS: str(parts)})
    shelf.parts = parts
    return shelf.merge(0, len(shelf.deltas))


def merged(deltas: list[Delta]) -> Delta:
    """Equal rows as one, with the sum of their weights."""
    weights: Counter[str] = Counter()
    first: dict[str, Row] = {}
    for row, diff in (change for delta in deltas for change in delta):
        text = repr(comparable(row))
        weights[text] += diff
        first.setdefault(text, row)
    return [(first[text], weight) for text, weight in weights.items()]


def comparable(value: Any) -> Any:
    """A value as one that is equal where Spark's are: one NaN, one zero, maps in one order."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else value + 0.0
        case datetime():
            return value.isoformat()
        case dict():
            return {key: comparable(each) for key, each in value.items()}
        case [tuple(), *_]:
            return sorted((comparable(each) for each in value), key=repr)
        case list() | tuple():
            return [comparable(each) for each in value]
    return value


def multiset(rows: list[Row]) -> list[str]:
    """Rows in no particular order, with how often each is there."""
    return sorted(repr(comparable(row)) for row in rows)
