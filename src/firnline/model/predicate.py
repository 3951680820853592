"""Which rows are asked for: terms about columns, joined by "every" and "some".

There is no "not": it has been moved into the terms. So a term that is neither true nor false, because its column is null, may
count as false. Values are those of the column's own type: ``fitted`` turns a comparison with any other number into one with a
number that the column can hold, and that holds for the same rows.

Floating numbers are ordered as Spark orders them: -0.0 is 0.0, and NaN is equal to itself and greater than all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Literal, cast

Comparison = Literal["=", "!=", "<", "<=", ">", ">="]
Op = Literal[Comparison, "in", "not in", "starts with", "not starts with", "is null", "is not null", "is nan", "is not nan"]

_EXACT = Context(prec=100)
_INTEGERS = {"int": 31, "long": 63}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
FLOATING = ("float", "double")


@dataclass(frozen=True, slots=True)
class Term:
    """What is asked of one column, or of a field inside of one."""

    path: tuple[str, ...]
    op: Op
    values: tuple[Any, ...] = ()
    is_floating: bool = False


@dataclass(frozen=True, slots=True)
class Every:
    """All of these hold."""

    of: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """One of these holds."""

    of: tuple[Predicate, ...] = ()


Predicate = Term | Every | Some
TRUE = Every()
FALSE = Some()


def terms(predicate: Predicate) -> Iterator[Term]:
    """All terms of a predicate."""
    if isinstance(predicate, Term):
        yield predicate
    else:
        for each in predicate.of:
            yield from terms(each)


def conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    """The predicates that all have to hold, as small as they can be told apart."""
    if isinstance(predicate, Every):
        for each in predicate.of:
            yield from conjuncts(each)
    else:
        yield predicate


def both(one: Predicate, other: Predicate) -> Predicate:
    """Both hold."""
    return Every((*conjuncts(one), *conjuncts(other)))


def fitted(path: tuple[str, ...], op: Op, values: tuple[Any, ...], kind: str) -> Predicate:
    """What is asked of a column of a type, in values of that type; a ``ValueError`` says what cannot be asked of it.

    Args:
        path: The column, and the fields inside of it.
        op: What is asked.
        values: As the user wrote them.
        kind: The type, in Iceberg's words.

    >>> fitted(("n",), ">", (1.5,), "int")
    Term(path=('n',), op='>=', values=(2,), is_floating=False)
    >>> fitted(("n",), "=", (2**40,), "int")
    Some(of=())
    """
    if op in ("is null", "is not null"):
        return Term(path, op)
    if op in ("is nan", "is not nan"):
        if kind not in FLOATING:
            raise ValueError(f"only a floating number can be NaN, not {kind}")
        return Term(path, op, is_floating=True)
    if op in ("starts with", "not starts with"):
        return Term(path, op, tuple(_value(value, "string" if kind == "string" else "") for value in values))
    if op in ("in", "not in"):
        held = [each for value in values for each in terms(_compared(path, "=", value, kind))]
        if held:
            return Term(path, op, tuple(each.values[0] for each in held), held[0].is_floating)
        return FALSE if op == "in" else Term(path, "is not null")
    (value,) = values
    return _compared(path, cast("Comparison", op), value, kind)


def _compared(path: tuple[str, ...], op: Comparison, value: Any, kind: str) -> Predicate:
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        most = Decimal(10**precision - 1).scaleb(-scale, _EXACT)
        return _within(path, op, _number(value, kind), -most, most, scale)
    if kind in _INTEGERS:
        limit = 2 ** _INTEGERS[kind]
        return _within(path, op, _number(value, kind), Decimal(-limit), Decimal(limit - 1), None)
    if kind in FLOATING:
        return Term(path, op, (float(_number(value, kind, has_nan=True)),), is_floating=True)
    return Term(path, op, (_value(value, kind),))


def _within(path: tuple[str, ...], op: Comparison, value: Decimal, low: Decimal, high: Decimal, scale: int | None) -> Predicate:
    """A comparison with a number that a column can hold which holds numbers from low to high, of so many decimals."""
    is_inside = low <= value <= high
    down = _rounded(value, scale, ROUND_FLOOR) if is_inside else value
    is_held = is_inside and down == value
    is_present = Term(path, "is not null")
    if op in ("=", "!="):
        if is_held:
            return Term(path, op, (_stored(down, scale),))
        return FALSE if op == "=" else is_present
    is_below = op in ("<", "<=")
    if not is_inside:
        return is_present if is_below == (value > high) else FALSE
    if is_held:
        return Term(path, op, (_stored(down, scale),))
    near = down if is_below else _rounded(value, scale, ROUND_CEILING)
    return Term(path, "<=" if is_below else ">=", (_stored(near, scale),))


def _rounded(value: Decimal, scale: int | None, how: str) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-(scale or 0)), how, _EXACT)


def _stored(value: Decimal, scale: int | None) -> int | Decimal:
    return int(value) if scale is None else value


def _number(value: Any, kind: str, *, has_nan: bool = False) -> Decimal:
    """A number as it is written, exactly: of a floating one, what it stands for."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        raise ValueError(f"{value!r} cannot be compared with a number ({kind})")
    try:
        found = Decimal(value)
    except ArithmeticError:
        raise ValueError(f"{value!r} is no number") from None
    if found.is_nan() and not has_nan:
        raise ValueError(f"{kind} knows no NaN")
    return found


def _value(value: Any, kind: str) -> Any:
    match kind, value:
        case ("string", str()) | ("boolean", bool()) | ("binary", bytes()):
            return value
        case "date", datetime():
            pass
        case "date", date():
            return value
        case ("date", str()):
            return date.fromisoformat(value)
        case (("timestamp" | "timestamptz"), datetime()):
            return _moment(value, kind)
        case (("timestamp" | "timestamptz"), str()):
            return _moment(datetime.fromisoformat(value), kind)
    raise ValueError(f"{value!r} cannot be compared with a column of type {kind or 'other than string'}")


def _moment(value: datetime, kind: str) -> datetime:
    """A moment without a zone is read as UTC, as sessions are."""
    if kind == "timestamptz":
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if value.tzinfo is not None:
        raise ValueError(f"{value.isoformat()} has a time zone, and the column has none")
    return value
