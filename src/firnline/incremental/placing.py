"""Which inputs a stage reads part by part: an output row of part p derives only from rows of part p of that input.

That holds if every input row that an output row hangs on, by being there or by not being there, has the same values in the
columns that its log is cut by as the output row in those that the output is cut by; and both are cut into equally many parts.
``same_parts`` follows these columns down the plan. Where it loses one, the answer is no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firnline.incremental.algebra import Accumulate, Aggregate, Filter, Input, Join, Map, Node, Union, walk
from firnline.incremental.arranging import Arrangement
from firnline.incremental.colocating import Placed
from firnline.incremental.rules.map import passed

Equals = tuple[frozenset[str], ...]
"""For each column that the output is cut by, the columns of a node that equal it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A log that a plan reads: how it is cut, and the types of its columns."""

    placed: Placed
    types: Mapping[str, str]


def same_parts(
    root: Node, columns: Sequence[str], placed: Placed, logs: Mapping[str, Stored], arrangements: Sequence[Arrangement]
) -> set[str]:
    """The inputs of a plan that are read part by part.

    Args:
        root: The plan.
        columns: The ids of the columns that its rows are cut by.
        placed: How its rows are cut.
        logs: The inputs, without arrangements.
        arrangements: What stands for an input that is kept.
    """
    tracing = _Tracing(placed, logs, {each.name: each for each in arrangements})
    tracing.follow(root, tuple(frozenset([each]) for each in columns))
    return {name for name, log in logs.items() if _is_one_part(placed, log.placed) or name not in tracing.crossed}


def _is_one_part(one: Placed, other: Placed) -> bool:
    return one.parts == other.parts == 1


class _Tracing:
    def __init__(self, placed: Placed, logs: Mapping[str, Stored], arrangements: Mapping[str, Arrangement]) -> None:
        self.crossed: set[str] = set()
        """Inputs of which a row may count in another part than its own."""
        self._placed, self._logs, self._arrangements = placed, logs, arrangements
        self._done: set[tuple[int, Equals]] = set()

    def follow(self, node: Node, equals: Equals) -> None:
        """Look at all inputs below a node."""
        if (id(node), equals) in self._done:
            return
        self._done.add((id(node), equals))
        match node:
            case Input():
                self._end(node, equals)
            case Filter():
                self.follow(node.input, equals)
            case Map():
                names = passed(node.outputs)
                self.follow(node.input, tuple(frozenset(names[of] for of in each if of in names) for each in equals))
            case Aggregate() | Accumulate():
                self.follow(node.input, tuple(each & set(node.keys) for each in equals))
            case Union():
                for side in (node.left, node.right):
                    names = dict(zip(node.ids, side.ids, strict=True))
                    self.follow(side, tuple(frozenset(names[of] for of in each if of in names) for each in equals))
            case Join():
                self._join(node, equals)
            case _:
                for below in node.inputs:
                    self._cross(below)

    def _end(self, node: Input, equals: Equals) -> None:
        kept = self._arrangements.get(node.collection)
        names = {of.id: of.name for of in node.columns}
        if kept is not None:
            ids = {of.name: of.id for of in kept.columns}
            self.follow(kept.node, tuple(frozenset(ids[names[of]] for of in each if of in names) for each in equals))
        elif node.collection in self._logs:
            by = self._logs[node.collection].placed
            is_cut_alike = (by.parts, len(by.columns)) == (self._placed.parts, len(equals)) and all(
                name in {names.get(of) for of in each} and kind == our_kind
                for (name, kind), each, (_, our_kind) in zip(by.columns, equals, self._placed.columns, strict=True)
            )
            if not is_cut_alike:
                self.crossed.add(node.collection)

    def _join(self, node: Join, equals: Equals) -> None:
        """Of a side that may be missing, rows count by their keys alone: where it is missing, its columns are null."""
        pairs = [pair for pair in node.keys if self._is_same_type(node, *pair)]
        if node.kind == "inner":
            equals = tuple(_closed(each, pairs) for each in equals)
            sides = [tuple(each & set(side.ids) for each in equals) for side in (node.left, node.right)]
        else:
            left = tuple(each & set(node.left.ids) for each in equals)
            sides = [left, tuple(frozenset(other for one, other in pairs if one in each) for each in left)]
        self.follow(node.left, sides[0])
        self.follow(node.right, sides[1])

    def _is_same_type(self, node: Join, left: str, right: str) -> bool:
        """Whether equal values of two columns have equal hashes: text '01' equals the number 1, and has another."""
        kind = self._kind(node.left, left)
        return kind is not None and kind == self._kind(node.right, right)

    def _kind(self, node: Node, of: str) -> str | None:
        """The type of a column that comes from a log unchanged."""
        match node:
            case Input():
                name = next((each.name for each in node.columns if each.id == of), None)
                kept = self._arrangements.get(node.collection)
                if kept is not None:
                    inner = next((each.id for each in kept.columns if each.name == name), None)
                    return None if inner is None else self._kind(kept.node, inner)
                log = self._logs.get(node.collection)
                return None if log is None or name is None else log.types.get(name)
            case Filter():
                return self._kind(node.input, of)
            case Map():
                below = passed(node.outputs).get(of)
                return None if below is None else self._kind(node.input, below)
            case Aggregate() | Accumulate():
                return self._kind(node.input, of) if of in node.keys else None
            case Union():
                at = node.ids.index(of)
                kind = self._kind(node.left, node.left.ids[at])
                return kind if kind == self._kind(node.right, node.right.ids[at]) else None
            case Join():
                return self._kind(node.left if of in node.left.ids else node.right, of)
        return None

    def _cross(self, node: Node) -> None:
        """Every input below counts anywhere."""
        for each in walk(node):
            if isinstance(each, Input):
                kept = self._arrangements.get(each.collection)
                if kept is not None:
                    self._cross(kept.node)
                else:
                    self.crossed.add(each.collection)


def _closed(found: frozenset[str], pairs: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Columns with all that equal them by pairs of equals."""
    while True:
        more = found.union(*(pair for pair in pairs if found & set(pair)))
        if more == found:
            return found
        found = more
