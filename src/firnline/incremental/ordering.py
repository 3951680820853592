"""The order of inner joins that were written as a list of relations and a condition over all of them.

``FROM a, b, c WHERE ...`` binds to products under a filter. Here the relations are joined again, each next one by an equality
with those before it where there is one, so that no product is left that the conditions do not ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression

from firnline.incremental.algebra import Filter, Join, Node
from firnline.incremental.expressions import references
from firnline.incremental.joining import conjuncts, joined, pair
from firnline.incremental.relation import all_of, call
from firnline.incremental.scope import Bound, plainly, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


def ordered(binder: Binder, source: Bound, condition: Expression) -> Bound:
    """The rows for which a bound condition is true; the source's fields stay, and so do its columns, in any order."""
    if not _has_product(source.node):
        return Bound(Filter(source.node.columns, binder.where, source.node, condition), source.fields, source.order)
    relations, conditions = _spread(source.node)
    conditions += conjuncts(condition)
    found, *others = (_with_own(binder, each, conditions) for each in relations)
    waiting = [each for each in conditions if not any(references(each) <= set(node.ids) for node in relations)]
    while others:
        following = next((each for each in others if _is_linked(found, each, waiting)), others[0])
        others.remove(following)
        ids = {*found.node.ids, *following.node.ids}
        now = [each for each in waiting if references(each) <= ids]
        waiting = [each for each in waiting if not references(each) <= ids]
        found = joined(binder, found, following, "inner", now)
    node = found.node
    if waiting:
        rest = all_of(waiting)
        assert rest is not None
        node = Filter(node.columns, binder.where, node, rest)
    return Bound(node, source.fields, source.order)


def _has_product(node: Node) -> bool:
    return isinstance(node, Join) and node.kind == "inner" and (not node.keys or any(map(_has_product, node.inputs)))


def _spread(node: Node) -> tuple[list[Node], list[Expression]]:
    """The relations of a tree of inner joins, and all conditions on them."""
    if not (isinstance(node, Join) and node.kind == "inner"):
        return [node], []
    left, right = _spread(node.left), _spread(node.right)
    keys = [call("==", reference(one), reference(other)) for one, other in node.keys]
    own = conjuncts(node.condition) if node.condition else []
    return [*left[0], *right[0]], [*left[1], *right[1], *keys, *own]


def _with_own(binder: Binder, node: Node, conditions: Sequence[Expression]) -> Bound:
    """A relation under the conditions that are about it alone."""
    own = all_of([each for each in conditions if references(each) <= set(node.ids)])
    if own is not None:
        node = Filter(node.columns, binder.where, node, own)
    return plainly(node)


def _is_linked(found: Bound, other: Bound, conditions: Sequence[Expression]) -> bool:
    return any(pair(each, set(found.node.ids), set(other.node.ids)) for each in conditions)
