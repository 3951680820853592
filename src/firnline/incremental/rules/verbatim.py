"""Linear operators that are kept as the user wrote them: D(f(A)) = f(D(A)), between a renaming to the user's names and back.

A function of whole rows knows no weights: f(D) = f(rows that come) - f(rows that go), each spelt out.
"""

from __future__ import annotations

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Verbatim
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule, expanded
from firnline.incremental.relation import alias, call, column, filtered, integer, named_as, negated, project, renamed, union
from firnline.model.names import DIFF

_WEIGHT = "_firnline_weight"
"""What the weight is called beside the user's own names."""


def _applied(node: Verbatim, rows: Relation, *, with_weight: bool) -> Relation:
    names = [each.name for each in node.input.columns]
    weight, called = ([DIFF], [_WEIGHT]) if with_weight else ([], [])
    relation = Relation()
    relation.CopyFrom(node.relation)
    kind = relation.WhichOneof("rel_type")
    assert kind is not None
    getattr(relation, kind).input.CopyFrom(named_as(rows, [*node.input.ids, *weight], [*names, *called]))
    if kind == "unpivot" and with_weight:
        relation.unpivot.ids.append(column(_WEIGHT))
        at = len(relation.unpivot.ids) - 1  # the ids come first
        return project(renamed(relation, [*node.ids[:at], DIFF, *node.ids[at:]]), map(column, [*node.ids, DIFF]))
    return renamed(relation, [*node.ids, *weight])


def _of_rows(node: Verbatim, derivation: Derivation, rows: Rows) -> Rows:
    if not node.is_opaque:
        return rows.but(_applied(node, rows.relation, with_weight=True))
    ids = node.input.ids
    if rows.is_unit:
        return rows.but(_weighted(_applied(node, rows.relation, with_weight=False), node.ids))
    shared = derivation.share(rows).relation
    coming = filtered(shared, call(">", column(DIFF), integer(0)))
    going = filtered(negated(shared, ids), call(">", column(DIFF), integer(0)))
    come, go = (_weighted(_applied(node, expanded(each, ids), with_weight=False), node.ids) for each in (coming, going))
    return Rows(union(come, negated(go, node.ids)))


def _weighted(relation: Relation, ids: list[str]) -> Relation:
    return project(relation, [*map(column, ids), alias(integer(1), DIFF)])


def _delta(node: Verbatim, derivation: Derivation) -> Rows | None:
    rows = derivation.delta(node.input)
    return rows and _of_rows(node, derivation, rows)


def _state(node: Verbatim, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    return derivation.restricted(_of_rows(node, derivation, derivation.state(node.input, moment)), only)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the same of the changed rows",
    lambda node: "the rows that change",
)
