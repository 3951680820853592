"""Unions are linear: D(A + B) = D(A) + D(B)."""

from __future__ import annotations

from firnline.incremental.algebra import Union
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import alias, column, project, union
from firnline.model.names import DIFF


def _moved(node: Union, rows: Rows) -> Rows:
    """Rows of the right under the ids of the left."""
    pairs = zip(node.right.ids, node.ids, strict=True)
    return rows.but(project(rows.relation, [*(alias(column(of), to) for of, to in pairs), column(DIFF)]))


def _both(node: Union, left: Rows, right: Rows) -> Rows:
    first = project(left.relation, [*map(column, node.ids), column(DIFF)])
    rows = union(first, _moved(node, right).relation)
    return Rows(rows, left.is_positive and right.is_positive, left.is_unit and right.is_unit)


def _delta(node: Union, derivation: Derivation) -> Rows | None:
    left, right = derivation.delta(node.left), derivation.delta(node.right)
    if left is None or right is None:
        return left or (right and _moved(node, right))
    return _both(node, left, right)


def _state(node: Union, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    left = derivation.state(node.left, moment, only)
    right = derivation.state(node.right, moment, only and only.under(dict(zip(node.ids, node.right.ids, strict=True))))
    return _both(node, left, right)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the changed rows of both sides",
    lambda node: "the rows that change",
)
