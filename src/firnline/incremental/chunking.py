"""Which plans can be computed in chunks of their inputs, so that the rows of all chunks add up to the whole.

The change of a plan of maps, filters, unions and inner joins is a sum of terms, each with the change of exactly one input in it:
cut all changes into chunks, and the terms are cut likewise. From scratch, the rows hang linearly on some input if every operator
on the way to it does and it is read nowhere else. Sums that are kept are sums of sums: chunks give partial ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from firnline.incremental.algebra import Accumulate, Filter, Input, Join, Map, Node, Output, Union, Verbatim, walk
from firnline.incremental.relation import column
from firnline.model.names import is_reserved


def is_additive(node: Node) -> bool:
    """Whether the change adds up over chunks of the changes of all inputs."""
    match node:
        case Input():
            return not is_reserved(node.collection)
        case Map() | Filter() | Verbatim() | Union():
            return all(is_additive(below) for below in node.inputs)
        case Join():
            return node.kind == "inner" and is_additive(node.left) and is_additive(node.right)
    return False


def linear_inputs(node: Node, sizes: Mapping[str, int]) -> frozenset[str]:
    """The inputs that, cut into chunks together, cut all rows into chunks; none if there are none.

    Of two sides of a join either will do: the larger is taken.
    """
    match node:
        case Input():
            return frozenset() if is_reserved(node.collection) else frozenset([node.collection])
        case Map() | Filter() | Verbatim():
            return linear_inputs(node.input, sizes)
        case Union():
            left, right = (linear_inputs(side, sizes) for side in (node.left, node.right))
            # An input that one side hangs on linearly and the other otherwise would be cut for both.
            is_cut_alike = not left & (_read(node.right) - right) and not right & (_read(node.left) - left)
            return left | right if left and right and is_cut_alike else frozenset()
        case Join():
            sides = [(node.left, node.right), (node.right, node.left)]
            found = [
                names
                for side, other in (sides if node.kind == "inner" else sides[:1])
                if not (names := linear_inputs(side, sizes)) & _read(other)
            ]
            return max(found, key=lambda names: sum(sizes.get(name, 0) for name in names), default=frozenset())
    return frozenset()


def summed_again(node: Accumulate, name: str) -> Accumulate:
    """The same sums, over rows of partial ones that are read under a name."""
    sums = tuple((Output(part.columns, column(part.columns[0].id)), kind) for part, kind in node.sums)
    return Accumulate(
        node.columns, node.where, Input(node.columns, node.where, name), node.keys, sums, node.count, node.arrangement
    )


def _read(node: Node) -> set[str]:
    return {each.collection for each in walk(node) if isinstance(each, Input)}
