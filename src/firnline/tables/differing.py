"""The rows in which two multisets differ, without a JVM: from the data files that only one of them names.

Files that both name cancel out unread. What is left is added up with opposite signs; of a row that both hold nothing remains.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import Table

from firnline.model.names import DIFF
from firnline.tables.scan import merged, settled

_OLD, _NEW = "_firnline_old", "_firnline_new"


@dataclass(frozen=True, slots=True)
class Differing:
    """Rows by what became of them; ``old`` and ``new`` are the same rows of each key, in one order."""

    added: pa.Table
    removed: pa.Table
    old: pa.Table
    new: pa.Table


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column of the rows whose values changed."""

    column: str
    changed: int
    nulls: tuple[int, int]
    """Of the changed values how many were null, and are."""
    least: tuple[Any, Any]
    greatest: tuple[Any, Any]
    mean: tuple[float | None, float | None]
    """Of the changed values before and after; None where there is no order, or no number."""


def stored_rows(table: Table, paths: Collection[str], columns: Sequence[str]) -> pa.Table:
    """The weighted rows of some of the data files that a table's head names."""
    schema = table.schema().select(*columns, DIFF)
    tasks = [task for task in table.scan().plan_files() if task.file.file_path in paths]
    return ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks).select([*columns, DIFF])


def differing(before: pa.Table, after: pa.Table, keys: Sequence[str]) -> Differing:
    """What leads from one multiset of weighted rows to another, by keys."""
    negated = before.set_column(before.num_columns - 1, DIFF, pc.negate(before[DIFF]))
    rows = merged(settled(pa.concat_tables([negated, after], promote_options="permissive")), [])
    removed = rows.filter(pc.less(rows[DIFF], 0)).drop_columns([DIFF])
    added = rows.filter(pc.greater(rows[DIFF], 0)).drop_columns([DIFF])
    if not set(keys) <= set(rows.column_names):
        return Differing(added, removed, removed.slice(0, 0), added.slice(0, 0))
    pairs = pa.concat_tables([_numbered(removed, keys, _OLD), _numbered(added, keys, _NEW)], promote_options="default")
    found = pairs.group_by(list(keys)).aggregate([(_OLD, "max"), (_NEW, "max")]).sort_by([(key, "ascending") for key in keys])
    old, new = found[f"{_OLD}_max"], found[f"{_NEW}_max"]
    both = pc.and_(pc.is_valid(old), pc.is_valid(new))
    return Differing(
        added.take(new.filter(pc.is_null(old))),
        removed.take(old.filter(pc.is_null(new))),
        removed.take(old.filter(both)),
        added.take(new.filter(both)),
    )


def column_changes(found: Differing, keys: Sequence[str]) -> list[ColumnChange]:
    """What changed in each column, of rows that are there before and after."""
    changes = []
    for name in found.old.column_names:
        old, new = found.old[name], found.new[name]
        is_changed = _differ(old, new)
        count = pc.sum(is_changed).as_py() or 0
        if name not in keys and count:
            changes.append(_change(name, count, old.filter(is_changed), new.filter(is_changed)))
    return changes


def _numbered(rows: pa.Table, keys: Sequence[str], name: str) -> pa.Table:
    return rows.select(list(keys)).append_column(name, pa.array(range(rows.num_rows), pa.int64()))


def _differ(old: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.Array:
    """Where two columns differ; null is like null, and NaN like NaN."""
    if kinds.is_nested(old.type):
        return pa.array([repr(one) != repr(other) for one, other in zip(old.to_pylist(), new.to_pylist(), strict=True)])
    unequal = pc.fill_null(pc.not_equal(old, new), fill_value=False)
    if kinds.is_floating(old.type):
        unequal = pc.and_not(unequal, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), fill_value=False))
    return pc.or_(unequal, pc.xor(pc.is_null(old), pc.is_null(new)))


def _change(name: str, count: int, old: pa.ChunkedArray, new: pa.ChunkedArray) -> ColumnChange:
    sides = (old, new)
    bounds = [_bounds(each) for each in sides]
    means = [_mean(each) for each in sides]
    return ColumnChange(
        name,
        count,
        (old.null_count, new.null_count),
        (bounds[0][0], bounds[1][0]),
        (bounds[0][1], bounds[1][1]),
        (means[0], means[1]),
    )


def _bounds(values: pa.ChunkedArray) -> tuple[Any, Any]:
    if kinds.is_nested(values.type):
        return None, None
    found = pc.min_max(values).as_py()
    return found["min"], found["max"]


def _mean(values: pa.ChunkedArray) -> float | None:
    if not (kinds.is_integer(values.type) or kinds.is_floating(values.type) or kinds.is_decimal(values.type)):
        return None
    mean = pc.mean(values).as_py()
    return None if mean is None else float(mean)
