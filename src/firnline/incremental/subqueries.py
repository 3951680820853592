"""Subqueries become joins: EXISTS and IN semi joins, their negations anti joins, a scalar subquery a left join with its one row.

Where EXISTS or IN is not a condition of its own but part of an expression, it is a value (``presence``). What a subquery refers
to outside of it is settled first (``correlation``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression, Relation, SubqueryExpression
from pyspark.sql.connect.proto import Join as JoinProto

from firnline.incremental.algebra import Aggregate, Constant, Filter, Input, Map, Node, Output, Top, changed, free
from firnline.incremental.correlation import is_one_row, pulled
from firnline.incremental.expressions import function, references, rewritten, walk
from firnline.incremental.joining import KINDS, conjuncts, join, joined
from firnline.incremental.ordering import ordered
from firnline.incremental.presence import contained, equalities, existing
from firnline.incremental.relation import all_of, boolean, call, cast, column, integer, text
from firnline.incremental.scope import Bound, Field, plainly, reference
from firnline.incremental.spreading import of_nothing
from firnline.model.names import EPOCH_TIME

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

_EXISTS = SubqueryExpression.SUBQUERY_TYPE_EXISTS
_IN = SubqueryExpression.SUBQUERY_TYPE_IN
_SCALAR = SubqueryExpression.SUBQUERY_TYPE_SCALAR


def filtered(binder: Binder, source: Bound, condition: Expression) -> Bound:
    """The rows for which a condition that has subqueries is true; still with the fields of the source."""
    rest = []
    found = source
    for each in conjuncts(condition):
        is_not = function(each) == "not"
        inside = each.unresolved_function.arguments[0] if is_not else each
        kind = inside.subquery_expression.subquery_type if _is_subquery(inside) else None
        if kind in (_EXISTS, _IN) and not any(map(has_subquery, inside.subquery_expression.in_subquery_values)):
            found = _matched(binder, found, inside, is_not=is_not)
        else:
            rest.append(each)
    for each in rest:
        found, without = valued(binder, found, each, is_condition=True)
        found = ordered(binder, found, binder.expression(without, found))
    return Bound(found.node, source.fields, source.order)


def valued(binder: Binder, source: Bound, expression: Expression, *, is_condition: bool = False) -> tuple[Bound, Expression]:
    """The source beside the value of every subquery of an expression, and logical time, and the expression with those instead.

    In a condition IN may be unknown. Elsewhere it is as in Spark, which has no third value there: IN and NOT IN are false then.
    """
    (found,), without = _valued_at(binder, [source], expression, is_condition=is_condition)
    return found, without


def _valued_at(
    binder: Binder, sides: Sequence[Bound], expression: Expression, *, is_condition: bool
) -> tuple[list[Bound], Expression]:
    """The same where names may mean columns of several relations: a value is beside the one that it depends on."""
    found = list(sides)
    negated = [each.unresolved_function.arguments[0] for each in walk(expression) if function(each) == "not"]
    unknown: list[tuple[Expression, Expression]] = []

    def replaced(each: Expression) -> Expression:
        if is_time(each):
            time = binder.new("time")
            right = Bound(Input((time,), binder.where, EPOCH_TIME), (Field(time.id, time.name),))
            found[0] = Bound(joined(binder, found[0], right, "inner", []).node, sides[0].fields, sides[0].order)
            return binder.already(reference(time.id))
        if function(each) == "not":
            certain = next((of for to, of in unknown if to == each.unresolved_function.arguments[0]), None)
            return each if certain is None else call("coalesce", call("not", certain), boolean(False))
        if not _is_subquery(each):
            return each
        message = each.subquery_expression
        outside = Bound(found[0].node, tuple(field for side in found for field in side.fields))
        values = [binder.expression(value, outside) for value in message.in_subquery_values]
        inner = binder.subquery(message.plan_id, outside)
        read = free(inner.node).union(*map(references, values))
        at = next((number for number, side in enumerate(found) if read <= set(side.node.ids)), 0 if len(found) == 1 else None)
        if at is None:
            raise binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery about both sides of an outer join")
        if message.subquery_type == _SCALAR:
            found[at], value = _scalar(binder, found[at], inner)
        elif message.subquery_type == _EXISTS:
            found[at], value = existing(binder, found[at], pulled(binder, found[at], inner.node))
        elif message.subquery_type == _IN:
            rows = pulled(binder, found[at], inner.node)
            if not is_condition and each not in negated:
                found[at], value = existing(binder, found[at], rows, equalities(values, inner.fields))
            else:
                found[at], value = contained(binder, found[at], rows, values, inner.fields)
            if not is_condition and each in negated:
                certain, value = binder.already(value), call("coalesce", value, boolean(False))
                unknown.append((binder.already(value), certain))
        else:
            raise binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery that is neither scalar nor EXISTS nor IN")
        return binder.already(value)

    without = rewritten(expression, replaced)
    return found, without


def joined_by(binder: Binder, relation: Relation) -> Bound:
    """A join; subqueries in its condition filter the rows of an inner one, and are values of a side of an outer one."""
    message = relation.join
    left, right = binder.bind(message.left), binder.bind(message.right)
    if not has_subquery(message.join_condition):
        return join(binder, message, left, right, message.join_condition if message.HasField("join_condition") else None)
    if message.join_type in (JoinProto.JOIN_TYPE_INNER, JoinProto.JOIN_TYPE_CROSS):
        conditions = conjuncts(message.join_condition)
        found = join(binder, message, left, right, all_of([each for each in conditions if not has_subquery(each)]))
        rest = all_of([each for each in conditions if has_subquery(each)])
        assert rest is not None
        return filtered(binder, found, rest)
    (left, right), condition = _valued_at(binder, (left, right), message.join_condition, is_condition=True)
    return join(binder, message, left, right, condition)


def lateral(binder: Binder, relation: Relation) -> Bound:
    """The rows of the left, each with the rows that the right has there."""
    message = relation.lateral_join
    left = binder.bind(message.left)
    right = binder.inside(message.right, left)
    kind = KINDS[message.join_type]
    conditions = conjuncts(binder.expression(message.join_condition, left, right)) if message.HasField("join_condition") else []
    fields = (*left.fields, *right.fields)
    if kind == "inner" and _is_of_one_row(right.node):
        found = Bound(_over(left.node, right.node), fields)
        condition = all_of(conditions)
        return ordered(binder, found, condition) if condition is not None else found
    inner = pulled(binder, left, right.node)
    return joined(binder, left, Bound(inner.node, right.fields), kind, [*inner.conditions, *conditions])


def _is_of_one_row(node: Node) -> bool:
    """Whether rows are made of nothing but the one row that a SELECT without FROM reads."""
    if isinstance(node, Map | Filter):
        return _is_of_one_row(node.input)
    return isinstance(node, Constant) and node.relation.HasField("range") and node.relation.range.end == 1


def _over(left: Node, node: Node) -> Node:
    """The same of every row of the left, beside it."""
    if not isinstance(node, Map | Filter):
        return left
    below = _over(left, node.input)
    if isinstance(node, Filter):
        return changed(node, columns=below.columns, input=below)
    kept = tuple(Output((of,), column(of.id)) for of in left.columns)
    return changed(node, columns=(*left.columns, *node.columns), input=below, outputs=(*kept, *node.outputs))


def has_subquery(expression: Expression) -> bool:
    """Whether a subquery, or logical time, is somewhere in it."""
    return any(_is_subquery(each) or is_time(each) for each in walk(expression))


def is_time(expression: Expression) -> bool:
    """Whether it is logical time: a value that changes from epoch to epoch without any input."""
    return expression.WhichOneof("expr_type") == "alias" and list(expression.alias.name) == [EPOCH_TIME]


def _is_subquery(expression: Expression) -> bool:
    return expression.WhichOneof("expr_type") == "subquery_expression"


def _matched(binder: Binder, source: Bound, expression: Expression, *, is_not: bool) -> Bound:
    """The rows for which a subquery has a row, or none."""
    message = expression.subquery_expression
    values = [binder.expression(each, source) for each in message.in_subquery_values]
    inner = binder.subquery(message.plan_id, source)
    equal = equalities(values, inner.fields) if values else []
    found = pulled(binder, source, inner.node)
    right = found.bound
    if not is_not:
        return joined(binder, source, right, "semi", [*found.conditions, *equal])
    if not values:
        return joined(binder, source, right, "anti", found.conditions)
    if len(values) == 1 and not found.conditions:
        return _not_in(binder, source, right, values[0], equal[0], inner.fields[0])
    # A comparison with null is neither true nor false: then a row is not known to be absent, and goes.
    unknown = [call("coalesce", each, boolean(True)) for each in equal]
    return joined(binder, source, right, "anti", [*found.conditions, *unknown])


def _not_in(binder: Binder, source: Bound, right: Bound, value: Expression, equal: Expression, field: Field) -> Bound:
    """NOT IN by an equality: without a match, nor a null on the right, nor a null on the left while the right has any row."""
    found = joined(binder, source, right, "anti", [equal])
    missing = Filter(right.node.columns, binder.where, right.node, call("isNull", reference(field.id)))
    found = joined(binder, found, _some(binder, missing), "anti", [])
    return joined(binder, found, _some(binder, right.node), "anti", [call("isNull", value)])


def _some(binder: Binder, node: Node) -> Bound:
    """One row if there is any, else none."""
    count = binder.new("count")
    counted = Aggregate((count,), binder.where, node, (), (Output((count,), call("count", integer(1))),))
    positive = Filter((count,), binder.where, counted, call(">", column(count.id), integer(0)))
    return Bound(positive, (Field(count.id, count.name),))


def _scalar(binder: Binder, source: Bound, inner: Bound) -> tuple[Bound, Expression]:
    """The source beside the one value of a subquery."""
    value, node = inner.fields[0].id, inner.node
    if not _is_single(node):
        return _only_one(binder, source, value, node)
    found = pulled(binder, source, node, is_lossy=True)
    if not found.conditions:
        beside = joined(binder, source, found.bound, "inner" if is_one_row(node) else "left", [])
        return Bound(beside.node, source.fields, source.order), reference(value)
    beside = joined(binder, source, found.bound, "left", found.conditions)
    answer = reference(value)
    nothing = None if found.is_whole else of_nothing(node, value)
    if nothing is not None:
        keys = references(found.conditions[0]) & set(found.node.ids)
        is_there = call("isNotNull", reference(next(iter(keys))))
        answer = call("when", is_there, answer, nothing)
    return Bound(beside.node, source.fields, source.order), answer


def _is_single(node: Node) -> bool:
    """Whether there is one row at most."""
    if isinstance(node, Map | Filter):
        return _is_single(node.input)
    return (isinstance(node, Aggregate) and not node.keys) or (isinstance(node, Top) and node.limit == 1)


def _only_one(binder: Binder, source: Bound, value: str, node: Node) -> tuple[Bound, Expression]:
    """The source beside the value of the one row there may be; several are an error for a row that meets them, as in Spark."""
    made, count = binder.new("value"), binder.new("count")
    outputs = (Output((made,), call("max", reference(value))), Output((count,), call("count", integer(1))))
    found, answer = _scalar(binder, source, plainly(Aggregate((made, count), binder.where, node, (), outputs)))
    # A value from outside in the message keeps Spark from asking this of rows that nobody meets.
    places = [call("coalesce", cast(reference(of), "string"), text("null")) for of in sorted(free(node))]
    several = call("raise_error", call("concat_ws", text(" "), text("a subquery used as a value has more than one row"), *places))
    return found, call("if", call(">", reference(count.id), integer(1)), several, answer)
