"""A function of whole groups, for the groups K that change only: D(f(A)) = f(A_new|K) - f(A_old|K)."""

from __future__ import annotations

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import GroupMap, seen
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule, of_side
from firnline.incremental.relation import alias, column, integer, named_as, project, renamed, union
from firnline.model.names import DIFF


def _applied(node: GroupMap, rows: Relation, weight: int) -> Relation:
    """The function of rows that are spelt out."""
    relation, shown = Relation(), seen(node.input)
    relation.CopyFrom(node.relation)
    relation.group_map.input.CopyFrom(named_as(rows, [each.id for each in shown], [each.name for each in shown]))
    return project(renamed(relation, node.ids), [*map(column, node.ids), alias(integer(weight), DIFF)])


def _delta(node: GroupMap, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    changed = derivation.share(changed)
    only = derivation.keys(changed, [(key, key) for key in node.keys], is_null_safe=True)
    both = derivation.share(Rows(derivation.sides(node.input, changed, only))).relation
    return Rows(union(_applied(node, of_side(both, 1), 1), _applied(node, of_side(both, 0), -1)))


def _state(node: GroupMap, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    rows = derivation.unit(derivation.state(node.input, moment), node.input.ids)
    return derivation.restricted(Rows(_applied(node, rows.relation, 1), is_positive=True, is_unit=True), only)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the groups that change, from their rows before and after",
    lambda node: "the groups that change, and a scan for their rows",
)
