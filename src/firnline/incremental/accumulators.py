"""Aggregates that add up: f(A) = finish(sums over A of w * term), so that a change of A changes the sums by its own sums.

Each function of ``parts`` gives the terms of one call, numbers that are never null, and the expression that makes the answer from
their sums. Both ways of computing, from scratch and from a change, go through the same sums: they cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql.connect.proto import Expression

from firnline.incremental.exact import double_parts
from firnline.incremental.expressions import function
from firnline.incremental.relation import call, cast, integer


@dataclass(frozen=True)
class Part:
    """A number per row that is summed up, the type of its sum, in DDL, and what the sum is called."""

    term: Expression
    kind: str
    label: str


@dataclass(frozen=True)
class Parts:
    """What one call adds up, and its answer from the sums."""

    parts: tuple[Part, ...]
    finish: Callable[[Sequence[Expression]], Expression]


ONE = Part(integer(1), "bigint", "rows")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGERS = frozenset(["tinyint", "smallint", "int", "bigint"])
FLOATING = frozenset(["float", "double", "string"])
"""What Spark adds up as doubles: a text, too, is cast to one."""
_LINEAR = frozenset(["sum", "count", "avg", "mean", "count_if", "bool_and", "every", "bool_or", "any", "some"])
_TRYING = frozenset(["try_sum", "try_avg"])
"""The same of doubles, which never overflow."""


def total(term: Expression, kind: str) -> Expression:
    """The sum of a term over rows; zero of none."""
    return cast(call("coalesce", call("sum", term), cast(integer(0), kind)), kind)


def is_linear(expression: Expression) -> bool:
    """Whether a call may add up, going by its name; its argument's type decides."""
    return function(expression) in _LINEAR | _TRYING and not expression.unresolved_function.is_distinct


def parts(expression: Expression, kinds: Sequence[str]) -> Parts | None:
    """The parts of a call whose arguments have these types; None if it does not add up."""
    name = function(expression)
    arguments = list(expression.unresolved_function.arguments)
    if name == "count":
        return Parts((_times(arguments),), lambda sums: sums[0])
    if name == "count_if":
        return Parts((_where(arguments[0]),), lambda sums: sums[0])
    if name in ("bool_and", "every"):
        return _boolean(call("not", arguments[0]), arguments[0], lambda hits: call("==", hits, integer(0)))
    if name in ("bool_or", "any", "some"):
        return _boolean(arguments[0], arguments[0], lambda hits: call(">", hits, integer(0)))
    if name in _TRYING and kinds[0] not in FLOATING:
        return None
    if name in ("sum", "try_sum"):
        return _sum(arguments[0], kinds[0])
    return _average(arguments[0], kinds[0])


def _sum(value: Expression, kind: str) -> Parts | None:
    if kind in _INTEGERS:
        return _total(value, "bigint", lambda total, count: total)
    if found := _DECIMAL.fullmatch(kind):
        precision, scale = map(int, found.groups())
        return _total(value, f"decimal({min(38, precision + 10)},{scale})", lambda total, count: total)
    if kind in FLOATING:
        return _double(value, lambda total, count: total)
    return None


def _average(value: Expression, kind: str) -> Parts | None:
    if kind in _INTEGERS:
        return _total(value, "decimal(38,0)", lambda total, count: call("/", cast(total, "double"), cast(count, "double")))
    if found := _DECIMAL.fullmatch(kind):
        precision, scale = map(int, found.groups())
        digits, places = min(38, precision + 10), min(38, scale + 4)
        shifted = f"decimal({min(38, digits + 4)},{places})"  # so that a quotient has these places, and is rounded to them once
        answer = f"decimal({min(38, precision + 4)},{places})"

        def mean(total: Expression, count: Expression) -> Expression:
            return cast(call("/", cast(total, shifted), cast(count, "decimal(20,0)")), answer)

        return _total(value, f"decimal({digits},{scale})", mean)
    if kind in FLOATING:
        return _double(value, lambda total, count: call("/", total, cast(count, "double")))
    return None


def _total(value: Expression, kind: str, answer: Callable[[Expression, Expression], Expression]) -> Parts:
    term = Part(call("coalesce", cast(value, kind), cast(integer(0), kind)), kind, "sum")
    return Parts((term, _times([value])), lambda sums: _unless_empty(sums[1], answer(sums[0], sums[1])))


def _double(value: Expression, answer: Callable[[Expression, Expression], Expression]) -> Parts:
    terms, total = double_parts(cast(value, "double"))
    digits = tuple(Part(term, "bigint", "digits") for term in terms)
    return Parts((*digits, _times([value])), lambda sums: _unless_empty(sums[-1], answer(total(sums[:-1]), sums[-1])))


def _boolean(hit: Expression, value: Expression, answer: Callable[[Expression], Expression]) -> Parts:
    return Parts((_where(hit), _times([value])), lambda sums: _unless_empty(sums[1], answer(sums[0])))


def _times(values: Sequence[Expression]) -> Part:
    """One for a row in which no value is null."""
    missing = [call("isNull", value) for value in values if value.literal.WhichOneof("literal_type") in (None, "null")]
    if not missing:
        return ONE
    any_missing = missing[0]
    for each in missing[1:]:
        any_missing = call("or", any_missing, each)
    return Part(call("if", any_missing, integer(0), integer(1)), "bigint", "count")


def _where(condition: Expression) -> Part:
    is_so = call("coalesce", condition, call("isNull", integer(1)))
    return Part(call("if", is_so, integer(1), integer(0)), "bigint", "count")


def _unless_empty(count: Expression, answer: Expression) -> Expression:
    return call("when", call(">", count, integer(0)), answer)
