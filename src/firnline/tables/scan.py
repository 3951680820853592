"""Rows of a log without a JVM: PyIceberg scans files by their statistics, Arrow merges equal rows.

Columns and rows that nobody asked for are left out before equal rows are merged. That gives the same: equal rows are left out
together, and the weights of rows that were different add up to how often they are now there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.table import DataScan, Table

from firnline.model.description import GENERATION, UPPER
from firnline.model.names import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT, DELETE, DIFF, EPOCH, INSERT, PART
from firnline.model.predicate import TRUE, Predicate, terms
from firnline.plan.seeing import Void
from firnline.tables.log import PARTITION_BY, PARTS
from firnline.tables.metadata import SIDECAR
from firnline.tables.where import holding, placed, split, term, told, users


@dataclass(frozen=True, slots=True)
class Taken:
    """The epochs [lower, upper) of a log as one of its snapshots has them."""

    snapshot: int
    lower: int
    upper: int


def taken(table: Table, void: Void) -> Taken | None:
    """Where void epochs of a log can still be read, by columns that are the present ones; None if nowhere."""
    generations = (each for each in table.snapshots() if each.summary and SIDECAR in each.summary.additional_properties)
    several = [each for each in generations if each.summary and each.summary[GENERATION] == str(void.generation)]
    newest = max(several, key=lambda each: each.sequence_number or 0, default=None)
    if newest is None or newest.summary is None or newest.schema_id not in (None, table.schema().schema_id):
        return None
    if int(str(newest.summary[UPPER])) < void.upper:
        return None  # the last ones of the generation are gone
    return Taken(newest.snapshot_id, void.lower, void.upper)


def state(
    table: Table, upto: int, columns: Sequence[str] | None = None, where: Predicate = TRUE, part: int | None = None
) -> pa.Table:
    """The rows of the state before the point ``upto``, in no particular order; of one part only, if one is given."""
    rows = _scanned(table, _within(term(EPOCH, "<", upto), part), columns, where)
    weighted = settled(rows).drop_columns([EPOCH])
    has_removals = rows.num_rows > 0 and pc.min(rows[DIFF]).as_py() < 0
    net = merged(weighted, []) if has_removals else weighted
    return repeated(net.filter(pc.greater(net[DIFF], 0)))


def changes(
    table: Table,
    lower: int,
    upper: int,
    columns: Sequence[str] | None = None,
    where: Predicate = TRUE,
    part: int | None = None,
    *,
    net: bool = False,
    void: Sequence[Taken] = (),
) -> pa.Table:
    """The weighted rows of the epochs in [lower, upper), with ``_diff``; with ``_epoch``, unless all epochs are taken as one.

    What is void is taken off, as part of the first epoch.
    """
    rows = settled(_scanned(table, _within(between(lower, upper), part), columns, where))
    for each in void:
        gone = settled(_scanned(table, between(each.lower, each.upper), columns, where, each.snapshot))
        first = pa.repeat(pa.scalar(lower, pa.int64()), gone.num_rows)
        gone = gone.set_column(gone.column_names.index(EPOCH), EPOCH, first)
        gone = gone.set_column(gone.column_names.index(DIFF), DIFF, pc.negate(gone[DIFF]))
        rows = pa.concat_tables([rows, gone.cast(rows.schema)])
    return merged(rows, [] if net else [EPOCH])


def net(table: Table, snapshot: int, lower: int, upper: int) -> pa.Table:
    """What the epochs in [lower, upper) come to as a snapshot has them: weighted rows with ``_diff``, no two of them equal."""
    return merged(settled(_scanned(table, between(lower, upper), None, TRUE, snapshot)), [])


def as_feed(weighted: pa.Table, numbered: Mapping[int, tuple[int, int]]) -> pa.Table:
    """Changes as Iceberg tells them, each as often as it happened: the first epoch first, and deleted rows before inserted ones.

    Args:
        weighted: Rows with ``_diff`` and, unless all epochs are taken as one, which has the only number, ``_epoch``.
        numbered: The ordinal and the snapshot of each epoch.
    """
    if EPOCH not in weighted.column_names:
        only = pa.repeat(pa.scalar(next(iter(numbered), 0), pa.int64()), weighted.num_rows)
        weighted = weighted.append_column(EPOCH, only)
    ordered = weighted.sort_by([(EPOCH, "ascending"), (DIFF, "ascending")])
    epochs, weights = ordered[EPOCH].to_pylist(), ordered[DIFF]
    told = {
        CHANGE_TYPE: pc.if_else(pc.greater(weights, 0), INSERT, DELETE),
        CHANGE_ORDINAL: pa.array([numbered[epoch][0] for epoch in epochs], pa.int32()),
        COMMIT_SNAPSHOT: pa.array([numbered[epoch][1] for epoch in epochs], pa.int64()),
        DIFF: pc.abs(weights),
    }
    found = ordered.drop_columns([EPOCH, DIFF])
    for name, cells in told.items():
        found = found.append_column(name, cells)
    return repeated(found)


def files(table: Table, lower: int, upper: int, where: Predicate = TRUE) -> list[str]:
    """The data files that rows of the epochs in [lower, upper) are read from, by their statistics."""
    return [task.file.file_path for task in _scan(table, between(lower, upper), None, where).plan_files()]


def portions(table: Table, lower: int, upper: int, columns: Sequence[str], where: Predicate, most: int) -> tuple[int | None, ...]:
    """The parts to read one after the other, where there are more than ``most`` rows in the epochs of [lower, upper).

    Equal rows are in the same part, as long as they have all columns that say in which. Otherwise all are read at once: None.
    """
    rows = sum(task.file.record_count for task in _scan(table, between(lower, upper), None, where).plan_files())
    if rows <= most or not {*json.loads(table.properties[PARTITION_BY])} <= {*columns}:
        return (None,)
    return tuple(range(int(table.properties[PARTS])))


def between(lower: int, upper: int) -> BooleanExpression:
    """The epochs in [lower, upper)."""
    return And(term(EPOCH, ">=", lower), term(EPOCH, "<", upper))


def _within(epochs: BooleanExpression, part: int | None) -> BooleanExpression:
    return epochs if part is None else And(epochs, term(PART, "=", part))


def repeated(weighted: pa.Table) -> pa.Table:
    """Each row as often as its weight says, without it."""
    rows, weights = weighted.drop_columns([DIFF]), weighted[DIFF]
    if pc.all(pc.equal(weights, 1)).as_py() is not False:
        return rows
    return rows.take(pa.array([at for at, weight in enumerate(weights.to_pylist()) for _ in range(weight)], pa.int64()))


def _scan(
    table: Table, epochs: BooleanExpression, columns: Sequence[str] | None, where: Predicate, snapshot: int | None = None
) -> DataScan:
    pushed, left = split(where)
    read = dict.fromkeys((*(columns or users(table.schema())), *(each.path[0] for each in terms(left)), EPOCH, DIFF))
    parts = placed(table, where) if snapshot is None else AlwaysTrue()  # an older one may be cut into others
    condition = And(epochs, And(parts, told(pushed)))
    return table.scan(row_filter=condition, selected_fields=tuple(read), snapshot_id=snapshot)


def _scanned(
    table: Table, epochs: BooleanExpression, columns: Sequence[str] | None, where: Predicate, snapshot: int | None = None
) -> pa.Table:
    """The rows asked for, with ``_epoch`` and ``_diff``."""
    names = columns or users(table.schema())
    return holding(_scan(table, epochs, columns, where, snapshot).to_arrow(), split(where)[1]).select([*names, EPOCH, DIFF])


def settled(rows: pa.Table) -> pa.Table:
    """Rows in which no -0.0 is left, as Spark writes merged rows, and one NaN only."""
    for at, field in enumerate(rows.schema):
        if kinds.is_floating(field.type):
            cells = pc.add(rows[field.name], pa.scalar(0.0, field.type))
            rows = rows.set_column(at, field, pc.if_else(pc.is_nan(cells), pa.scalar(float("nan"), field.type), cells))
        elif kinds.is_nested(field.type) and any(word in str(field.type) for word in ("float", "double")):
            cells = [_settled_value(value) for value in rows[field.name].to_pylist()]
            rows = rows.set_column(at, field, pa.array(cells, field.type))
    return rows


def _settled_value(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case dict():
            return {key: _settled_value(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_settled_value(each) for each in value)
    return value


def merged(rows: pa.Table, further: list[str]) -> pa.Table:
    """Equal rows merged into one with the sum of their weights, zeros dropped."""
    names = [name for name in rows.column_names if name not in (EPOCH, DIFF)] + further
    if any(kinds.is_nested(rows.schema.field(name).type) for name in names):
        return _merged_in_python(rows.select([*names, DIFF]))
    summed = rows.group_by(names).aggregate([(DIFF, "sum")]).rename_columns([*names, DIFF])
    return summed.filter(pc.not_equal(summed[DIFF], 0))


def _merged_in_python(rows: pa.Table) -> pa.Table:
    """The same for lists, maps and structs, which Arrow does not group by."""
    weights: Counter[str] = Counter()
    first: dict[str, dict[str, Any]] = {}
    for row in rows.to_pylist():
        weight = row.pop(DIFF)
        text = repr(_in_order(row))
        weights[text] += weight
        first.setdefault(text, row)
    kept = [{**first[text], DIFF: weight} for text, weight in weights.items() if weight]
    return pa.Table.from_pylist(kept, schema=rows.schema)


def _in_order(value: Any) -> Any:
    """A value whose maps, which are lists of pairs, have their entries in one order."""
    match value:
        case dict():
            return {key: _in_order(each) for key, each in value.items()}
        case [tuple(), *_]:
            return sorted((_in_order(each) for each in value), key=repr)
        case list() | tuple():
            return type(value)(_in_order(each) for each in value)
    return value
