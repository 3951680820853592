"""The plan of a change, rule by rule.

With S the rows of a node as a multiset, before and after an epoch: ``delta(node)`` sums up to S_new - S_old, and
``state(node, m)`` to S_m. Both are weighted rows: equal rows may stand there several times, with weights that cancel out; only
sums count. ``Rows`` says when more is known.

A rule (``rules/``, one a node class) gives both for its node. ``state`` can be asked for some keys only, and hands that down as
far as the keys are columns of its inputs: so work grows with what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.algebra import Node
from firnline.incremental.relation import (
    SEMI,
    alias,
    all_of,
    broadcast,
    call,
    cast,
    column,
    consolidated,
    distinct,
    filtered,
    grouped,
    integer,
    joined,
    named,
    project,
    small_integer,
    union,
)
from firnline.model.names import DIFF

Moment = Literal["old", "new"]
SIDE = "_side"
_OLD, _NEW = "_old", "_new"


@dataclass(frozen=True, slots=True)
class Rows:
    """Weighted rows, and what is known of their weights."""

    relation: Relation
    is_positive: bool = False
    """No weight is zero or below: every row is there."""
    is_unit: bool = False
    """Every weight is one: the rows are the multiset, spelt out."""

    def but(self, relation: Relation) -> Rows:
        """Other rows, of whose weights the same is known."""
        return Rows(relation, self.is_positive, self.is_unit)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Rows of a log that can be had without reading all of it: what the epoch changes, or those of a state with some keys.

    Args:
        collection: The log.
        moment: The state, or "change".
        columns: Pairs of (column of the log, its name in the rows).
        on: Pairs of (column of the log, column of ``keys``).
        keys: The keys; None for a change.
    """

    collection: str
    moment: Moment | Literal["change"]
    columns: tuple[tuple[str, str], ...]
    on: tuple[tuple[str, str], ...] = ()
    keys: Relation | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """Rows under a name of their own: how Spark computes them and, if they may be had without it, what to look up."""

    name: str
    relation: Relation
    lookup: Lookup | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """Some values of some columns: pairs of (column of a node, column of ``relation``)."""

    on: tuple[tuple[str, str], ...]
    relation: Relation
    is_null_safe: bool

    def under(self, names: Mapping[str, str]) -> Keys | None:
        """The same, as far as the columns have another name; a weaker restriction where some have none."""
        on = tuple((names[of], key) for of, key in self.on if of in names)
        return Keys(on, self.relation, self.is_null_safe) if on else None

    def is_within(self, names: Iterable[str]) -> bool:
        """Whether all of its columns are among these."""
        return {of for of, _ in self.on} <= set(names)


class Leaves(Protocol):
    """The logs: weighted rows of collections under their stored names."""

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        """What the epoch changes; None if nothing."""

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        """The rows before or after the epoch."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How the change and the states of one class of nodes come about, and how that is said to people."""

    delta: Callable[[Any, Derivation], Rows | None]
    """The rows that change; None if none do."""
    state: Callable[[Any, Derivation, Moment, Keys | None], Rows]
    """The rows at a moment, at least those with the given keys."""
    how: Callable[[Any], str]
    """How its change is computed, in words."""
    cost: Callable[[Any], str]
    """What that costs in the worst case, in words."""


@dataclass
class Derivation:
    """The derivation of one stage's change in one epoch.

    Args:
        leaves: Where collections are read.
        rules: By the class of nodes.
        is_small: Whether changes are few enough to be sent to every executor.
        is_sharing: Whether what is used twice is computed once.
        shared: What is used more than once or looked up, by name; whoever runs a plan makes them known to Spark first, in this
            order.
        at_hand: The logs of which rows can be looked up: (collection, moment), or (collection, "change").
    """

    leaves: Leaves
    rules: Mapping[type[Node], Rule]
    is_small: bool = True
    is_sharing: bool = True
    prefix: str = "firnline"
    shared: list[Shared] = field(default_factory=list)
    at_hand: Collection[tuple[str, str]] = ()
    _deltas: dict[int, Rows | None] = field(default_factory=dict)

    def delta(self, node: Node) -> Rows | None:
        """What changes in a node, derived once."""
        if id(node) not in self._deltas:
            self._deltas[id(node)] = self.rules[type(node)].delta(node, self)
        return self._deltas[id(node)]

    def state(self, node: Node, moment: Moment, only: Keys | None = None) -> Rows:
        """The rows of a node at a moment, those with the given keys and perhaps others."""
        return self.rules[type(node)].state(node, self, moment, only)

    def share(self, rows: Rows) -> Rows:
        """Rows that will be used more than once, computed once."""
        is_named = rows.relation.WhichOneof("rel_type") == "read" or _is_of(
            rows.relation, {each.name for each in self.shared if each.lookup}
        )
        return self._under_a_name(rows) if self.is_sharing and not is_named else rows

    def look_up(self, lookup: Lookup, rows: Rows) -> Rows:
        """Rows that can be looked up; ``rows`` are the same, or fewer, as Spark finds them."""
        return self._under_a_name(rows, lookup)

    def _under_a_name(self, rows: Rows, lookup: Lookup | None = None) -> Rows:
        name = f"{self.prefix}_{len(self.shared)}"
        self.shared.append(Shared(name, rows.relation, lookup))
        return rows.but(named(name))

    def small(self, relation: Relation) -> Relation:
        """A hint, where changes are small, that this comes from changes alone."""
        return broadcast(relation) if self.is_small else relation

    def keys(self, changed: Rows, columns: Sequence[tuple[str, str]], *, is_null_safe: bool) -> Keys | None:
        """The values of columns in changed rows, as keys: pairs of (column of the node to restrict, column of the rows)."""
        if not columns:
            return None
        names = [f"_key{number}" for number in range(len(columns))]
        values = [alias(column(of), name) for name, (_, of) in zip(names, columns, strict=True)]
        on = tuple((to, name) for name, (to, _) in zip(names, columns, strict=True))
        found = project(changed.relation, values)
        # What is sent to every executor becomes a hash table there, which keeps each key once: no shuffle before.
        return Keys(on, found if self.is_small else distinct(found), is_null_safe)

    def restricted(self, rows: Rows, only: Keys | None) -> Rows:
        """The rows with those keys."""
        if only is None:
            return rows
        equal = "<=>" if only.is_null_safe else "=="
        condition = all_of([call(equal, column(of), column(key)) for of, key in only.on])
        return rows.but(joined(rows.relation, self.small(only.relation), SEMI, condition))

    def beyond(self, rows: Rows, only: Keys | None, handed_down: Iterable[str]) -> Rows:
        """The rows with those keys, where those of some columns were restricted below already."""
        return rows if only is None or only.is_within(handed_down) else self.restricted(rows, only)

    def positive(self, rows: Rows, columns: Sequence[str]) -> Rows:
        """The same rows without any that are not there."""
        return rows if rows.is_positive else Rows(consolidated(rows.relation, columns), is_positive=True)

    def unit(self, rows: Rows, columns: Sequence[str]) -> Rows:
        """The same rows, spelt out."""
        if rows.is_unit:
            return rows
        return Rows(expanded(self.positive(rows, columns).relation, columns), is_positive=True, is_unit=True)

    def sides(self, node: Node, changed: Rows | None, only: Keys | None) -> Relation:
        """The rows of a node before and after the epoch, spelt out, in one relation that reads the old ones once.

        ``_side`` is 0 for a row before and 1 for a row after. At least all rows with the given keys are there.
        """
        ids = [*map(column, node.ids)]
        before = project(self.state(node, "old", only).relation, [*ids, alias(column(DIFF), _OLD), alias(column(DIFF), _NEW)])
        if changed is not None:
            before = union(before, project(changed.relation, [*ids, alias(integer(0), _OLD), alias(column(DIFF), _NEW)]))
        sums = [alias(call("sum", column(name)), name) for name in (_OLD, _NEW)]
        both = grouped(before, ids, sums)
        stacked = call("stack", small_integer(2), small_integer(0), column(_OLD), small_integer(1), column(_NEW))
        rows = filtered(project(both, [*ids, alias(stacked, SIDE, DIFF)]), call(">", column(DIFF), integer(0)))
        return expanded(rows, [*node.ids, SIDE])


def _is_of(relation: Relation, found: Collection[str]) -> bool:
    """Whether a relation is one that is looked up, but for the names of its columns."""
    match relation.WhichOneof("rel_type"):
        case "read":
            return relation.read.named_table.unparsed_identifier in found
        case "project":
            outputs = relation.project.expressions
            inside = (each.alias.expr if each.WhichOneof("expr_type") == "alias" else each for each in outputs)
            is_renaming = all(each.WhichOneof("expr_type") == "unresolved_attribute" for each in inside)
            return is_renaming and _is_of(relation.project.input, found)
        case "repartition":
            return _is_of(relation.repartition.input, found)
    return False


def expanded(relation: Relation, columns: Sequence[str]) -> Relation:
    """Every row as often as its weight says, each time with the weight one."""
    copies = call("explode", call("array_repeat", integer(1), cast(column(DIFF), "int")))
    return project(relation, [*map(column, columns), alias(copies, DIFF)])


def by_side(sides: Relation, columns: Sequence[Expression]) -> Relation:
    """Rows of both sides as a change: those after come, those before go."""
    sign = call("-", call("*", integer(2), column(SIDE)), integer(1))
    return project(sides, [*columns, alias(sign, DIFF)])


def of_side(sides: Relation, side: int) -> Relation:
    """The rows of one side."""
    return filtered(sides, call("==", column(SIDE), small_integer(side)))
