"""A collection: D is in its log, and so is the state."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.incremental.algebra import Column, Filter, Input, Map, Node
from firnline.incremental.derivation import Derivation, Keys, Lookup, Moment, Rows, Rule
from firnline.incremental.relation import alias, column, in_one, project
from firnline.incremental.rules.map import passed
from firnline.model.names import DIFF


def stored(derivation: Derivation, columns: Sequence[Column], log: str, moment: Moment, only: Keys | None) -> Rows:
    """The rows of a log, under the ids of columns that have its names."""
    rows = _bound(columns, derivation.leaves.state(log, moment, [each.name for each in columns]))
    found = derivation.restricted(rows, only)
    if only is None or (log, moment) not in derivation.at_hand:
        return found
    names = {each.id: each.name for each in columns}
    on = tuple((names[of], key) for of, key in only.on)
    return derivation.look_up(Lookup(log, moment, _pairs(columns), on, only.relation), found)


def is_at_hand(derivation: Derivation, node: Node, moment: Moment, columns: Sequence[str]) -> bool:
    """Whether the rows that a node reads from a log can be looked up by these columns."""
    match node:
        case Input():
            return bool(columns) and (node.collection, moment) in derivation.at_hand
        case Filter():
            return is_at_hand(derivation, node.input, moment, columns)
        case Map():
            names = passed(node.outputs)
            return is_at_hand(derivation, node.input, moment, [names[of] for of in columns if of in names])
    return False


def _bound(columns: Sequence[Column], rows: Rows) -> Rows:
    return rows.but(project(rows.relation, [*(alias(column(each.name), each.id) for each in columns), column(DIFF)]))


def _pairs(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    return (*((each.name, each.id) for each in columns), (DIFF, DIFF))


def _delta(node: Input, derivation: Derivation) -> Rows | None:
    rows = derivation.leaves.delta(node.collection, [each.name for each in node.columns])
    if rows is None:
        return None
    bound = _bound(node.columns, rows)
    if (node.collection, "change") not in derivation.at_hand:
        return bound
    taken = derivation.look_up(Lookup(node.collection, "change", _pairs(node.columns)), bound)
    return taken.but(in_one(taken.relation))


def _state(node: Input, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    return stored(derivation, node.columns, node.collection, moment, only)


RULE = Rule(
    _delta,
    _state,
    lambda node: f"the epoch's rows in the log of {node.collection}",
    lambda node: "the rows that the epoch changed",
)
