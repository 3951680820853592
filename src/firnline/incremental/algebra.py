"""The algebra that plans are bound to: every column has an id of its own, every reference is by id.

Ids make the rest simple: a node can be moved, restricted or joined again without a name meaning something else there.
Expressions stay Connect messages; their attributes are ids (``c12``), with a path behind where a field of a struct is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.expressions import references


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its id, unique in a stage, and what the user calls it."""

    id: str
    name: str


@dataclass(frozen=True, eq=False)
class Node:
    """A relation. ``where`` is the user's call site, file:line, if known."""

    columns: tuple[Column, ...]
    where: str | None

    @property
    def ids(self) -> list[str]:
        """The ids of its columns, in order."""
        return [column.id for column in self.columns]

    @property
    def inputs(self) -> tuple[Node, ...]:
        """What it reads."""
        return tuple(value for name in self.__dataclass_fields__ if isinstance(value := getattr(self, name), Node))


@dataclass(frozen=True, eq=False)
class Input(Node):
    """A collection of the log, or an arrangement; columns are stored under their names."""

    collection: str


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """Rows that are part of the plan itself."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class Output:
    """An expression and the columns it makes: one, or several for a generator."""

    columns: tuple[Column, ...]
    expression: Expression


@dataclass(frozen=True, eq=False)
class Map(Node):
    """Row by row: projections, also with generators and Python functions."""

    input: Node
    outputs: tuple[Output, ...]


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """The rows for which the condition is true."""

    input: Node
    condition: Expression


@dataclass(frozen=True, eq=False)
class Verbatim(Node):
    """A linear operator taken as the user wrote it, between two renamings.

    ``relation`` is the user's message without its input; with ``is_opaque`` it is a function of whole rows that knows no weight.
    """

    input: Node
    relation: Relation
    is_opaque: bool


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of both, by position; the columns are the left side's."""

    left: Node
    right: Node


JoinKind = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Rows of the left with those of the right whose keys are equal and for which the condition is true."""

    left: Node
    right: Node
    kind: JoinKind
    keys: tuple[tuple[str, str], ...]
    condition: Expression | None


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """One row per group: the keys, then the aggregates. Without keys one row, also of nothing."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[Output, ...]


@dataclass(frozen=True, eq=False)
class Accumulate(Node):
    """Sums per group, kept in an arrangement: the keys, then the sums. ``count`` is the sum that counts rows.

    A sum is an output whose expression is added up over all rows, and the type of its total, in DDL.
    """

    input: Node
    keys: tuple[str, ...]
    sums: tuple[tuple[Output, str], ...]
    count: str
    arrangement: str


@dataclass(frozen=True, eq=False)
class Series(Accumulate):
    """The sums per group after every epoch of a stretch; ``epoch`` is the column that says which, here and in the input."""

    epoch: str


@dataclass(frozen=True, eq=False)
class Window(Node):
    """Row by row, but with window functions over parts of equal ``partition`` values."""

    input: Node
    partition: tuple[str, ...]
    outputs: tuple[Output, ...]


SetKind = Literal["intersect", "except"]


@dataclass(frozen=True, eq=False)
class SetOperation(Node):
    """Intersection or difference of multisets, or of sets."""

    left: Node
    right: Node
    kind: SetKind
    is_all: bool


@dataclass(frozen=True, eq=False)
class Top(Node):
    """The first rows by an order, after skipping some; ties are broken by all columns."""

    input: Node
    order: tuple[Expression, ...]
    limit: int | None
    offset: int


KEY = "_firnline_key"
"""The name of a column that a key's expression became."""

ALWAYS = -(2**63)
"""The epoch of rows that were there before any that a stretch is about."""

ITERATION = "iteration"
"""The column of a recursion's arrangement that says in which iteration a row came or went."""


@dataclass(frozen=True, eq=False)
class Iterate(Node):
    """The fixpoint of a step that begins with a seed; ``variable`` names the step's own input, a collection of the iteration."""

    seed: Node
    step: Node
    variable: str
    most: int


@dataclass(frozen=True, eq=False)
class GroupMap(Node):
    """A Python function of whole groups."""

    input: Node
    keys: tuple[str, ...]
    relation: Relation


@dataclass(frozen=True, eq=False)
class CoGroupMap(Node):
    """A Python function of pairs of groups."""

    left: Node
    right: Node
    keys: tuple[tuple[str, str], ...]
    relation: Relation


N = TypeVar("N", bound=Node)


def changed(node: N, **values: Any) -> N:
    """A copy of a node with other values."""
    return replace(node, **values)


def seen(node: Node) -> list[Column]:
    """The columns that a user's function of whole rows sees."""
    return [each for each in node.columns if each.name != KEY]


def is_scan(node: Node) -> bool:
    """Whether rows are read from a log rather than computed."""
    return isinstance(node, Input) or (isinstance(node, Map | Filter) and is_scan(node.input))


def expressions_of(node: Node) -> list[Expression]:
    """The expressions that a node itself computes."""
    match node:
        case Map() | Window():
            return [each.expression for each in node.outputs]
        case Filter():
            return [node.condition]
        case Join():
            return [node.condition] if node.condition else []
        case Aggregate():
            return [each.expression for each in node.aggregates]
        case Accumulate():
            return [each.expression for each, _ in node.sums]
        case Top():
            return list(node.order)
    return []


def free(node: Node) -> set[str]:
    """The columns that something in the tree refers to and that are not of it: those of rows outside of a subquery."""
    known = {of for below in node.inputs for of in below.ids}
    read = {of for each in expressions_of(node) for of in references(each)}
    return (read - known).union(*(free(below) for below in node.inputs))


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, inputs first, each once."""
    seen: set[int] = set()

    def visit(found: Node) -> Iterator[Node]:
        if id(found) in seen:
            return
        seen.add(id(found))
        for below in found.inputs:
            yield from visit(below)
        yield found

    return visit(node)
