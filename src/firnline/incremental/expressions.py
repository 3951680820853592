"""Looking into Connect expressions: what they refer to, which functions they call, and the same with parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from google.protobuf.message import Message
from pyspark.sql.connect.proto import Expression


def plain(expression: Expression) -> str | None:
    """The id of a column, if the expression is nothing else than a bound reference to one."""
    if expression.WhichOneof("expr_type") != "unresolved_attribute":
        return None
    text = expression.unresolved_attribute.unparsed_identifier
    return text[1:-1] if text.startswith("`") and text.find("`", 1) == len(text) - 1 else None


def inner(message: Message) -> Iterator[Expression]:
    """The expressions right below a message, in order."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if field.is_repeated else [value]:
            if isinstance(each, Expression):
                yield each
            elif isinstance(each, Message):
                yield from inner(each)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it."""
    yield expression
    for below in inner(expression):
        yield from walk(below)


def rewritten(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A copy with every expression changed, innermost first."""
    copy = Expression()
    copy.CopyFrom(expression)
    return _rewrite(copy, change)


def _rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    for below in list(inner(expression)):
        found = _rewrite(below, change)
        if found is not below:
            below.CopyFrom(found)
    return change(expression)


def references(expression: Expression) -> set[str]:
    """The ids of the columns that a bound expression reads."""
    found = set()
    for each in walk(expression):
        if each.WhichOneof("expr_type") == "unresolved_attribute":
            found.add(each.unresolved_attribute.unparsed_identifier.split("`")[1])
    return found


PYTHON_AGGREGATE = "a Python function of groups"
# PySpark's numbers for functions of pandas and of Arrow values.
_OF_GROUPS = frozenset([202, 252])


def function(expression: Expression) -> str | None:
    """The name of the function that is called, in lower case; one for all Python functions that put a group's rows together."""
    match expression.WhichOneof("expr_type"):
        case "unresolved_function":
            return expression.unresolved_function.function_name.lower()
        case "call_function":
            return expression.call_function.function_name.lower()
        case "common_inline_user_defined_function":
            called = expression.common_inline_user_defined_function
            return PYTHON_AGGREGATE if called.python_udf.eval_type in _OF_GROUPS else None
    return None


def identity(expression: Expression) -> bytes:
    """What an expression says, wherever it was written."""
    return bytes(rewritten(expression, _unplaced).SerializeToString(deterministic=True))


def _unplaced(expression: Expression) -> Expression:
    expression.ClearField("common")
    return expression


def place(message: Message) -> str | None:
    """The user's call site, file:line, of an expression."""
    return str(message.common.origin.python_origin.call_site) or None
