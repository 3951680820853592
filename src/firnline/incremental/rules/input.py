"""A collection: D is in its log, and so is the state."""

from __future__ import annotations

from firnline.incremental.algebra import Input
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import alias, column, project
from firnline.model.names import DIFF


def _bound(node: Input, rows: Rows) -> Rows:
    return rows.but(project(rows.relation, [*(alias(column(each.name), each.id) for each in node.columns), column(DIFF)]))


def _delta(node: Input, derivation: Derivation) -> Rows | None:
    rows = derivation.leaves.delta(node.collection, [each.name for each in node.columns])
    return rows and _bound(node, rows)


def _state(node: Input, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    rows = derivation.leaves.state(node.collection, moment, [each.name for each in node.columns])
    return derivation.restricted(_bound(node, rows), only)


RULE = Rule(
    _delta,
    _state,
    lambda node: f"the epoch's rows in the log of {node.collection}",
    lambda node: "the rows that the epoch changed",
)
