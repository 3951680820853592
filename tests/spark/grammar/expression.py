"""Expressions of random stages: each is a PySpark column, a line of SQL and a Python function of a row.

Kinds say what may be done with a column. ``int``, ``str``, ``dbl``, ``dec`` and ``bool`` are exact: doubles are small multiples
of powers of two, so that plain Spark's sums of them do not depend on the order of rows. ``approx`` doubles are compared roughly,
so nothing may compare them inside of a stage. ``out`` is only looked at in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from firnline.model import sql_value as sql

EXACT = ("int", "str", "dbl", "dec", "bool")
TYPES = {"int": "int", "str": "string", "dbl": "double", "dec": "decimal(30,6)", "bool": "boolean"}


@dataclass(frozen=True)
class Field:
    name: str
    kind: str


@dataclass(frozen=True)
class Ref:
    name: str
    kind: str

    def column(self, prefix: str = "") -> Column:
        return F.col(prefix + self.name)

    def text(self) -> str:
        return self.name

    def value(self, row: Mapping[str, Any]) -> Any:
        return row[self.name]


@dataclass(frozen=True)
class Lit:
    content: Any
    kind: str

    def column(self, prefix: str = "") -> Column:
        return F.lit(self.content).cast(TYPES[self.kind])

    def text(self) -> str:
        if self.content is None:
            return f"CAST(NULL AS {TYPES[self.kind]})"
        if self.kind in ("int", "bool"):
            return str(self.content).lower()
        quoted = f"'{self.content}'"
        return quoted if self.kind == "str" else f"CAST({quoted} AS {TYPES[self.kind]})"

    def value(self, row: Mapping[str, Any]) -> Any:
        return sql.settled(self.content)


@dataclass(frozen=True)
class Call:
    op: str
    arguments: tuple[Expr, ...]
    kind: str

    def column(self, prefix: str = "") -> Column:
        return OPERATIONS[self.op].column(*(each.column(prefix) for each in self.arguments))

    def text(self) -> str:
        return OPERATIONS[self.op].text.format(*(each.text() for each in self.arguments))

    def value(self, row: Mapping[str, Any]) -> Any:
        return sql.settled(OPERATIONS[self.op].value(*(each.value(row) for each in self.arguments)))


Expr = Ref | Lit | Call


@dataclass(frozen=True)
class Operation:
    """What it takes, where ``any`` is one exact kind for all; what it gives, where None is what it takes; in three languages."""

    takes: tuple[str, ...]
    gives: str | None
    column: Callable[..., Column]
    text: str
    value: Callable[..., Any]


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Null of null."""
    return lambda *values: None if None in values else function(*values)


def is_missing(value: Any) -> bool:
    return value is None


def remainder(value: int) -> int:
    return int(math.fmod(value, 3))


def first_present(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


TRUTHS = ("bool", "bool")
PAIR = ("any", "any")
OPERATIONS = {
    "plus": Operation(("int", "int"), "int", lambda a, b: a + b, "({0} + {1})", strict(lambda a, b: a + b)),
    "minus": Operation(("int", "int"), "int", lambda a, b: a - b, "({0} - {1})", strict(lambda a, b: a - b)),
    "twice": Operation(("int",), "int", lambda a: a * 2, "({0} * 2)", strict(lambda a: a * 2)),
    "mod": Operation(("int",), "int", lambda a: a % 3, "({0} % 3)", strict(remainder)),
    "abs": Operation(("int",), "int", F.abs, "abs({0})", strict(abs)),
    "length": Operation(("str",), "int", F.length, "length({0})", strict(len)),
    "first": Operation(("str",), "str", lambda a: F.substring(a, 1, 1), "substring({0}, 1, 1)", strict(lambda a: a[:1])),
    "concat": Operation(("str", "str"), "str", F.concat, "concat({0}, {1})", strict(lambda a, b: a + b)),
    "half": Operation(("dbl",), "dbl", lambda a: a / 2, "({0} / 2)", strict(lambda a: a / 2)),
    "add": Operation(("dbl", "dbl"), "dbl", lambda a, b: a + b, "({0} + {1})", strict(lambda a, b: a + b)),
    "negative": Operation(("dbl",), "dbl", lambda a: -a, "(- {0})", strict(lambda a: -a)),
    "opposite": Operation(("dec",), "dec", lambda a: -a, "(- {0})", strict(lambda a: -a)),
    "double": Operation(("int",), "dbl", lambda a: a.cast("double"), "CAST({0} AS DOUBLE)", strict(float)),
    "decimal": Operation(("int",), "dec", lambda a: a.cast("decimal(30,6)"), "CAST({0} AS DECIMAL(30,6))", strict(Decimal)),
    "nan": Operation(("dbl",), "bool", F.isnan, "isnan({0})", lambda a: a is sql.NAN),
    "coalesce": Operation(PAIR, None, F.coalesce, "coalesce({0}, {1})", first_present),
    "if": Operation(
        ("bool", "any", "any"),
        None,
        lambda c, a, b: F.when(c, a).otherwise(b),
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        lambda c, a, b: a if c is True else b,
    ),
    "==": Operation(PAIR, "bool", lambda a, b: a == b, "({0} = {1})", sql.equal),
    "!=": Operation(PAIR, "bool", lambda a, b: a != b, "({0} <> {1})", lambda a, b: sql.negation(sql.equal(a, b))),
    "<": Operation(PAIR, "bool", lambda a, b: a < b, "({0} < {1})", sql.less),
    ">=": Operation(PAIR, "bool", lambda a, b: a >= b, "({0} >= {1})", lambda a, b: sql.negation(sql.less(a, b))),
    "<=>": Operation(PAIR, "bool", lambda a, b: a.eqNullSafe(b), "({0} <=> {1})", lambda a, b: sql.rank(a) == sql.rank(b)),
    "in": Operation(
        ("any", "any", "any"), "bool", lambda a, b, c: a.isin(b, c), "({0} IN ({1}, {2}))", lambda a, *b: sql.member(a, b)
    ),
    "null": Operation(("any",), "bool", lambda a: a.isNull(), "({0} IS NULL)", is_missing),
    "there": Operation(("any",), "bool", lambda a: a.isNotNull(), "({0} IS NOT NULL)", lambda a: a is not None),
    "and": Operation(TRUTHS, "bool", lambda a, b: a & b, "({0} AND {1})", lambda *a: sql.conjunction(a)),
    "or": Operation(TRUTHS, "bool", lambda a, b: a | b, "({0} OR {1})", lambda *a: sql.disjunction(a)),
    "not": Operation(("bool",), "bool", lambda a: ~a, "(NOT {0})", sql.negation),
}


def conjunction(conditions: list[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions)
