"""Subqueries that refer to rows outside, as relations that stand by themselves beside conditions.

For every row o outside: the rows of the subquery at o = the rows of ``node`` for which ``conditions`` are true at o.

Conditions of filters are pulled up. Under an aggregate that works for equalities: the inner side becomes a key of the groups.
What cannot be pulled up is computed for all values that there are outside (``spread``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression

from firnline.errors import FirnlineError
from firnline.incremental.algebra import Aggregate, Filter, Join, Map, Node, Output, changed, free
from firnline.incremental.expressions import function, references
from firnline.incremental.functions import makes_rows
from firnline.incremental.joining import conjuncts
from firnline.incremental.relation import all_of, call, column
from firnline.incremental.scope import Bound, plainly, reference
from firnline.incremental.spreading import spread

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


@dataclass(frozen=True)
class Pulled:
    """A node without anything that refers to rows outside, and the conditions that do.

    With ``is_whole`` an aggregate without keys has its row for every row outside; else it is missing where it is of nothing.
    """

    node: Node
    conditions: Sequence[Expression]
    is_whole: bool

    @property
    def bound(self) -> Bound:
        """Its rows."""
        return plainly(self.node)


def pulled(binder: Binder, source: Bound, node: Node, *, is_lossy: bool = False) -> Pulled:
    """The subquery ``node`` beside conditions on the rows of ``source``; only with ``is_lossy`` it may be not whole."""
    if not free(node):
        return Pulled(node, (), is_whole=True)
    if not _has_lone_row(node, is_top=is_lossy):
        try:
            return _pulled(binder, node)
        except _CannotPullError:
            pass
    if free(node) - set(source.node.ids):
        raise binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery that refers to rows two levels outside of it")
    found, values = spread(binder, source, node)
    return Pulled(found, [call("<=>", reference(of), reference(to)) for of, to in values.items()], is_whole=True)


def is_one_row(node: Node) -> bool:
    """Whether there is exactly one row, at every row outside."""
    return (
        is_one_row(node.input)
        if isinstance(node, Map) and not _generates(node)
        else isinstance(node, Aggregate) and not node.keys
    )


class _CannotPullError(FirnlineError):
    """Conditions that must stay where they are."""


def _generates(node: Map) -> bool:
    return any(makes_rows(each.expression) for each in node.outputs)


def _has_lone_row(node: Node, *, is_top: bool) -> bool:
    """Whether an aggregate without keys is there, whose row would be lost with its groups, other than on top."""
    is_lone = isinstance(node, Aggregate) and not node.keys and bool(free(node))
    if is_lone and not is_top:
        return True
    still = is_top and isinstance(node, Map) and not _generates(node)
    return any(_has_lone_row(below, is_top=still) for below in node.inputs)


def _pulled(binder: Binder, node: Node) -> Pulled:
    if not free(node):
        return Pulled(node, (), is_whole=True)
    match node:
        case Filter():
            below = _pulled(binder, node.input)
            own, outside = _parted(conjuncts(node.condition), below.node.ids)
            kept = changed(node, columns=below.node.columns, input=below.node, condition=all_of(own)) if own else below.node
            return Pulled(kept, [*below.conditions, *outside], below.is_whole)
        case Map():
            below = _pulled(binder, node.input)
            if any(references(each.expression) - set(below.node.ids) for each in node.outputs):
                raise _CannotPullError("UNSUPPORTED_EXPRESSION", "it computes with columns from outside")
            needed = {of for each in below.conditions for of in references(each)} - set(node.ids)
            hidden = tuple(of for of in below.node.columns if of.id in needed)
            outputs = (*node.outputs, *(Output((of,), column(of.id)) for of in hidden))
            made = changed(node, columns=(*node.columns, *hidden), input=below.node, outputs=outputs)
            return Pulled(made, below.conditions, below.is_whole)
        case Join(kind="inner"):
            left, right = _pulled(binder, node.left), _pulled(binder, node.right)
            columns = (*left.node.columns, *right.node.columns)
            own, outside = _parted(conjuncts(node.condition) if node.condition else [], [of.id for of in columns])
            joined_ = changed(node, columns=columns, left=left.node, right=right.node, condition=all_of(own))
            return Pulled(joined_, [*left.conditions, *right.conditions, *outside], is_whole=True)
        case Aggregate():
            return _grouped(binder, node)
    raise _CannotPullError("UNSUPPORTED_EXPRESSION", "it refers to rows outside below another operator than a filter")


def _grouped(binder: Binder, node: Aggregate) -> Pulled:
    """An aggregate per value of what the outside is compared with."""
    below = _pulled(binder, node.input)
    if any(references(each.expression) - set(below.node.ids) for each in node.aggregates):
        raise _CannotPullError("UNSUPPORTED_EXPRESSION", "it aggregates columns from outside")
    keys: list[Expression] = []
    for each in below.conditions:
        sides = list(each.unresolved_function.arguments) if function(each) in ("==", "=") else []
        inside = [side for side in sides if references(side) and references(side) <= set(below.node.ids)]
        outside = [side for side in sides if not references(side) & set(below.node.ids)]
        if len(inside) != 1 or len(outside) != 1:
            raise _CannotPullError("UNSUPPORTED_EXPRESSION", "it aggregates by another comparison than equality")
        keys.append(inside[0])
    source, ids = binder.with_keys(below.bound, keys)
    known = {of.id: of for of in source.node.columns}
    extra = tuple(known[of] for of in dict.fromkeys(ids) if of not in node.keys)
    conditions = []
    for each, key, of in zip(below.conditions, keys, ids, strict=True):
        one, other = each.unresolved_function.arguments
        conditions.append(call("==", reference(of), other if one == key else one))
    grouped = changed(node, columns=(*node.columns, *extra), input=source.node, keys=(*node.keys, *(of.id for of in extra)))
    return Pulled(grouped, conditions, is_whole=bool(node.keys))


def _parted(conditions: Sequence[Expression], ids: Sequence[str]) -> tuple[list[Expression], list[Expression]]:
    own = [each for each in conditions if references(each) <= set(ids)]
    return own, [each for each in conditions if not references(each) <= set(ids)]
