"""Aggregates, for the groups K that change only: D(f(A)) = f(A_new|K) - f(A_old|K).

Right for every aggregate function. Those that add up have a state of their own instead (``accumulate``).
"""

from __future__ import annotations

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Aggregate
from firnline.incremental.derivation import SIDE, Derivation, Keys, Moment, Rows, Rule, by_side, of_side
from firnline.incremental.relation import alias, column, grouped, integer, project, union
from firnline.incremental.rules.map import made
from firnline.model.names import DIFF


def _groups(node: Aggregate, rows: Relation, weight: int) -> Relation:
    """The groups of rows that are spelt out."""
    found = grouped(rows, map(column, node.keys), made(node.aggregates))
    return project(found, [*map(column, node.ids), alias(integer(weight), DIFF)])


def _delta(node: Aggregate, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    changed = derivation.share(changed)
    only = derivation.keys(changed, [(key, key) for key in node.keys], is_null_safe=True)
    sides = derivation.sides(node.input, changed, only)
    if node.keys:
        groups = grouped(sides, map(column, (*node.keys, SIDE)), made(node.aggregates))
        return Rows(by_side(groups, [*map(column, node.ids)]))
    both = derivation.share(Rows(sides)).relation
    return Rows(union(_groups(node, of_side(both, 1), 1), _groups(node, of_side(both, 0), -1)))


def _state(node: Aggregate, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    keys = {key: key for key in node.keys}
    input_rows = derivation.unit(derivation.state(node.input, moment, only and only.under(keys)), node.input.ids)
    rows = Rows(_groups(node, input_rows.relation, 1), is_positive=True, is_unit=True)
    return derivation.beyond(rows, only, keys)


def _how(node: Aggregate) -> str:
    if not node.keys:
        return "all rows, before and after, as there is one group"
    return "the groups that change, from their rows before and after"


def _cost(node: Aggregate) -> str:
    return "the rows of the groups that change, and a scan for them" if node.keys else "all rows"


RULE = Rule(_delta, _state, _how, _cost)
