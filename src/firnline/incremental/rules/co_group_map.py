"""A function of pairs of groups, for the keys K that change on either side only: f(A_new|K, B_new|K) - f(A_old|K, B_old|K)."""

from __future__ import annotations

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import CoGroupMap, seen
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule, of_side
from firnline.incremental.relation import alias, column, integer, named_as, project, renamed, union
from firnline.model.names import DIFF


def _applied(node: CoGroupMap, left: Relation, right: Relation, weight: int) -> Relation:
    """The function of rows that are spelt out."""
    relation = Relation()
    relation.CopyFrom(node.relation)
    for to, rows, side in ((relation.co_group_map.input, left, node.left), (relation.co_group_map.other, right, node.right)):
        to.CopyFrom(named_as(rows, [each.id for each in seen(side)], [each.name for each in seen(side)]))
    return project(renamed(relation, node.ids), [*map(column, node.ids), alias(integer(weight), DIFF)])


def _delta(node: CoGroupMap, derivation: Derivation) -> Rows | None:
    sides = (node.left, tuple(left for left, _ in node.keys)), (node.right, tuple(right for _, right in node.keys))
    changes = [derivation.delta(side) for side, _ in sides]
    names = [f"_on{number}" for number in range(len(node.keys))]
    found = [named_as(rows.relation, on, names) for rows, (_, on) in zip(changes, sides, strict=True) if rows]
    if not found:
        return None
    touched = derivation.share(Rows(union(*found)))
    both = []
    for (side, on), rows in zip(sides, changes, strict=True):
        only = derivation.keys(touched, [*zip(on, names, strict=True)], is_null_safe=True)
        both.append(derivation.share(Rows(derivation.sides(side, rows, only))).relation)
    left, right = both
    after = _applied(node, of_side(left, 1), of_side(right, 1), 1)
    before = _applied(node, of_side(left, 0), of_side(right, 0), -1)
    return Rows(union(after, before))


def _state(node: CoGroupMap, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    left, right = (derivation.unit(derivation.state(side, moment), side.ids).relation for side in (node.left, node.right))
    return derivation.restricted(Rows(_applied(node, left, right, 1), is_positive=True, is_unit=True), only)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the pairs of groups that change, from their rows before and after",
    lambda node: "the groups that change, and a scan of both sides for their rows",
)
