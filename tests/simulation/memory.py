"""Tables and small files in memory: the port of ``firnline.tables``; the scheduler hears of each effect, before and after."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from firnline.model.stored_file import StoredFile
from firnline.tables.metadata import Metadata, Snapshot
from firnline.tables.port import Exchange

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
        self.rows: dict[int, tuple[Weighted, ...]] = {}
        """What each snapshot added."""
        self.made_of: dict[int, tuple[int, ...]] = {}
        """The staged snapshots that each took over: each is one file, named by its number."""
        self.gone: dict[int, frozenset[str]] = {}
        """The files that each repair took out."""

    def table(self, pipeline: str, name: str) -> Metadata | None:
        self._step("read table")
        return self._tables.get((pipeline, name))

    def names(self, pipeline: str) -> set[str]:
        self._step("list tables")
        return {name for space, name in self._tables if space == pipeline}

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
        self.rows[number] = tuple(row for each in staged for row in self.rows[each])
        back = tuple(int(file.path) for file in change.back)
        self.made_of[number], self.gone[number] = (*staged, *back), change.out
        kept = {each: snapshot for each, snapshot in present.snapshots.items() if each not in staged}
        kept[number] = Snapshot(number, present.current, number, dict(summary), sequence=number)
        properties = {**present.properties, **change.properties}
        self._put(replace(present, snapshots=kept, current=number, properties=properties))
        self._step("committed")

    def data_files(self, table: Metadata, snapshot: int) -> tuple[StoredFile, ...]:
        self._step("list files")
        return self._file(snapshot)

    def held(self, table: Metadata) -> tuple[StoredFile, ...]:
        self._step("list files")
        return tuple(file for number in self._named(table, table.current) for file in self._file(number))

    def _file(self, number: int) -> tuple[StoredFile, ...]:
        epochs = [epoch for _, epoch, _ in self.rows[number]]
        return (StoredFile(str(number), 0, len(epochs), 0, min(epochs), max(epochs)),) if epochs else ()

    def _named(self, table: Metadata, snapshot: int | None) -> list[int]:
        """The files that a snapshot of the main line names."""
        found: list[int] = []
        gone: set[str] = set()
        while snapshot is not None:
            found += [file for file in self.made_of[snapshot] if str(file) not in gone]
            gone |= self.gone[snapshot]
            snapshot = table.snapshots[snapshot].parent
        return found

    def drop(self, table: Metadata, staged: Sequence[int]) -> None:
        self._step("drop")
        present = self._unmoved(table)
        assert present.current not in staged, "the main line is not staging"
        self._put(replace(present, snapshots={each: of for each, of in present.snapshots.items() if each not in staged}))
        self._step("dropped")

    def stage(self, table: Metadata, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        self._step("stage")
        self._staged(self._unmoved(table), rows, summary)

    def gather(self, table: Metadata, staged: Sequence[int], summary: Mapping[str, str]) -> None:
        self._step("gather")
        present = self._unmoved(table)
        self._staged(present, [row for each in staged for row in self.rows[each]], summary)

    def stage_by_spark(self, pipeline: str, name: str, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        """What Spark does: write rows as a snapshot beside the main line, whoever else commits meanwhile."""
        self._step("stage")
        self._staged(self._tables[pipeline, name], rows, summary)

    def _staged(self, present: Metadata, rows: Sequence[Weighted], summary: Mapping[str, str]) -> None:
        number = next(self._numbers)
        self.rows[number] = tuple(rows)
        snapshot = Snapshot(number, present.current, number, dict(summary), sequence=number)
        self._put(replace(present, snapshots={**present.snapshots, number: snapshot}))
        self._step("staged")

    def state(self, table: Metadata, snapshot: int | None, upper: int) -> dict[Row, int]:
        """The rows of all epochs before a point, as a snapshot of the main line sees them."""
        self._step("scan")
        state: dict[Row, int] = {}
        for file in self._named(table, snapshot):
            for row, epoch, weight in self.rows[file]:
                if epoch < upper:
                    state[row] = state.get(row, 0) + weight
        return {row: weight for row, weight in state.items() if weight}

    def write(self, path: str, content: bytes) -> None:
        self._step("write")
        self.files[path] = content
        self._step("written")

    def write_once(self, path: str, content: bytes) -> bytes:
        self._step("write once")
        stands = self.files.setdefault(path, content)
        self._step("written")
        return stands

    def remove(self, path: str) -> None:
        self._step("remove")
        self.files.pop(path, None)

    def read(self, path: str) -> bytes:
        self._step("read")
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def read_all(self, folder: str) -> dict[str, bytes]:
        self._step("list")
        return {path: content for path, content in self.files.items() if path.startswith(f"{folder}/")}

    def _unmoved(self, table: Metadata) -> Metadata:
        present = self._tables.get((table.pipeline, table.name))
        if present is None or present.version != table.version:
            raise ConflictError(f"{table.name} moved")
        return present

    def _put(self, table: Metadata) -> None:
        self._tables[table.pipeline, table.name] = replace(table, version=str(next(self._numbers)))
