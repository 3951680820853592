"""Why an expression has no single answer: it asks the clock, chance or the machine, or sees the order in which rows come."""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression

from firnline.incremental import functions
from firnline.incremental.clock import word_of_clock
from firnline.incremental.expressions import function, inner


def undetermined(expression: Expression, allowed: frozenset[str]) -> str | None:
    """The reason, if the expression itself is one; ``allowed`` are functions that see an order, and have one here."""
    if word := word_of_clock(expression):
        return f"{word!r} as a date or a timestamp is another one at another time"
    name = function(expression)
    if name is None:
        return None
    is_clock = name in functions.CLOCK and not list(inner(expression))
    if name in functions.NONDETERMINISTIC or is_clock:
        return f"{name}() gives another answer at another time or place"
    if name == "aes_encrypt" and not _has_start(expression):
        return "aes_encrypt() begins with chance: give it an initialization vector, or the mode 'ECB'"
    is_least = name == "mode" and _is_true(expression)
    if name in functions.ORDER_DEPENDENT and name not in allowed and not is_least:
        return f"{name}() depends on the order in which rows come"
    return None


def ordered_by(expression: Expression, below: Expression) -> frozenset[str]:
    """The functions to which an expression gives an order; ties in that of a window are broken where rows are mapped."""
    if function(expression) in functions.SORTED:
        return functions.LISTS
    is_windowed = expression.WhichOneof("expr_type") == "window" and below == expression.window.window_function
    return functions.TIE_SENSITIVE if is_windowed else frozenset()


def _has_start(expression: Expression) -> bool:
    """Whether an encryption takes no random number: by its mode, or as it is given an initialization vector."""
    arguments = expression.unresolved_function.arguments
    given = (each.WhichOneof("expr_type") != "literal" or each.literal.string or each.literal.binary for each in arguments[4:5])
    return any(given) or any(each.literal.string.upper() == "ECB" for each in arguments[2:3])


def _is_true(expression: Expression) -> bool:
    """Whether the last argument of a call is a literal true."""
    arguments = expression.unresolved_function.arguments
    return bool(arguments) and arguments[-1].literal.boolean
