"""The first k rows by an order, ties broken by all columns: D = top(A_new) - top(A_old)."""

from __future__ import annotations

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Top
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule, of_side
from firnline.incremental.relation import alias, column, integer, project, union
from firnline.model.names import DIFF


def _first(node: Top, rows: Relation, weight: int) -> Relation:
    """The first of rows that are spelt out."""
    ordered = Relation()
    ordered.sort.input.CopyFrom(rows)
    ordered.sort.is_global = True
    ordered.sort.order.extend(each.sort_order for each in node.order)
    if node.offset:
        skipped = Relation()
        skipped.offset.input.CopyFrom(ordered)
        skipped.offset.offset = node.offset
        ordered = skipped
    if node.limit is not None:
        limited = Relation()
        limited.limit.input.CopyFrom(ordered)
        limited.limit.limit = node.limit
        ordered = limited
    return project(ordered, [*map(column, node.ids), alias(integer(weight), DIFF)])


def _delta(node: Top, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    both = derivation.share(Rows(derivation.sides(node.input, derivation.share(changed), None))).relation
    return Rows(union(_first(node, of_side(both, 1), 1), _first(node, of_side(both, 0), -1)))


def _state(node: Top, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    rows = derivation.unit(derivation.state(node.input, moment), node.input.ids)
    return derivation.restricted(Rows(_first(node, rows.relation, 1), is_positive=True, is_unit=True), only)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the first rows before and after, of all",
    lambda node: "a scan of all rows",
)
