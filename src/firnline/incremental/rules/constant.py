"""Rows of the plan itself: D is nothing."""

from __future__ import annotations

from firnline.incremental.algebra import Constant
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import alias, column, integer, project, renamed
from firnline.model.names import DIFF


def _state(node: Constant, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    rows = project(renamed(node.relation, node.ids), [*map(column, node.ids), alias(integer(1), DIFF)])
    return derivation.restricted(Rows(rows, is_positive=True, is_unit=True), only)


RULE = Rule(
    lambda node, derivation: None,
    _state,
    lambda node: "nothing: it never changes",
    lambda node: "nothing",
)
