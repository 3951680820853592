"""Intersections and differences, for the rows K that change on either side only, by how often a row is there.

With a and b the counts of a row: intersect all min(a, b), except all max(a - b, 0); as sets a > 0 and b > 0, a > 0 and b = 0.
"""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.algebra import Node, SetOperation
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import alias, call, column, filtered, grouped, integer, named_as, project, union
from firnline.model.names import DIFF

_COUNTS = ("_left_old", "_right_old", "_left_new", "_right_new")


def _count(node: SetOperation, left: str, right: str) -> Expression:
    """How often a row is there, from how often it is on both sides."""
    zero, one, a, b = integer(0), integer(1), column(left), column(right)
    if node.kind == "intersect":
        both = call("least", a, b)
        return both if node.is_all else call("least", both, one)
    if node.is_all:
        return call("greatest", call("-", a, b), zero)
    return call("if", call("and", call(">", a, zero), call("==", b, zero)), one, zero)


def _counted(node: SetOperation, side: Node, rows: Rows, at: tuple[int, ...]) -> Relation:
    """Rows of one side under the node's ids, their weights counted at some of the four places."""
    moved = named_as(rows.relation, [*side.ids, DIFF], [*node.ids, DIFF])
    places = [alias(column(DIFF) if place in at else integer(0), name) for place, name in enumerate(_COUNTS)]
    return project(moved, [*map(column, node.ids), *places])


def _summed(node: SetOperation, counted: list[Relation]) -> Relation:
    return grouped(union(*counted), map(column, node.ids), [alias(call("sum", column(name)), name) for name in _COUNTS])


def _delta(node: SetOperation, derivation: Derivation) -> Rows | None:
    changes = [(side, derivation.delta(side)) for side in (node.left, node.right)]
    found = [(number, side, derivation.share(rows)) for number, (side, rows) in enumerate(changes) if rows]
    if not found:
        return None
    values = [named_as(rows.relation, side.ids, node.ids) for _, side, rows in found]
    touched = derivation.share(Rows(union(*values)))
    counted = [_counted(node, side, rows, (2 + number,)) for number, side, rows in found]
    for number, side in enumerate((node.left, node.right)):
        only = derivation.keys(touched, [*zip(side.ids, node.ids, strict=True)], is_null_safe=True)
        counted.append(_counted(node, side, derivation.state(side, "old", only), (number, 2 + number)))
    change = call("-", _count(node, *_COUNTS[2:]), _count(node, *_COUNTS[:2]))
    rows = project(_summed(node, counted), [*map(column, node.ids), alias(change, DIFF)])
    return Rows(filtered(rows, call("not", call("==", column(DIFF), integer(0)))))


def _state(node: SetOperation, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    counted = []
    for number, side in enumerate((node.left, node.right)):
        names = dict(zip(node.ids, side.ids, strict=True))
        counted.append(_counted(node, side, derivation.state(side, moment, only and only.under(names)), (number,)))
    rows = project(_summed(node, counted), [*map(column, node.ids), alias(_count(node, *_COUNTS[:2]), DIFF)])
    return Rows(filtered(rows, call(">", column(DIFF), integer(0))), is_positive=True)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the rows that change on either side, by how often they are on both",
    lambda node: "the rows that change, and a scan of both sides for their equals",
)
