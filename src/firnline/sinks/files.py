"""Changes as files: one folder an epoch, which is there entirely or not at all.

It is written under another name and renamed. Whoever finds the folder of an epoch there finds it delivered, and looks at the note
inside: a folder that somebody else made is never taken for one's own.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.sinks.encoding import as_json
from firnline.world import world

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["parquet", "csv", "json"]
NOTE = "_delivered.json"
"""Says who delivered a folder; readers of data files leave out names that begin so."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one epoch, and who writes it."""

    path: Path
    sink: str
    collection: str

    def write(self, read: Callable[[], pa.RecordBatchReader], format: Format) -> bool:
        """Write it unless it is there; whether it was written now."""
        if self.is_there():
            return False
        draft = self.path.with_name(f".{self.path.name}.{world().new_id()}")
        try:
            draft.mkdir(parents=True)
            rows = _WRITERS[format](draft / f"changes.{format}", read())
            note = {"sink": self.sink, "collection": self.collection, "rows": rows}
            (draft / NOTE).write_text(json.dumps(note), encoding="utf-8")
            _settle(draft)
            world().reach("sink.written")
            os.rename(draft, self.path)
            _sync(self.path.parent)
        except OSError as error:
            shutil.rmtree(draft, ignore_errors=True)
            if not self.is_there():
                raise FirnlineError("SINK_UNAVAILABLE", f"{self.path}: {error}") from error
            return False
        self._sweep()
        return True

    def is_there(self) -> bool:
        """Whether this sink delivered it; refused if it is anything else."""
        try:
            found = json.loads((self.path / NOTE).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            if self.path.exists():
                raise self._taken("nothing says by whom") from None
            return False
        if (found["sink"], found["collection"]) != (self.sink, self.collection):
            raise self._taken(f"by {found['sink']!r}, of {found['collection']!r}")
        return True

    def _taken(self, by: str) -> FirnlineError:
        todo = "Let each sink, and each collection of it, have a folder of its own, which is empty at first."
        return FirnlineError("SINK_REFUSED", f"{self.path} is there, written {by}", todo=todo)

    def _sweep(self) -> None:
        """Remove what attempts that died left of the same epoch."""
        for left in self.path.parent.glob(f".{self.path.name}.*"):
            shutil.rmtree(left, ignore_errors=True)


def _parquet(path: Path, batches: pa.RecordBatchReader) -> int:
    from pyarrow.parquet import ParquetWriter

    rows = 0
    with ParquetWriter(path, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _csv(path: Path, batches: pa.RecordBatchReader) -> int:
    import pyarrow as pa
    from pyarrow.csv import CSVWriter

    flat = pa.schema([field if _is_flat(field.type) else pa.field(field.name, pa.string()) for field in batches.schema])
    rows = 0
    with CSVWriter(path, flat) as writer:
        for batch in batches:
            columns = [
                column if _is_flat(column.type) else pa.array([_text(value) for value in column.to_pylist()], pa.string())
                for column in batch.columns
            ]
            writer.write_batch(pa.record_batch(columns, schema=flat))
            rows += batch.num_rows
    return rows


def _json(path: Path, batches: pa.RecordBatchReader) -> int:
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(as_json(row) + "\n" for row in batch.to_pylist())
            rows += batch.num_rows
    return rows


_WRITERS: dict[Format, Callable[[Path, pa.RecordBatchReader], int]] = {
    "parquet": _parquet,
    "csv": _csv,
    "json": _json,
}


def _is_flat(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    return not (kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind))


def _text(value: object) -> str | None:
    if value is None:
        return None
    return "\\x" + value.hex() if isinstance(value, bytes) else as_json(value)


def _settle(folder: Path) -> None:
    """Let the disk have all of a folder before its name says that it is there."""
    for path in folder.iterdir():
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
