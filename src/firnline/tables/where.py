"""Filters as PyIceberg writes them, what of them its scans can be told, and the rest on rows that are read.

A scan leaves files out by the least and greatest value of each column. Those of floating numbers lie: they know no NaN, and tell
-0.0 from 0.0. So whatever mentions a floating number, or a field inside of a column, is looked at row by row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions as written
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import rewrite_not
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField, StructType

from firnline.errors import FirnlineError
from firnline.model.digest import part_of
from firnline.model.names import BOOKKEEPING, PART
from firnline.model.predicate import FALSE, TRUE, Every, Op, Predicate, Some, Term, conjuncts, fitted, terms
from firnline.tables.log import PARTITION_BY, PARTS

Filter = str | written.BooleanExpression
_OPS: dict[type, Op] = {
    written.EqualTo: "=",
    written.NotEqualTo: "!=",
    written.LessThan: "<",
    written.LessThanOrEqual: "<=",
    written.GreaterThan: ">",
    written.GreaterThanOrEqual: ">=",
    written.In: "in",
    written.NotIn: "not in",
    written.StartsWith: "starts with",
    written.NotStartsWith: "not starts with",
    written.IsNull: "is null",
    written.NotNull: "is not null",
    written.IsNaN: "is nan",
    written.NotNaN: "is not nan",
}
_WRITTEN: dict[Op, Any] = {op: kind for kind, op in _OPS.items()}
_COMPARED = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MOST_PARTS = 64
"""Part by part, so many are looked up for a list of values; of more, all parts are read."""


def users(schema: Schema) -> list[str]:
    """The user's columns of a log."""
    return [field.name for field in schema.fields if field.name not in BOOKKEEPING]


def chosen(schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns asked for, each once, or a refusal."""
    found = [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
    for name in found:
        if name not in users(schema):
            raise _unknown(name, schema)
    if not found:
        raise FirnlineError("BAD_OPTION", "columns: name at least one")
    return tuple(found)


def predicate(where: Filter, schema: Schema) -> Predicate:
    """A filter that was written for a log, in values of its columns' types."""
    is_text = isinstance(where, str)
    try:
        found = parse(where) if isinstance(where, str) else where
        return _read(rewrite_not(found), schema, is_text)
    except FirnlineError:
        raise
    except Exception as error:  # the parser's errors have no common class, and it is the user's text
        at = getattr(error, "loc", None)  # the parser's own words are its whole grammar
        what = error if at is None else f"it cannot be read from {str(where)[at:] or 'its end'!r} on"
        raise FirnlineError("BAD_FILTER", f"{where!s}: {what}") from error


def _read(expression: Any, schema: Schema, is_text: bool) -> Predicate:
    match expression:
        case written.AlwaysTrue():
            return TRUE
        case written.AlwaysFalse():
            return FALSE
        case written.And():
            return Every((_read(expression.left, schema, is_text), _read(expression.right, schema, is_text)))
        case written.Or():
            return Some((_read(expression.left, schema, is_text), _read(expression.right, schema, is_text)))
    op = _OPS.get(type(expression))
    if op is None or not isinstance(expression.term, written.Reference):
        raise ValueError(f"{type(expression).__name__} is not known here")
    path, field = _field(expression.term.name, schema)
    literals: Iterable[Any] = ()
    if isinstance(expression, written.LiteralPredicate):
        literals = (expression.literal,)
    elif isinstance(expression, written.SetPredicate):
        literals = sorted(expression.literals, key=lambda literal: repr(literal.value))
    values = tuple(_meant(literal, is_text) for literal in literals)
    return fitted(path, op, tuple(values), str(field.field_type))


def _meant(literal: Any, is_text: bool) -> Any:
    """A literal's value; the parser takes the number 1.1 for a binary one, which is a little more."""
    value = literal.value
    kind = type(literal).__name__
    if kind == "TimestampLiteral":
        from pyiceberg.utils.datetime import micros_to_timestamp

        return micros_to_timestamp(value)
    if kind == "DateLiteral":
        from pyiceberg.utils.datetime import days_to_date

        return days_to_date(value)
    if is_text and isinstance(value, Decimal) and Decimal(float(value)) == value:
        return Decimal(repr(float(value)))
    return value


def _field(name: str, schema: Schema) -> tuple[tuple[str, ...], NestedField]:
    """The column of a name, or the field that dots lead to."""
    columns = {field.name: field for field in schema.fields if field.name not in BOOKKEEPING}
    if name in columns:
        return (name,), columns[name]
    path = tuple(name.split("."))
    found = columns.get(path[0])
    for inner in path[1:]:
        inside = found.field_type if found is not None else None
        found = next((each for each in inside.fields if each.name == inner), None) if isinstance(inside, StructType) else None
    if found is None:
        raise _unknown(name, schema)
    return path, found


def _unknown(name: str, schema: Schema) -> FirnlineError:
    return FirnlineError("NO_SUCH_COLUMN", f"there is no column {name!r}; there are: {', '.join(users(schema))}")


def split(asked: Predicate) -> tuple[Predicate, Predicate]:
    """What scans can be told, and what is to be looked at row by row."""
    told: list[Predicate] = []
    left: list[Predicate] = []
    for each in conjuncts(asked):
        (told if all(map(_is_told, terms(each))) else left).append(each)
    return Every(tuple(told)), Every(tuple(left))


def _is_told(term: Term) -> bool:
    is_plain = len(term.path) == 1 and "." not in term.path[0]
    return is_plain and (not term.is_floating or term.op in ("is null", "is not null"))


def told(asked: Predicate) -> written.BooleanExpression:
    """A predicate in PyIceberg's words."""
    match asked:
        case Every():
            return joined(written.And, map(told, asked.of), written.AlwaysTrue())
        case Some():
            return joined(written.Or, map(told, asked.of), written.AlwaysFalse())
    (column,) = asked.path
    if asked.op == "in":
        return term(column, "in", asked.values)
    if asked.op == "not in":  # to PyIceberg, null is not in any list
        return joined(written.And, (term(column, "not in", asked.values), term(column, "is not null")), written.AlwaysTrue())
    return term(column, asked.op, *asked.values)


def term(column: str, op: Op, *values: Any) -> written.BooleanExpression:
    """What is asked of a column, in PyIceberg's words."""
    found: written.BooleanExpression = _WRITTEN[op](column, *values)
    return found


def joined(how: Any, every: Iterable[written.BooleanExpression], none: written.BooleanExpression) -> written.BooleanExpression:
    """Several expressions as one."""
    found: written.BooleanExpression = reduce(how, every, none)
    return found


def placed(table: Table, asked: Predicate) -> written.BooleanExpression:
    """In which parts of a log rows can be that a predicate holds for: all, unless it names values for what places a row."""
    placing = json.loads(table.properties.get(PARTITION_BY, "[]"))
    parts = int(table.properties.get(PARTS, 1))
    named: dict[str, list[Any]] = {}
    for each in conjuncts(asked):
        values = _equal(each)
        if values is not None:
            named.setdefault(*values)
    if parts == 1 or not placing or not named.keys() >= set(placing):
        return written.AlwaysTrue()
    if reduce(lambda count, name: count * len(named[name]), placing, 1) > _MOST_PARTS:
        return written.AlwaysTrue()
    return term(PART, "in", {part_of(values, parts) for values in product(*(named[name] for name in placing))})


def _equal(asked: Predicate) -> tuple[str, list[Any]] | None:
    """The column that has to be one of some values, and these."""
    every = list(terms(asked))
    paths = {term.path for term in every}
    if len(paths) != 1 or isinstance(asked, Every) or any(term.op not in ("=", "in", "is null") for term in every):
        return None
    (path,) = paths
    return (path[0], [value for term in every for value in term.values or (None,)]) if len(path) == 1 else None


def holding(rows: pa.Table, asked: Predicate) -> pa.Table:
    """The rows that a predicate holds for."""
    return rows if asked == TRUE else rows.filter(_mask(rows, asked))


def _mask(rows: pa.Table, asked: Predicate) -> Any:
    match asked:
        case Every():
            return reduce(pc.and_, (_mask(rows, each) for each in asked.of), _constant(rows, True))
        case Some():
            return reduce(pc.or_, (_mask(rows, each) for each in asked.of), _constant(rows, False))
    cells = rows[asked.path[0]]
    if len(asked.path) > 1:
        cells = pc.struct_field(cells, list(asked.path[1:]))
    return pc.fill_null(_held(cells, asked), False)


def _constant(rows: pa.Table, value: bool) -> Any:
    return pa.chunked_array([pa.repeat(value, rows.num_rows)], pa.bool_())


def _held(cells: Any, term: Term) -> Any:
    match term.op:
        case "is null":
            return pc.is_null(cells)
        case "is not null":
            return pc.is_valid(cells)
        case "is nan":
            return pc.is_nan(cells)
        case "is not nan":
            return pc.invert(pc.fill_null(pc.is_nan(cells), False))
        case "starts with":
            return pc.starts_with(cells, term.values[0])
        case "not starts with":
            return pc.invert(pc.starts_with(cells, term.values[0]))
        case "in":
            return _is_in(cells, term)
        case "not in":
            return pc.and_(pc.is_valid(cells), pc.invert(pc.fill_null(_is_in(cells, term), False)))
    (value,) = term.values
    if term.is_floating:
        return _ordered(pc.cast(cells, pa.float64()), term.op, value)
    return _COMPARED[term.op](cells, pa.scalar(value, cells.type))


def _is_in(cells: Any, term: Term) -> Any:
    if not term.is_floating:
        return pc.is_in(cells, value_set=pa.array(term.values, cells.type))
    wide = pc.cast(cells, pa.float64())
    return reduce(pc.or_, (_ordered(wide, "=", value) for value in term.values))


def _ordered(cells: Any, op: Op, value: float) -> Any:
    """A comparison in Spark's order, in which NaN is equal to itself and greater than all others."""
    is_nan = pc.is_nan(cells)
    if value == value:
        compared = _COMPARED[op](cells, value)
        return pc.or_(compared, is_nan) if op in (">", ">=") else compared
    match op:
        case "=" | ">=":
            return is_nan
        case "!=" | "<":
            return pc.invert(is_nan)
        case "<=":
            return pc.is_valid(cells)
    return pc.and_(is_nan, pc.invert(is_nan))
