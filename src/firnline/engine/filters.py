"""A predicate in Spark's words."""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from firnline.model.names import quoted
from firnline.model.predicate import Every, Predicate, Some, Term


def condition(asked: Predicate) -> Column:
    """The condition that rows have to meet."""
    match asked:
        case Every():
            return reduce(and_, map(condition, asked.of), F.lit(True))
        case Some():
            return reduce(or_, map(condition, asked.of), F.lit(False))
    return _term(asked)


def _term(term: Term) -> Column:
    column = F.col(quoted(*term.path))
    match term.op:
        case "is null":
            return column.isNull()
        case "is not null":
            return column.isNotNull()
        case "is nan":
            return F.isnan(column)
        case "is not nan":
            return ~F.isnan(column)
        case "starts with":
            return column.startswith(term.values[0])
        case "not starts with":
            return ~column.startswith(term.values[0])
        case "in":
            return column.isin(*map(_literal, term.values))
        case "not in":
            return ~column.isin(*map(_literal, term.values))
    value = _literal(term.values[0])
    compared = {
        "=": column == value,
        "!=": column != value,
        "<": column < value,
        "<=": column <= value,
        ">": column > value,
        ">=": column >= value,
    }
    return compared[term.op]


def _literal(value: Any) -> Column:
    """A value; PySpark takes a moment without a zone for one of this machine's zone."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return F.lit(value.isoformat()).cast("timestamp_ntz")
    return F.lit(value)
