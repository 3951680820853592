"""Words that Spark takes for the time of day where a text becomes a time: ``date'today'`` is another date tomorrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql.connect.proto import Expression

from firnline.incremental.expressions import function, walk

_WORD = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.IGNORECASE)
_TIME = re.compile(r"\s*(date|timestamp(_ltz|_ntz)?)\s*", re.IGNORECASE)
_TO_TIME = frozenset(["date", "timestamp", "to_date", "try_to_date", "to_timestamp", "try_to_timestamp"]) | {
    "to_timestamp_ltz",
    "to_timestamp_ntz",
}
"""What casts a text to a time where no format is given."""
_ALIKE = frozenset(
    ["==", "=", "!=", "<>", "<", ">", "<=", ">=", "<=>", "in", "coalesce", "nvl", "ifnull", "nullif", "if", "when"]
)
_MORE_ALIKE = frozenset(["between", "greatest", "least", "datediff", "date_diff", "months_between"])
"""What takes a text beside a time for a time."""

Kinds = Callable[[Sequence[Expression]], list[str]]
"""The types of expressions, in DDL."""


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


def word_beside_time(expression: Expression, kinds: Kinds) -> str | None:
    """The word, if the expression compares it with a time, or has it in the place of one."""
    for each in walk(expression):
        if function(each) not in _ALIKE | _MORE_ALIKE:
            continue
        arguments = each.unresolved_function.arguments
        word = next((str(one.literal.string) for one in arguments if _WORD.fullmatch(one.literal.string)), None)
        others = [one for one in arguments if one.WhichOneof("expr_type") != "literal"]
        has_variables = any(of.HasField("unresolved_named_lambda_variable") for one in others for of in walk(one))
        if word is not None and others and not has_variables and any(map(_TIME.fullmatch, kinds(others))):
            return word
    return None
