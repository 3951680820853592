"""Which columns identify a row, as far as the plan proves it. What is proven need not be checked on the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firnline.incremental.algebra import Accumulate, Aggregate, Filter, Input, Join, Map, Node, SetOperation, Top, Window
from firnline.incremental.functions import makes_rows
from firnline.incremental.rules.map import passed

Keys = Mapping[str, Sequence[str]]
"""The columns that identify a row of a collection, by its name."""


def is_unique(node: Node, columns: Iterable[str], keys: Keys) -> bool:
    """Whether no two rows of a node can agree in all of these columns."""
    asked = set(columns)
    match node:
        case Input():
            known = {of.name: of.id for of in node.columns}
            found = keys.get(node.collection)
            return found is not None and all(known.get(key) in asked for key in found)
        case Map() | Window():
            if any(makes_rows(each.expression) for each in node.outputs):
                return False
            names = passed(node.outputs)
            return is_unique(node.input, [names[of] for of in asked if of in names], keys)
        case Filter() | Top():
            return is_unique(node.input, asked, keys)
        case Aggregate() | Accumulate():
            return set(node.keys) <= asked
        case Join():
            return _is_join_unique(node, asked, keys)
        case SetOperation():
            names = dict(zip(node.ids, node.left.ids, strict=True))
            is_all_columns = not node.is_all and asked >= set(node.ids)
            return is_all_columns or is_unique(node.left, [names[of] for of in asked if of in names], keys)
    return False


def _is_join_unique(node: Join, asked: set[str], keys: Keys) -> bool:
    """A row of a join is a pair of rows, and the keys of one side are known from the other."""
    left = asked & set(node.left.ids)
    if node.kind in ("semi", "anti"):
        return is_unique(node.left, left, keys)
    right = asked & set(node.right.ids)
    if node.kind == "inner":
        left |= {one for one, other in node.keys if other in right}
    if is_unique(node.left, left, keys) and is_unique(node.right, right | {other for _, other in node.keys}, keys):
        return True
    if node.kind != "inner":
        return False
    right |= {other for one, other in node.keys if one in left}
    return is_unique(node.right, right, keys) and is_unique(node.left, left | {one for one, _ in node.keys}, keys)
