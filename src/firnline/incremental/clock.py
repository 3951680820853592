"""Words that Spark takes for the time of day where a text becomes a time: ``date'today'`` is another date tomorrow."""

from __future__ import annotations

import re

from pyspark.sql.connect.proto import Expression

from firnline.incremental.expressions import function, rewritten, walk
from firnline.incremental.relation import call, null

_WORD = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.IGNORECASE)
_TIME = re.compile(r"\s*(date|timestamp(_ltz|_ntz)?)\s*", re.IGNORECASE)
_TO_TIME = frozenset(["date", "timestamp", "to_date", "try_to_date", "to_timestamp", "try_to_timestamp"]) | {
    "to_timestamp_ltz",
    "to_timestamp_ntz",
}
"""What casts a text to a time where no format is given."""
_READ = re.compile(r"cast\((\s*(?:now|today|tomorrow|yesterday)(?:\s+\S+)?\s*) as (?:date|timestamp(?:_ntz)?)\)", re.IGNORECASE)


def word_of_clock(expression: Expression) -> str | None:
    """The word, if the expression casts a constant text that is one to a time."""
    if expression.WhichOneof("expr_type") == "cast":
        cast = expression.cast
        to = cast.type_str if cast.HasField("type_str") else cast.type.WhichOneof("kind") or ""
        inside = [cast.expr] if _TIME.fullmatch(to) else []
    else:
        inside = list(expression.unresolved_function.arguments) if function(expression) in _TO_TIME else []
    found = list(walk(inside[0])) if len(inside) == 1 else []
    if any(each.WhichOneof("expr_type") == "unresolved_attribute" for each in found):
        return None
    return next((each.literal.string for each in found if _WORD.fullmatch(each.literal.string)), None)


def has_word(expression: Expression) -> bool:
    """Whether one of the words is somewhere in it, as a text."""
    return any(_WORD.fullmatch(each.literal.string) for each in walk(expression))


def spelt_out(expression: Expression) -> Expression:
    """The same, as far as casts go, without functions of which Spark does not say what they stand for."""
    return rewritten(expression, _spelt)


def _spelt(expression: Expression) -> Expression:
    arguments = list(expression.unresolved_function.arguments)
    match function(expression), arguments:
        case "between", [value, low, high]:
            return call("and", call(">=", value, low), call("<=", value, high))
        case "nvl" | "ifnull", [_, _]:
            return call("coalesce", *arguments)
        case "nvl2", [value, one, other]:
            return call("if", call("isNotNull", value), one, other)
        case "nullif", [value, other]:
            return call("if", call("==", value, other), null(), value)
        case "equal_null", [_, _]:
            return call("<=>", *arguments)
        case "extract" | "date_part" | "datepart", [_, source] if source.literal.string:
            return call("year", source)
    return expression


def word_read(plan: str) -> str | None:
    """The word, if Spark casts it to a time, as its own words for a plan say: ``year('today')`` is the year of a cast."""
    found = _READ.search(plan)
    return found and found[1]
