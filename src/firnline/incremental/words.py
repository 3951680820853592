"""Expressions in words: what a person wrote, with the names of columns instead of ids."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from pyspark.sql.connect.proto import Expression

from firnline.incremental.expressions import function
from firnline.incremental.scope import split

_BETWEEN = frozenset(["==", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "or", "like", "rlike", "="])
_LONGEST = 100


def said(expression: Expression, names: Mapping[str, str]) -> str:
    """The expression as a person would write it, cut short where it is long."""
    text = _said(expression, names)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _said(expression: Expression, names: Mapping[str, str]) -> str:
    match expression.WhichOneof("expr_type"):
        case "unresolved_attribute":
            first, *path = split(expression.unresolved_attribute.unparsed_identifier)
            return ".".join([names.get(first, first), *path])
        case "literal":
            return _literal(expression)
        case "unresolved_function" | "call_function":
            return _call(expression, names)
        case "cast":
            kind = expression.cast.type_str or expression.cast.type.WhichOneof("kind") or "?"
            return f"cast({_said(expression.cast.expr, names)} as {kind})"
        case "alias":
            return _said(expression.alias.expr, names)
        case "sort_order":
            down = expression.sort_order.direction == expression.sort_order.SORT_DIRECTION_DESCENDING
            return _said(expression.sort_order.child, names) + (" desc" if down else "")
        case "window":
            window = expression.window
            by = ", ".join(_said(each, names) for each in window.partition_spec)
            order = ", ".join(_said(each.child, names) for each in window.order_spec)
            parts = " ".join(filter(None, [f"partition by {by}" if by else "", f"order by {order}" if order else ""]))
            return f"{_said(window.window_function, names)} over ({parts})"
        case "common_inline_user_defined_function":
            arguments = expression.common_inline_user_defined_function.arguments
            name = expression.common_inline_user_defined_function.function_name
            return f"{name}({', '.join(_said(each, names) for each in arguments)})"
        case "unresolved_named_lambda_variable":
            return ".".join(expression.unresolved_named_lambda_variable.name_parts)
        case "lambda_function":
            return f"-> {_said(expression.lambda_function.function, names)}"
        case "unresolved_extract_value":
            value = expression.unresolved_extract_value
            return f"{_said(value.child, names)}[{_said(value.extraction, names)}]"
    return "..."


def _call(expression: Expression, names: Mapping[str, str]) -> str:
    message = expression.unresolved_function if expression.HasField("unresolved_function") else expression.call_function
    name = function(expression) or "?"
    arguments = [_said(each, names) for each in message.arguments]
    if name in _BETWEEN and len(arguments) == 2:
        return f"({arguments[0]} {name} {arguments[1]})"
    is_distinct = expression.HasField("unresolved_function") and expression.unresolved_function.is_distinct
    return f"{name}({'distinct ' if is_distinct else ''}{', '.join(arguments)})"


def _literal(expression: Expression) -> str:
    kind = expression.literal.WhichOneof("literal_type")
    if kind in (None, "null"):
        return "null"
    value = getattr(expression.literal, kind)
    match kind:
        case "string":
            return repr(value)
        case "decimal":
            return str(value.value)
        case "boolean" | "byte" | "short" | "integer" | "long" | "float" | "double":
            return str(value).lower()
        case "date":
            return str(date(1970, 1, 1) + timedelta(days=value))
    return f"{kind} {value}".strip()
