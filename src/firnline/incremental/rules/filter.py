"""Filters are linear: D(A where p) = D(A) where p."""

from __future__ import annotations

from firnline.incremental.algebra import Filter
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import filtered


def _delta(node: Filter, derivation: Derivation) -> Rows | None:
    rows = derivation.delta(node.input)
    return rows and rows.but(filtered(rows.relation, node.condition))


def _state(node: Filter, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    rows = derivation.state(node.input, moment, only)
    return rows.but(filtered(rows.relation, node.condition))


RULE = Rule(
    _delta,
    _state,
    lambda node: "the same of the changed rows",
    lambda node: "the rows that change",
)
