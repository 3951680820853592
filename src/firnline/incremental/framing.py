"""Window functions that see the order of rows: ties are broken by all columns, and peers stay peers.

In a frame by rows ties are broken in the window's own order. In a frame by range that would part peers, which are in the frame
together: there rows get their places in an order without ties first, and the function goes by these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression

from firnline.incremental import functions
from firnline.incremental.algebra import Output
from firnline.incremental.expressions import function, identity, rewritten, walk
from firnline.incremental.relation import call
from firnline.incremental.scope import Bound, reference
from firnline.incremental.settling import placed_over, skips_nulls

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


def framed(binder: Binder, source: Bound, outputs: Sequence[Output]) -> tuple[Bound, tuple[Output, ...]]:
    """The source, perhaps with places of rows beside, and the outputs with one answer."""
    ties = [each.sort_order for each in binder.ties(source)]
    numbers = {identity(number): number for each in outputs for number in _numbers(each.expression)}
    source, ids = binder.with_keys(source, [*numbers.values()])
    places = dict(zip(numbers, map(reference, ids), strict=True))

    def settled(found: Expression) -> Expression:
        if not _sees_order(found):
            return found
        if not found.window.order_spec:
            name = function(found.window.window_function)
            raise binder.refusal("NONDETERMINISTIC_FUNCTION", f"{name}() over a window without an order")
        if _sees_peers(found):
            return placed_over(found, places[identity(_number(found))])
        found.window.order_spec.extend(ties)
        return found

    return source, tuple(replace(each, expression=rewritten(each.expression, settled)) for each in outputs)


def _numbers(expression: Expression) -> Iterator[Expression]:
    """The places that window functions of an expression go by."""
    for found in walk(expression):
        if _sees_order(found) and found.window.order_spec and _sees_peers(found):
            yield _number(found)


def _number(window: Expression) -> Expression:
    """The place of a row in its part, in the order of a window; ties are broken when it is bound in its turn."""
    number = Expression()
    number.CopyFrom(window)
    number.window.window_function.CopyFrom(call("row_number"))
    number.window.ClearField("frame_spec")
    return number


def _sees_order(expression: Expression) -> bool:
    """Whether a window function's answer depends on the order of rows that the given order leaves open."""
    if expression.WhichOneof("expr_type") != "window":
        return False
    name, frame = function(expression.window.window_function) or "", expression.window.frame_spec
    is_cut = frame.frame_type == frame.FRAME_TYPE_ROW and not (frame.lower.unbounded and frame.upper.unbounded)
    return name in functions.TIE_SENSITIVE or (is_cut and name not in functions.BY_PEERS)


def _sees_peers(window: Expression) -> bool:
    """Whether an order without ties would give it other rows to see."""
    inside, frame = window.window.window_function, window.window.frame_spec
    name = function(inside)
    if name in functions.BY_ROWS or frame.frame_type == frame.FRAME_TYPE_ROW:
        return False
    is_default = not window.window.HasField("frame_spec")
    if name in functions.FIRST and not skips_nulls(inside):  # the first row stays the first, unless the frame ends before
        return not (is_default or (frame.lower.unbounded and (frame.upper.current_row or frame.upper.unbounded)))
    return is_default or not (frame.lower.unbounded and frame.upper.unbounded)
