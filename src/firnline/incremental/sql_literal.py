"""Literals of Spark SQL with the types that Spark gives them: 1 is int, 1L bigint, 1.5 decimal(2,1), 1e0 double."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from pyspark.sql.connect.proto import Expression
from sqlglot import exp

from firnline.incremental.relation import boolean
from firnline.incremental.sql_scope import Rule, Scope, shown
from firnline.incremental.sql_syntax import TypedLiteral, opaque

INT, LONG = 2**31, 2**63
MOST_DIGITS = 38

# unit -> (is it of months, the field of the interval's type, how many months or microseconds)
UNITS: dict[str, tuple[bool, int, int]] = {
    "YEAR": (True, 0, 12),
    "MONTH": (True, 1, 1),
    "WEEK": (False, 0, 7 * 86_400_000_000),
    "DAY": (False, 0, 86_400_000_000),
    "HOUR": (False, 1, 3_600_000_000),
    "MINUTE": (False, 2, 60_000_000),
    "SECOND": (False, 3, 1_000_000),
    "MILLISECOND": (False, 3, 1_000),
    "MICROSECOND": (False, 3, 1),
}
_PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s+([a-zA-Z]+)")


def string(text: str) -> Expression:
    """A string literal."""
    expression = Expression()
    expression.literal.string = text
    return expression


def null() -> Expression:
    """The untyped null."""
    expression = Expression()
    expression.literal.null.null.SetInParent()
    return expression


def cast(expression: Expression, type_text: str, *, tries: bool = False) -> Expression:
    """A cast to a type as Spark SQL writes it."""
    result = Expression()
    result.cast.expr.CopyFrom(expression)
    result.cast.type_str = type_text
    if tries:
        result.cast.eval_mode = Expression.Cast.EvalMode.EVAL_MODE_TRY
    return result


def number(text: str, suffix: str | None = None) -> Expression:
    """A number as it is written, its sign included."""
    expression = Expression()
    literal = expression.literal
    if suffix == "D" or (suffix is None and "e" in text.lower()):
        literal.double = float(text)
    elif suffix == "F":
        literal.float = float(text)
    elif suffix == "BD" or (suffix is None and "." in text):
        return _decimal(text)
    elif suffix == "L":
        literal.long = int(text)
    elif suffix == "S":
        literal.short = int(text)
    elif suffix == "Y":
        literal.byte = int(text)
    elif -INT <= int(text) < INT:
        literal.integer = int(text)
    elif -LONG <= int(text) < LONG:
        literal.long = int(text)
    else:
        return _decimal(text)
    return expression


def _decimal(text: str) -> Expression:
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > MOST_DIGITS:
        raise opaque(f"the number {text} has more than {MOST_DIGITS} digits")
    expression = Expression()
    expression.literal.decimal.value = format(value, "f")
    expression.literal.decimal.precision = precision
    expression.literal.decimal.scale = scale
    return expression


def typed(node: TypedLiteral, sign: str = "") -> Expression:
    """``1L`` and its like, or a string after the name of a type."""
    kind, text = str(node.args["kind"]), str(node.this.this)
    if not node.this.is_string:
        return number(sign + text, kind)
    if kind == "DATE" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        expression = Expression()
        try:
            expression.literal.date = (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
        except ValueError:
            raise opaque(f"there is no date '{text}'") from None
        return expression
    # What a time means depends on the session's time zone, which only Spark knows.
    return cast(string(text), kind)


def interval(node: exp.Interval) -> Expression:
    """``interval 1 day`` and its like, of the narrowest type that holds its units."""
    text, unit = node.this, node.args.get("unit")
    if not isinstance(text, exp.Literal):
        raise opaque("an interval whose value is no literal")
    if isinstance(unit, exp.IntervalSpan):
        return cast(string(str(text.this)), f"interval {unit.this.name} to {unit.expression.name}")
    written = f"{text.this} {unit.name}" if unit is not None else re.sub(r"(?i)^\s*interval\s", "", str(text.this))
    parts = [(found[1], found[2].upper().removesuffix("S")) for found in _PART.finditer(written)]
    is_cut = any("." in amount and name != "SECOND" for amount, name in parts)
    if is_cut or _PART.sub("", written).strip() or not parts or any(name not in UNITS for _, name in parts):
        raise opaque(f"the interval '{written}'")
    return _interval([(amount.replace(" ", ""), *UNITS[name]) for amount, name in parts])


def _interval(parts: list[tuple[str, bool, int, int]]) -> Expression:
    of_months, fields = {months for _, months, _, _ in parts}, [field for _, _, field, _ in parts]
    if len(of_months) > 1:
        raise opaque("an interval of both months and days")
    try:
        amount = sum((Decimal(amount) * size for amount, _, _, size in parts), Decimal(0))
        if amount != int(amount):
            raise InvalidOperation
    except InvalidOperation:
        raise opaque("an interval with a fraction of its smallest unit") from None
    expression = Expression()
    literal, kind = expression.literal, expression.literal.data_type
    if of_months == {True}:
        literal.year_month_interval = int(amount)
        kind.year_month_interval.start_field, kind.year_month_interval.end_field = min(fields), max(fields)
    else:
        literal.day_time_interval = int(amount)
        kind.day_time_interval.start_field, kind.day_time_interval.end_field = min(fields), max(fields)
    return expression


def _literal(node: exp.Expression, scope: Scope) -> Expression:
    return string(str(node.this)) if node.args.get("is_string") else number(str(node.this))


def _interval_rule(node: exp.Expression, scope: Scope) -> Expression:
    assert isinstance(node, exp.Interval)
    return interval(node)


def _typed(node: exp.Expression, scope: Scope) -> Expression:
    assert isinstance(node, TypedLiteral)
    return typed(node)


def _adjacent_strings(node: exp.Expression, scope: Scope) -> Expression:
    if not all(isinstance(part, exp.Literal | exp.RawString) for part in node.expressions):
        raise opaque(f"literals side by side: {shown(node)}")
    return string("".join(str(part.this) for part in node.expressions))


def _binary(node: exp.Expression, scope: Scope) -> Expression:
    expression = Expression()
    digits = str(node.this)
    expression.literal.binary = bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    return expression


RULES: MappingProxyType[type[exp.Expression], Rule] = MappingProxyType(
    {
        exp.Boolean: lambda node, scope: boolean(bool(node.this)),
        exp.Concat: _adjacent_strings,
        exp.HexString: _binary,
        exp.Interval: _interval_rule,
        exp.Literal: _literal,
        exp.Null: lambda node, scope: null(),
        exp.RawString: lambda node, scope: string(str(node.this)),
        TypedLiteral: _typed,
    }
)
