"""Binding joins: keys are found in the condition, and right and full joins become left and anti joins.

A right join is the left join of the sides exchanged. A full join is the left join, and beside it the rows of the right without a
match, with nulls for the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression
from pyspark.sql.connect.proto import Join as JoinProto

from firnline.incremental.algebra import Column, Join, JoinKind, Output, Union
from firnline.incremental.expressions import function, references
from firnline.incremental.relation import alias, all_of, call, cast, null
from firnline.incremental.scope import Bound, Field, Made, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

KINDS: dict[int, JoinKind] = {
    JoinProto.JOIN_TYPE_INNER: "inner",
    JoinProto.JOIN_TYPE_CROSS: "inner",
    JoinProto.JOIN_TYPE_LEFT_OUTER: "left",
    JoinProto.JOIN_TYPE_LEFT_SEMI: "semi",
    JoinProto.JOIN_TYPE_LEFT_ANTI: "anti",
}


def join(binder: Binder, message: JoinProto, left: Bound, right: Bound, condition: Expression | None) -> Bound:
    """The join of two relations, by the columns that the message names or by a condition."""
    using = [(_field(binder, left, name), _field(binder, right, name)) for name in message.using_columns]
    conditions = [call("==", reference(one.id), reference(other.id)) for one, other in using]
    if condition is not None:
        conditions += conjuncts(binder.expression(condition, left, right))
    if message.join_type == JoinProto.JOIN_TYPE_RIGHT_OUTER:
        found = joined(binder, right, left, "left", conditions)
        keys = [other for _, other in using]
        others = [one for one, _ in using]
        return _hiding(binder, found, [*keys, *_rest(left, others), *_rest(right, keys)], others)
    if message.join_type == JoinProto.JOIN_TYPE_FULL_OUTER:
        return _full(binder, left, right, conditions, using, [kind for _, kind in binder.analyze(message.left)])
    kind = KINDS[message.join_type]
    found = joined(binder, left, right, kind, conditions)
    if not using:
        return found
    keys, behind = [one for one, _ in using], [other for _, other in using]
    if kind not in ("inner", "left"):
        return binder.kept(found, [*keys, *_rest(left, keys)])
    return _hiding(binder, found, [*keys, *_rest(left, keys), *_rest(right, behind)], behind)


def _hiding(binder: Binder, found: Bound, fields: Sequence[Field], hidden: Sequence[Field]) -> Bound:
    """Some fields, with others behind them."""
    kept = binder.kept(found, [*fields, *hidden])
    return Bound(kept.node, tuple(fields), hidden=tuple(hidden))


def joined(binder: Binder, left: Bound, right: Bound, kind: JoinKind, conditions: Sequence[Expression]) -> Bound:
    """A join by bound conditions: those that compare a left with a right value are its keys."""
    pairs, others = [], []
    of_left, of_right = set(left.node.ids), set(right.node.ids)
    for each in conditions:
        found = pair(each, of_left, of_right)
        if found:
            pairs.append(found)
        else:
            others.append(each)
    left_fields, right_fields = left.fields, right.fields
    left, ones = binder.with_keys(left, [one for one, _ in pairs])
    right, twos = binder.with_keys(right, [two for _, two in pairs])
    columns = (*left.node.columns, *(right.node.columns if kind in ("inner", "left") else ()))
    keys = tuple(dict.fromkeys(zip(ones, twos, strict=True)))
    node = Join(columns, binder.where, left.node, right.node, kind, keys, all_of(others))
    return Bound(node, (*left_fields, *(right_fields if kind in ("inner", "left") else ())))


def conjuncts(expression: Expression) -> list[Expression]:
    """The conditions that a conjunction is made of."""
    if function(expression) != "and":
        return [expression]
    return [found for each in expression.unresolved_function.arguments for found in conjuncts(each)]


def pair(condition: Expression, left: set[str], right: set[str]) -> tuple[Expression, Expression] | None:
    """The left and the right side of an equality between two relations; one that takes nulls as equal is one of structs."""
    if function(condition) not in ("==", "=", "<=>"):
        return None
    one, other = condition.unresolved_function.arguments
    if function(condition) == "<=>":
        one, other = call("struct", alias(one, "of")), call("struct", alias(other, "of"))
    if references(one) and references(other):
        if references(one) <= left and references(other) <= right:
            return one, other
        if references(one) <= right and references(other) <= left:
            return other, one
    return None


def _field(binder: Binder, side: Bound, name: str) -> Field:
    found = side.find(name)
    if found is None:
        raise binder.refusal("UNRESOLVED_COLUMN", f"{name!r} is on one side of a join only")
    return found


def _rest(side: Bound, keys: Sequence[Field]) -> list[Field]:
    gone = {field.id for field in keys}
    return [field for field in side.fields if field.id not in gone]


def _full(
    binder: Binder,
    left: Bound,
    right: Bound,
    conditions: Sequence[Expression],
    using: Sequence[tuple[Field, Field]],
    kinds: Sequence[str],
) -> Bound:
    matched = joined(binder, left, right, "left", conditions)
    matched = binder.kept(matched, matched.fields)
    lonely = joined(binder, right, left, "anti", conditions)
    padded = binder.mapped(lonely, [*_nulls(binder, left, kinds), *_copies(binder, right)])
    whole = Bound(Union(matched.columns(), binder.where, matched.node, padded.node), matched.fields)
    if not using:
        return whole
    merged = []
    for one, other in using:
        made = binder.new(one.name)
        either = call("coalesce", reference(one.id), reference(other.id))
        merged.append((Output((made,), either), (Field(made.id, made.name),)))
    ones, twos = [one for one, _ in using], [other for _, other in using]
    others = [*_rest(left, ones), *_rest(right, twos)]
    kept = [(Output((Column(field.id, field.name),), reference(field.id)), (field,)) for field in (*others, *ones, *twos)]
    found = binder.mapped(whole, [*merged, *kept])
    return Bound(found.node, (*(field for _, (field,) in merged), *others), hidden=(*ones, *twos))


def _nulls(binder: Binder, side: Bound, kinds: Sequence[str]) -> Iterator[Made]:
    for field, kind in zip(side.fields, kinds, strict=True):
        made = binder.new(field.name)
        yield Output((made,), cast(null(), kind)), (replace(field, id=made.id),)


def _copies(binder: Binder, side: Bound) -> Iterator[Made]:
    for field in side.fields:
        made = binder.new(field.name)
        yield Output((made,), reference(field.id)), (replace(field, id=made.id),)
