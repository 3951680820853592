"""A history: what happens to the inputs of a stage, epoch by epoch, and where a run of it is interrupted.

Rows are Python dicts or an Arrow table. An input has one schema for all epochs: the one it is given, that of its Arrow tables, or
what its values say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as kinds

from firnline.errors import FirnlineError
from firnline.failpoints import POINTS
from firnline.model.names import DIFF


@dataclass(frozen=True, slots=True)
class Crash:
    """An item of a history: who computes the next epoch dies at a point, and the epoch is tried again by somebody else.

    Args:
        point: One of those that docs/guides/faults.md lists, such as ``"publish.committed"``.
        collection: Whose epoch it interrupts; that of the stage under test by default.
    """

    point: str
    collection: str | None = None


Rows: TypeAlias = Sequence[Mapping[str, Any]] | pa.Table
Item: TypeAlias = Mapping[str, Rows] | Crash
Schemas: TypeAlias = Mapping[str, str | pa.Schema]


@dataclass(frozen=True, slots=True)
class Step:
    """One epoch: the crashes on the way, and what the inputs are given."""

    crashes: tuple[Crash, ...]
    rows: Mapping[str, Rows]


def steps_of(history: Sequence[Item]) -> list[Step]:
    """The epochs of a history."""
    found, crashes = list[Step](), list[Crash]()
    for item in history:
        if isinstance(item, Crash):
            if item.point not in POINTS:
                raise _wrong(f"{item.point!r} is no point where a run may be interrupted")
            crashes.append(item)
        elif isinstance(item, Mapping):
            found.append(Step(tuple(crashes), item))
            crashes.clear()
        else:
            raise _wrong(f"an item is {type(item).__name__}, neither a mapping from inputs to rows nor a Crash")
    if crashes or not found:
        raise _wrong("no epoch follows the last Crash" if crashes else "it has no epoch")
    return found


def tables_of(name: str, epochs: Sequence[Rows], schema: pa.Schema | None) -> list[pa.Table]:
    """The rows of an input, epoch by epoch, in one schema."""
    given = [rows.schema for rows in epochs if isinstance(rows, pa.Table)]
    schema = schema or (given[0] if given else None)
    lists = [rows.to_pylist() if isinstance(rows, pa.Table) else rows for rows in epochs]
    for row in (row for rows in lists for row in rows):
        if not isinstance(row, Mapping):
            raise _wrong(f"a row of {name!r} is {type(row).__name__}, not a mapping from columns to values")
    names = list(dict.fromkeys(column for rows in lists for row in rows for column in row))
    if schema is None:
        schema = _inferred(name, names, [row for rows in lists for row in rows])
    if DIFF in names and DIFF not in schema.names:
        schema = schema.append(pa.field(DIFF, pa.int64()))
    unknown = [column for column in names if column not in schema.names]
    if unknown:
        raise _wrong(f"{name!r} has no column {', '.join(unknown)}; its columns: {', '.join(schema.names)}")
    return [table_of(name, rows, schema) for rows in lists]


def table_of(name: str, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows in a schema; what is not named is null, and a row that does not say how often counts once."""
    columns = []
    for field in schema:
        absent = 1 if field.name == DIFF else None
        try:
            columns.append(pa.array([coerced(row.get(field.name, absent), field.type) for row in rows], field.type))
        except (pa.ArrowException, ValueError, TypeError, OverflowError, InvalidOperation) as error:
            told = f"{type(error).__name__}: {error}"
            raise _wrong(f"the column {field.name!r} of {name!r} does not hold {field.type}: {told}") from None
    return pa.Table.from_arrays(columns, schema=schema)


def coerced(value: Any, kind: pa.DataType) -> Any:
    """A value as its type has it: dates and times may be ISO text, decimals any number, and times without a zone are UTC.

    >>> coerced(4.2, pa.decimal128(10, 2)), coerced("2026-01-02", pa.timestamp("us", "UTC"))
    (Decimal('4.2'), datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if value is None:
        return None
    if kinds.is_decimal(kind):
        return Decimal(str(value))
    if kinds.is_timestamp(kind):
        return _moment(value, has_zone=kind.tz is not None)
    if kinds.is_date(kind) and isinstance(value, str):
        return date.fromisoformat(value)
    if kinds.is_floating(kind) and not isinstance(value, bool):
        return float(value)
    if kinds.is_binary(kind) and isinstance(value, str):
        return value.encode()
    if kinds.is_struct(kind):
        return {field.name: coerced(value.get(field.name), field.type) for field in kind}
    if kinds.is_list(kind):
        return [coerced(each, kind.value_type) for each in value]
    return value


def _moment(value: Any, *, has_zone: bool) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC) if has_zone else moment
    return moment if has_zone else moment.astimezone(UTC).replace(tzinfo=None)


def _inferred(name: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> pa.Schema:
    if not names:
        raise _wrong(f"{name!r} has no row, so that its columns are unknown: name them in schemas")
    return pa.schema(list(_fields(name, names, rows)))


def _fields(name: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[pa.Field]:
    for column in names:
        values = [_zoned(row.get(column)) for row in rows]
        try:
            kind = pa.int64() if column == DIFF else pa.array(values).type
        except pa.ArrowException as error:
            raise _wrong(f"the values of {column!r} of {name!r} are of several types: {error}") from None
        if kinds.is_null(kind):
            raise _wrong(f"{column!r} of {name!r} is always null, so that its type is unknown: name it in schemas")
        yield pa.field(column, kind)


def _zoned(value: Any) -> Any:
    return _moment(value, has_zone=True) if isinstance(value, datetime) else value


def _wrong(what: str) -> FirnlineError:
    return FirnlineError("BAD_HISTORY", f"the history: {what}")
