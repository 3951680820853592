"""Where values stand in data files, so that few rows are found without reading all of them.

A data file never changes, so what is once written down about it stays true; it is forgotten when the file is removed. Of a file
there are kept, from the first time that somebody asks:

- for columns by which rows are looked up: the hashes of their values in order, and at which row each stands;
- the plain values of columns that are handed out, as Arrow has them in memory.

Both are mapped into memory, not read: to find k values among n takes k log n steps. Different values may have the same hash, so
that rows are found which nobody asked for; whoever asks joins them with what he asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from firnline.model.names import BOOKKEEPING

Hashes = npt.NDArray[np.uint64]

_KINDS: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_SMALL = 1 << 17
"""Rows of a file that is sooner read than looked up."""
_AT_ONCE = 1 << 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a log: Iceberg's id, its name, Arrow's type."""

    id: int
    name: str
    kind: pa.DataType


def kind_of(described: str) -> pa.DataType | None:
    """Arrow's type for one of Iceberg's; None for those whose values are not kept here."""
    decimal = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", described)
    return pa.decimal128(*map(int, decimal.groups())) if decimal else _KINDS.get(described)


class Concordance:
    """What is kept about data files, in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(self, path: str, columns: Sequence[Field]) -> pa.Table:
        """All rows of a data file."""
        return _table(columns, _read(path, columns))

    def found(self, path: str, size: int, keys: Sequence[Field], wanted: Hashes, columns: Sequence[Field]) -> pa.Table:
        """The rows of a data file whose keys have one of some hashes, which are in order.

        Args:
            path: The data file.
            size: How many rows it has.
            keys: The columns of the keys.
            wanted: The hashes.
            columns: The columns that are handed out.
        """
        if size < _SMALL:
            values = _read(path, [*keys, *columns])
            found = hashed(values[: len(keys)])
            first, last = (np.searchsorted(wanted, found, side) for side in ("left", "right"))
            return _table(columns, values[len(keys) :]).filter(pa.array(first < last))
        hashes, rows = self._places(path, keys)
        first, last = (np.searchsorted(hashes, wanted, side) for side in ("left", "right"))
        counts = last - first
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        at = pa.array(np.sort(rows[np.repeat(first, counts) + steps]))
        return _table(columns, [self._values(path, each).take(at) for each in columns])

    def forget(self, path: str) -> None:
        """Forget a data file."""
        shutil.rmtree(self._of(path), ignore_errors=True)

    def _of(self, path: str) -> Path:
        name = hashlib.sha256(_local(path).encode()).hexdigest()
        return self._folder / name[:2] / name[2:42]

    def _places(self, path: str, keys: Sequence[Field]) -> tuple[Hashes, npt.NDArray[np.uint32]]:
        """The hashes of a file's keys in order, and the row of each."""
        name = "_".join(f"{key.id}" for key in keys)
        hashes, rows = (self._of(path) / f"{name}.{what}.npy" for what in ("hashes", "rows"))
        if not hashes.exists():  # the last of the two to be written
            found = hashed(_read(path, keys))
            order = np.argsort(found, kind="stable")
            self._keep(path, rows, lambda file: np.save(file, order.astype(np.uint32)))
            self._keep(path, hashes, lambda file: np.save(file, found[order]))
        return np.load(hashes, mmap_mode="r"), np.load(rows, mmap_mode="r")

    def _values(self, path: str, of: Field) -> pa.Array:
        """The values of a file's column."""
        kept = self._of(path) / f"{of.id}.arrow"
        if not kept.exists():
            (values,) = _read(path, [of])

            def write(file: BinaryIO) -> None:
                with pa.ipc.new_file(file, pa.schema([("values", values.type)])) as writer:
                    writer.write(pa.record_batch([values], ["values"]))

            self._keep(path, kept, write)
        with pa.memory_map(str(kept)) as file:
            return pa.ipc.open_file(file).get_batch(0).column(0)

    def _keep(self, path: str, kept: Path, write: Callable[[BinaryIO], None]) -> None:
        """Write something about a data file, whole or not at all; nothing stays if the file was removed meanwhile."""
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{uuid4().hex}")
        try:
            with draft.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(kept)
        finally:
            draft.unlink(missing_ok=True)
        if not Path(_local(path)).exists():
            self.forget(path)
            raise FileNotFoundError(path)


def hashed(columns: Sequence[pa.Array]) -> Hashes:
    """A number for every row, the same for equal values of all columns; of one column of integers in their own order."""
    found: Hashes | None = None
    for each in columns:
        one = _hash(each)
        found = one if found is None else found * _MULTIPLIER + one
    assert found is not None, "there are keys"
    return found


def is_hashed(kind: pa.DataType) -> bool:
    """Whether rows can be found by values of a type: those that are equal only if they are the same."""
    return not (kinds.is_floating(kind) or kinds.is_nested(kind))


def _hash(values: pa.Array) -> Hashes:
    kind, count = values.type, len(values)
    if kinds.is_decimal(kind):
        pairs = np.frombuffer(values.buffers()[1], np.uint64)[2 * values.offset : 2 * (values.offset + count)]
        found = pairs[::2] + pairs[1::2] * _MULTIPLIER
    elif kinds.is_large_string(kind) or kinds.is_large_binary(kind):
        found = _hash_of_bytes(values)
    else:
        if kinds.is_date32(kind):
            values = values.cast(pa.int32())
        found = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return np.where(values.is_null().to_numpy(zero_copy_only=False), _NULL, found) if values.null_count else found


def _hash_of_bytes(values: pa.Array) -> Hashes:
    """The sum of all bytes, each times a number that stands for its place."""
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    whole = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    factors = _mixed(np.arange(int(np.diff(ends).max(initial=0)), dtype=np.uint64))
    found = np.empty(len(values), np.uint64)
    for begin in range(0, len(values), _AT_ONCE):
        bounds = ends[begin : begin + _AT_ONCE + 1]
        lengths = np.diff(bounds)
        places = np.arange(bounds[0], bounds[-1]) - np.repeat(bounds[:-1], lengths)
        terms = factors[places] * (whole[bounds[0] : bounds[-1]].astype(np.uint64) + np.uint64(1))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])
        at = bounds - bounds[0]
        found[begin : begin + len(lengths)] = sums[at[1:]] - sums[at[:-1]]
    return _mixed(found)


def _mixed(numbers: Hashes) -> Hashes:
    """The finish of splitmix64: neighbours become far apart."""
    found = (numbers + np.uint64(1)) * _MULTIPLIER
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


def _read(path: str, columns: Sequence[Field]) -> list[pa.Array]:
    """The values of columns as a data file has them; texts of any length fit. Of a column that is newer it has none.

    Raises:
        ValueError: What every file of a log has is not in this one: it was adopted, and metadata say it of all its rows.
    """
    with pq.ParquetFile(_local(path), memory_map=True) as file:
        ids = {int((field.metadata or {}).get(b"PARQUET:field_id", -1)): field.name for field in file.schema_arrow}
        if any(each.name in BOOKKEEPING and each.id not in ids for each in columns):
            raise ValueError(f"{path} was adopted")
        read = file.read(columns=[ids[each.id] for each in columns if each.id in ids])
        nothing = pa.nulls(file.metadata.num_rows)
    held = (read[ids[each.id]] if each.id in ids else pa.chunked_array([nothing]) for each in columns)
    return [large(cells.cast(each.kind)).combine_chunks() for cells, each in zip(held, columns, strict=True)]


def large(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Texts so that any number of them fit into one array, as hashes are made of."""
    kinds_of_texts = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return values.cast(kinds_of_texts.get(values.type, values.type))


def _table(columns: Sequence[Field], values: Sequence[pa.Array]) -> pa.Table:
    return pa.table({each.name: of.cast(each.kind) for each, of in zip(columns, values, strict=True)})


def _local(path: str) -> str:
    return str(fsspec.url_to_fs(path)[1])
