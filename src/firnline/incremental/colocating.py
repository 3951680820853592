"""Joins of logs that are placed by their join keys: rows with equal keys are in equal parts.

``colocated`` asks for equal parts beside equal keys. That changes no answer, and lets Spark join part by part without a shuffle
where neither side is small.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from firnline.incremental.algebra import Column, Filter, Input, Join, Map, Node, Output, changed
from firnline.incremental.relation import column
from firnline.incremental.rules.map import passed
from firnline.model.names import PART


@dataclass(frozen=True, slots=True)
class Placed:
    """How a log is cut into parts: by the hash of these columns, each with its type, into so many."""

    columns: tuple[tuple[str, str], ...]
    parts: int


def colocated(root: Node, logs: Mapping[str, Placed]) -> tuple[Node, bool]:
    """The same rows from joins part by part, where both sides allow it; and whether there is such a join."""
    done: dict[int, Node] = {}
    numbers = itertools.count()
    is_found = False

    def visit(node: Node) -> Node:
        nonlocal is_found
        if id(node) not in done:
            inputs = {each.name: visit(value) for each in fields(node) if isinstance(value := getattr(node, each.name), Node)}
            found = changed(node, **inputs) if any(value is not getattr(node, name) for name, value in inputs.items()) else node
            if isinstance(found, Join) and _is_colocated(found, logs):
                is_found = True
                found = _by_part(found, numbers)
            done[id(node)] = found
        return done[id(node)]

    return visit(root), is_found


def _is_colocated(node: Join, logs: Mapping[str, Placed]) -> bool:
    """Whether both sides are cut into equally many parts by columns that are equal in joined rows."""
    (left, left_names), (right, right_names) = (_origin(side) for side in (node.left, node.right))
    one, other = (logs.get(side.collection) if side else None for side in (left, right))
    if one is None or other is None or one.parts != other.parts or one.parts == 1 or not one.columns:
        return False
    equal = {(left_names.get(mine), right_names.get(theirs)) for mine, theirs in node.keys}
    return len(one.columns) == len(other.columns) and all(
        (mine, theirs) in equal and kind == other_kind
        for (mine, kind), (theirs, other_kind) in zip(one.columns, other.columns, strict=True)
    )


def _origin(node: Node) -> tuple[Input | None, dict[str, str]]:
    """The log that a node reads row by row, and the stored names of the columns that it passes on."""
    match node:
        case Input():
            return node, {each.id: each.name for each in node.columns}
        case Filter():
            return _origin(node.input)
        case Map():
            found, names = _origin(node.input)
            return found, {of: names[below] for of, below in passed(node.outputs).items() if below in names}
    return None, {}


def _by_part(node: Join, numbers: Iterator[int]) -> Node:
    parts = tuple(Column(f"p{next(numbers)}", PART) for _ in range(2))
    left, right = (_with_part(side, part) for side, part in zip((node.left, node.right), parts, strict=True))
    joined = changed(node, left=left, right=right, keys=(*node.keys, (parts[0].id, parts[1].id)))
    if node.kind in ("inner", "left"):
        return joined
    kept = tuple(Output((each,), column(each.id)) for each in node.columns)
    return Map(node.columns, node.where, changed(joined, columns=left.columns), kept)


def _with_part(node: Node, part: Column) -> Node:
    """The node with the part of its rows as one more column."""
    columns = (*node.columns, part)
    if isinstance(node, Map):
        return changed(
            node, columns=columns, input=_with_part(node.input, part), outputs=(*node.outputs, Output((part,), column(part.id)))
        )
    if isinstance(node, Filter):
        return changed(node, columns=columns, input=_with_part(node.input, part))
    return changed(node, columns=columns)
