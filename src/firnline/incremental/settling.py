"""Aggregates whose answer depends on the order of rows, as expressions whose answer does not.

Variances are computed over the sorted values, in two passes. Of several rows with the same extreme, ``max_by`` and ``min_by``
take the one with the largest, or smallest, value.
"""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression

from firnline.incremental.expressions import function
from firnline.incremental.relation import alias, call, cast, double, small_integer

_OF_ALL = frozenset(["var_pop", "stddev_pop"])
_VARIANCES = _OF_ALL | {"variance", "var_samp"} | {"stddev", "std", "stddev_samp"}
SETTLED = _VARIANCES | {"max_by", "min_by"}


def settled(expression: Expression) -> Expression:
    """The same answer, as far as it was one; the expression itself if its answer never depended on the order."""
    name = function(expression) or ""
    if name in _VARIANCES:
        return _variance(expression, name)
    if name in ("max_by", "min_by"):
        value, by = expression.unresolved_function.arguments
        pair = call("struct", alias(by, "by"), alias(value, "value"))
        there = call("when", call("isNotNull", by), pair)
        found = Expression()
        found.unresolved_extract_value.child.CopyFrom(call("max" if name == "max_by" else "min", there))
        found.unresolved_extract_value.extraction.literal.string = "value"
        return found
    return expression


def _variance(expression: Expression, name: str) -> Expression:
    collect = "collect_set" if expression.unresolved_function.is_distinct else "collect_list"
    values = call("sort_array", call(collect, cast(expression.unresolved_function.arguments[0], "double")))
    count = cast(call("size", values), "double")
    mean = call("/", _summed(values, _variable("value")), count)
    distance = call("-", _variable("value"), mean)
    squares = _summed(values, call("*", distance, distance))
    least, of = (1, count) if name in _OF_ALL else (2, call("-", count, double(1.0)))
    answer = call("/", squares, of)
    if name.startswith("std"):
        answer = call("sqrt", answer)
    return call("when", call(">=", call("size", values), small_integer(least)), answer)


def _summed(values: Expression, term: Expression) -> Expression:
    """The sum of a term over the values, in their order."""
    step = Expression()
    step.lambda_function.function.CopyFrom(call("+", _variable("total"), term))
    for name in ("total", "value"):
        step.lambda_function.arguments.append(_variable(name).unresolved_named_lambda_variable)
    return call("aggregate", values, double(0.0), step)


def _variable(name: str) -> Expression:
    expression = Expression()
    expression.unresolved_named_lambda_variable.name_parts.append(name)
    return expression
