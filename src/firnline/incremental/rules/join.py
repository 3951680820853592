"""Joins are linear in the left side for a fixed right side. With K the keys that change on the right.

D(A op B) = D(A) op B_new  +  A_old|K op B_new|K  -  A_old|K op B_old|K

For an inner join the last two terms are A_old op D(B): nothing of B is read twice. For left, semi and anti joins B|K must hold
only rows that are there, as an absent row with a weight would count as a match. Right and full joins are made of these
(``joining``).
"""

from __future__ import annotations

from firnline.incremental.algebra import Join, is_scan
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.relation import (
    ANTI,
    INNER,
    LEFT_OUTER,
    SEMI,
    alias,
    all_of,
    call,
    column,
    integer,
    joined,
    negated,
    project,
    union,
)
from firnline.incremental.rules.input import is_at_hand
from firnline.model.names import DIFF

_KINDS = {"inner": INNER, "left": LEFT_OUTER, "semi": SEMI, "anti": ANTI}
_RIGHT = "_right"


def _matched(node: Join, left: Rows, right: Rows) -> Rows:
    """The join of weighted rows: weights multiply, and a row without a match keeps its own."""
    conditions = [call("==", column(one), column(other)) for one, other in node.keys]
    condition = all_of([*conditions, *([node.condition] if node.condition else [])])
    of_right = project(right.relation, [*map(column, node.right.ids), alias(column(DIFF), _RIGHT)])
    rows = joined(left.relation, of_right, _KINDS[node.kind], condition)
    if node.kind in ("semi", "anti"):
        return left.but(rows)
    weight = column(_RIGHT) if node.kind == "inner" else call("coalesce", column(_RIGHT), integer(1))
    product = project(rows, [*map(column, node.ids), alias(call("*", column(DIFF), weight), DIFF)])
    return Rows(product, left.is_positive and right.is_positive, left.is_unit and right.is_unit)


def _right_of(node: Join, derivation: Derivation, moment: Moment, left: Rows) -> tuple[Rows, Rows]:
    """Few rows of the left side, and what they can match on the right."""
    on_right = [right for _, right in node.keys]
    if node.kind == "inner" and is_scan(node.right) and not is_at_hand(derivation, node.right, moment, on_right):
        return left.but(derivation.small(left.relation)), derivation.state(node.right, moment)
    left = derivation.share(left)
    only = derivation.keys(left, [(right, left) for left, right in node.keys], is_null_safe=False)
    right = derivation.state(node.right, moment, only)
    if node.kind != "inner":
        right = derivation.positive(right, node.right.ids)
    return left, right.but(derivation.small(right.relation))


def _of_left(node: Join, derivation: Derivation, changed: Rows) -> Rows:
    return _matched(node, *_right_of(node, derivation, "new", changed))


def _of_right(node: Join, derivation: Derivation, changed: Rows) -> Rows:
    of_left = [left for left, _ in node.keys]
    if node.kind == "inner" and is_scan(node.left) and not is_at_hand(derivation, node.left, "old", of_left):
        return _matched(node, derivation.state(node.left, "old"), changed.but(derivation.small(changed.relation)))
    changed = derivation.share(changed)
    on_left = derivation.keys(changed, node.keys, is_null_safe=False)
    left = derivation.state(node.left, "old", on_left)
    if node.kind == "inner":
        return _matched(node, left, changed.but(derivation.small(changed.relation)))
    left = derivation.share(left)
    on_right = derivation.keys(changed, [(right, right) for _, right in node.keys], is_null_safe=False)
    before = derivation.share(derivation.positive(derivation.state(node.right, "old", on_right), node.right.ids))
    weighted = [column(name) for name in (*node.right.ids, DIFF)]
    sum_of_both = Rows(union(project(before.relation, weighted), project(changed.relation, weighted)))
    after = derivation.positive(sum_of_both, node.right.ids)
    new, old = (_matched(node, left, each.but(derivation.small(each.relation))).relation for each in (after, before))
    ids = [*map(column, node.ids), column(DIFF)]
    return Rows(union(project(new, ids), negated(old, node.ids)))


def _delta(node: Join, derivation: Derivation) -> Rows | None:
    of_left, of_right = derivation.delta(node.left), derivation.delta(node.right)
    terms = [
        *([_of_left(node, derivation, of_left)] if of_left else []),
        *([_of_right(node, derivation, of_right)] if of_right else []),
    ]
    if len(terms) < 2:
        return terms[0] if terms else None
    return Rows(union(*(project(each.relation, map(column, (*node.ids, DIFF))) for each in terms)))


def _state(node: Join, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    names = _pushed(node)
    on_left = only and only.under(names)
    on_right = only.under({of: of for of in node.right.ids}) if only and node.kind == "inner" and not on_left else None
    if on_right:
        right = derivation.share(derivation.state(node.right, moment, on_right))
        keys = None if is_scan(node.left) else derivation.keys(right, node.keys, is_null_safe=False)
        left = derivation.state(node.left, moment, keys)
        right = right.but(derivation.small(right.relation))
    else:
        left = derivation.state(node.left, moment, on_left)
        if on_left:
            left, right = _right_of(node, derivation, moment, left)
        else:
            right = derivation.state(node.right, moment)
            right = right if node.kind == "inner" else derivation.positive(right, node.right.ids)
    rows = _matched(node, left, right)
    return derivation.beyond(rows, only, names)


def _pushed(node: Join) -> dict[str, str]:
    """Columns by which the left side can be restricted: its own and, in an inner join, their equals on the right."""
    names = {of: of for of in node.left.ids}
    if node.kind == "inner":
        names.update({right: left for left, right in node.keys})
    return names


def _how(node: Join) -> str:
    if node.kind == "inner":
        return "changed left rows with the right side, and the left side with changed right rows"
    return "changed left rows with the right side, and left rows whose matches change, with them and without"


def _cost(node: Join) -> str:
    if not node.keys:
        return "the rows that change times all rows of the other side"
    return "the rows that change with all their matches, and a scan of the other side's keys"


RULE = Rule(_delta, _state, _how, _cost)
