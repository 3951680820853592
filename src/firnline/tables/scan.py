"""Rows of a log without a JVM: PyIceberg scans files by their statistics, Arrow merges equal rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds
from pyiceberg.table import Table

from firnline.model.names import BOOKKEEPING, DIFF, EPOCH


def state(table: Table, upto: int) -> pa.Table:
    """The rows of the state before the point ``upto``, in no particular order."""
    merged = _merged(_scanned(table, f"{EPOCH} < {upto}"), [])
    return merged.filter(pa.compute.greater(merged[DIFF], 0)).drop_columns([DIFF])


def changes(table: Table, lower: int, upper: int) -> pa.Table:
    """The weighted rows of the epochs in [lower, upper), with ``_epoch`` and ``_diff``."""
    return _merged(_scanned(table, f"{EPOCH} >= {lower} and {EPOCH} < {upper}"), [EPOCH])


def _scanned(table: Table, condition: str) -> pa.Table:
    names = [field.name for field in table.schema().fields if field.name not in BOOKKEEPING]
    return table.scan(row_filter=condition, selected_fields=(*names, EPOCH, DIFF)).to_arrow()


def _merged(rows: pa.Table, further: list[str]) -> pa.Table:
    """Equal rows merged into one with the sum of their weights, zeros dropped."""
    names = [name for name in rows.column_names if name not in (EPOCH, DIFF)] + further
    for at, field in enumerate(rows.schema):
        if kinds.is_floating(field.type):  # -0.0 is 0.0, as it is to Spark, which writes merged rows so
            rows = rows.set_column(at, field, pa.compute.add(rows[field.name], pa.scalar(0.0, field.type)))
    if any(kinds.is_nested(rows.schema.field(name).type) for name in names):
        return _merged_in_python(rows.select([*names, DIFF]), names)
    summed = rows.group_by(names).aggregate([(DIFF, "sum")]).rename_columns([*names, DIFF])
    return summed.filter(pa.compute.not_equal(summed[DIFF], 0))


def _merged_in_python(rows: pa.Table, names: list[str]) -> pa.Table:
    """The same for lists, maps and structs, which Arrow does not group by."""
    weights: Counter[str] = Counter()
    first: dict[str, dict[str, Any]] = {}
    for found in rows.to_pylist():
        row = _settled(found)
        weight = row.pop(DIFF)
        weights[repr(row)] += weight
        first.setdefault(repr(row), row)
    kept = [{**first[text], DIFF: weight} for text, weight in weights.items() if weight]
    return pa.Table.from_pylist(kept, schema=rows.schema)


def _settled(value: Any) -> Any:
    """A value in which no -0.0 is left."""
    match value:
        case float():
            return value + 0.0
        case dict():
            return {key: _settled(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_settled(each) for each in value)
    return value
