"""Tables and small files in memory: the port of ``firnline.tables``; the scheduler hears of each effect, before and after."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from firnline.model.stored_file import StoredFile
from firnline.tables.metadata import Metadata, Snapshot
from firnline.tables.port import Exchange, Manifest

Row = tuple[Any, ...]
Weighted = tuple[Row, int, int]
"""A row, its epoch, its weight."""


class ConflictError(Exception):
    """The table is not as it was looked at."""


def quietly(_: str) -> None:
    """Nothing happens."""


class MemoryTables:
    """What is committed stays; a version is a number."""

    warehouse = "memory://warehouse"

    def __init__(self, step: Callable[[str], None] = quietly) -> None:
        self._step = step
        self._tables: dict[tuple[str, str], Metadata] = {}
        self._numbers = itertools.count(1)
        self.files: dict[str, bytes] = {}
        self.once: dict[str, bytes] = {}  # what was ever written once, though it may be removed
        self.rows: dict[int, tuple[Weighted, ...]] = {}
        """What each snapshot added."""
        self.stored: set[int] = set()
        """The staged ones: each is one file, named by its number, until that is removed."""
        self.named: dict[str, tuple[int, ...]] = {}
        """The files that each manifest list names; each has a manifest of its own."""

    def table(self, pipeline: str, name: str) -> Metadata | None:
        self._step("read table")
        return self._tables.get((pipeline, name))

    def names(self, pipeline: str) -> set[str]:
        self._step("list tables")
        return {name for space, name in self._tables if space == pipeline}

    def branches(self, pipeline: str) -> set[str]:
        return set()

    def create(self, pipeline: str, name: str, columns: Any, keys: Sequence[str], properties: Mapping[str, str]) -> Metadata:
        self._step("create")
        number = next(self._numbers)
        location = f"{self.warehouse}/{pipeline}/{name}-{number}"
        ids = {column: place for place, column in enumerate(columns.names, start=1)}
        types = {column.name: str(column.type) for column in columns}
        made = Metadata(pipeline, name, str(number), location, dict(properties), ids, types, {}, None)
        found = self._tables.setdefault((pipeline, name), made)
        self._step("created")
        return found

    def forget(self, table: Metadata) -> bool:
        self._step("forget")
        if self._tables.get((table.pipeline, table.name)) != table:
            return False
        del self._tables[table.pipeline, table.name]
        return True

    def commit(self, table: Metadata, summary: Mapping[str, str], staged: Sequence[int] = ()) -> None:
        self.exchange(table, summary, Exchange(staged=tuple(staged)))

    def exchange(self, table: Metadata, summary: Mapping[str, str], change: Exchange) -> None:
        self._step("commit")
        staged = change.staged
        present = self._unmoved(table)
        number = next(self._numbers)
        back = tuple(int(file.path) for file in change.back)
        self.rows[number] = tuple(row for each in (*staged, *back) for row in self.stored_rows(each))
        named = self._named(present)
        if not change.out <= set(map(str, named)):
            raise ConflictError("somebody else has exchanged some of the data files already")
        staying = [each for each in named if str(each) not in change.out]
        self._add(present, number, dict(summary), [*staying, *staged, *back])
        kept = self._without(self._tables[present.pipeline, present.name], (*staged, *change.undone))
        self._put(replace(kept, current=number, properties={**kept.properties, **change.properties}))
        self._step("committed")

    def data_files(self, table: Metadata, snapshot: int) -> tuple[StoredFile, ...]:
        self._step("list files")
        epochs = [epoch for _, epoch, _ in self.rows.get(snapshot, ())]
        return (StoredFile(str(snapshot), 0, len(epochs), len(epochs), min(epochs), max(epochs)),) if epochs else ()

    def held(self, table: Metadata) -> tuple[StoredFile, ...]:
        return tuple(file for number in self._named(table) for file in self.data_files(table, number))

    def drop(self, table: Metadata, snapshots: Sequence[int], properties: Mapping[str, str] = MappingProxyType({})) -> None:
        self._step("drop")
        present = self._unmoved(table)
        assert present.current not in snapshots, "the head stays"
        self._put(replace(self._without(present, snapshots), properties={**present.properties, **properties}))
        self._step("dropped")

    def manifests(self, manifest_list: str) -> tuple[Manifest, ...]:
        self._step("read list")
        if manifest_list not in self.named:
            raise FileNotFoundError(manifest_list)
        return tuple(Manifest(f"manifest {each}", 1) for each in self._files(manifest_list))

    def listed(self, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
        self._step("read manifest")
        return self.data_files(table, int(manifest.path.removeprefix("manifest ")))

    def stage(self, table: Metadata, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        self._step("stage")
        self._staged(self._unmoved(table), rows, summary)

    def gather(self, table: Metadata, staged: Sequence[int], summary: Mapping[str, str]) -> None:
        self._step("gather")
        present = self._unmoved(table)
        self._staged(present, [row for each in staged for row in self.stored_rows(each)], summary)

    def stage_by_spark(self, pipeline: str, name: str, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        """What Spark does: write rows as a snapshot beside the main line, whoever else commits meanwhile."""
        self._step("stage")
        self._staged(self._tables[pipeline, name], rows, summary)

    def _staged(self, present: Metadata, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        number = next(self._numbers)
        self.rows[number] = tuple(rows)
        self.stored.add(number)
        self._add(present, number, dict(summary), [*self._named(present), number])
        self._put(self._tables[present.pipeline, present.name])
        self._step("staged")

    def state(self, table: Metadata, snapshot: int | None, upper: int) -> dict[Row, int]:
        """The rows of all epochs before a point, as a snapshot of the main line sees them."""
        self._step("scan")
        if snapshot is not None and snapshot not in table.snapshots:
            raise FileNotFoundError(f"snapshot {snapshot} of {table.name} was dropped")
        state: dict[Row, int] = {}
        for file in () if snapshot is None else self._files(table.snapshots[snapshot].manifest_list):
            for row, epoch, weight in self.stored_rows(file):
                if epoch < upper:
                    state[row] = state.get(row, 0) + weight
        return {row: weight for row, weight in state.items() if weight}

    def stored_rows(self, file: int) -> tuple[Weighted, ...]:
        """The rows of a data file."""
        if file not in self.rows:
            raise FileNotFoundError(str(file))
        return self.rows[file]

    def write(self, path: str, content: bytes) -> None:
        self._step("write")
        self.files[path] = content
        self._step("written")

    def write_once(self, path: str, content: bytes) -> bytes:
        self._step("write once")
        stands = self.once[path] = self.files.setdefault(path, content)
        self._step("written")
        return stands

    def remove(self, path: str) -> int:
        self._step("remove")
        if path.isdigit():
            self.stored.discard(int(path))
            return len(self.rows.pop(int(path), ()))
        self.named.pop(path, None)
        return len(self.files.pop(path, b""))

    def paths(self, folder: str) -> list[str]:
        self._step("list")
        return sorted(path for path in self.files if path.startswith(f"{folder}/"))

    def read(self, path: str) -> bytes:
        self._step("read")
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def read_all(self, folder: str) -> dict[str, bytes]:
        self._step("list")
        return {path: content for path, content in self.files.items() if path.startswith(f"{folder}/")}

    def _named(self, table: Metadata) -> tuple[int, ...]:
        return () if table.head is None else self._files(table.head.manifest_list)

    def _files(self, manifest_list: str) -> tuple[int, ...]:
        if manifest_list not in self.named:
            raise FileNotFoundError(manifest_list)
        return self.named[manifest_list]

    def _add(self, table: Metadata, number: int, summary: Mapping[str, str], named: Sequence[int]) -> None:
        """A snapshot that stands on the head, beside the main line."""
        path = f"{table.location}/metadata/{number}.avro"
        self.named[path] = tuple(named)
        snapshot = Snapshot(number, table.current, number, summary, path, number)
        self._tables[table.pipeline, table.name] = replace(table, snapshots={**table.snapshots, number: snapshot})

    def _without(self, table: Metadata, snapshots: Sequence[int]) -> Metadata:
        """As PyIceberg drops them: what stood on one has no parent any more."""
        kept = {
            each.id: replace(each, parent=None) if each.parent in snapshots else each
            for each in table.snapshots.values()
            if each.id not in snapshots
        }
        return replace(table, snapshots=kept)

    def _unmoved(self, table: Metadata) -> Metadata:
        present = self._tables.get((table.pipeline, table.name))
        if present is None or present.version != table.version:
            raise ConflictError(f"{table.name} moved")
        return present

    def _put(self, table: Metadata) -> None:
        self._tables[table.pipeline, table.name] = replace(table, version=str(next(self._numbers)))
