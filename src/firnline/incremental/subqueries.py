"""Subqueries become joins: EXISTS and IN semi joins, their negations anti joins, a scalar subquery a left join with its one row.

A condition inside a subquery that refers to rows outside is pulled up to the join. Under an aggregate that works for equalities:
the inner side becomes a key of the groups, and a row outside without a group gets what the aggregate gives of no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression, SubqueryExpression

from firnline.incremental import functions
from firnline.incremental.algebra import Aggregate, Filter, Input, Join, Map, Node, Output, Top, changed
from firnline.incremental.expressions import function, plain, references, rewritten, walk
from firnline.incremental.joining import conjuncts, joined
from firnline.incremental.ordering import ordered
from firnline.incremental.relation import all_of, call, column, integer, null
from firnline.incremental.scope import Bound, Field, reference
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
        if kind in (_EXISTS, _IN):
            found = _matched(binder, found, inside, is_not=is_not)
        else:
            rest.append(each)
    for each in rest:
        found, without = valued(binder, found, each)
        found = ordered(binder, found, binder.expression(without, found))
    return Bound(found.node, source.fields, source.order)


def valued(binder: Binder, source: Bound, expression: Expression) -> tuple[Bound, Expression]:
    """The source beside every scalar subquery of an expression, and logical time, and the expression with those instead."""
    found = source

    def replaced(each: Expression) -> Expression:
        nonlocal found
        if is_time(each):
            time = binder.new("time")
            right = Bound(Input((time,), binder.where, EPOCH_TIME), (Field(time.id, time.name),))
            found = Bound(joined(binder, found, right, "inner", []).node, source.fields, source.order)
            return binder.already(reference(time.id))
        if not _is_subquery(each):
            return each
        if each.subquery_expression.subquery_type != _SCALAR:
            raise binder.refusal("UNSUPPORTED_EXPRESSION", "EXISTS or IN with a subquery, other than as a condition of its own")
        found, value = _scalar(binder, found, each)
        return binder.already(value)

    without = rewritten(expression, replaced)
    return found, without


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
    equal = [call("==", value, reference(field.id)) for value, field in zip(values, inner.fields, strict=bool(values))]
    pulled = _pulled(binder, inner.node)
    right = Bound(pulled.node, tuple(Field(of.id, of.name) for of in pulled.node.columns))
    if not is_not:
        return joined(binder, source, right, "semi", [*pulled.conditions, *equal])
    if not values:
        return joined(binder, source, right, "anti", pulled.conditions)
    if len(values) == 1 and not pulled.conditions:
        return _not_in(binder, source, right, values[0], equal[0], inner.fields[0])
    # A comparison with null is neither true nor false: then a row is not known to be absent, and goes.
    unknown = [call("coalesce", each, call("isNull", null())) for each in equal]
    return joined(binder, source, right, "anti", [*pulled.conditions, *unknown])


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


def _scalar(binder: Binder, source: Bound, expression: Expression) -> tuple[Bound, Expression]:
    """The source beside the one value of a subquery."""
    inner = binder.subquery(expression.subquery_expression.plan_id, source)
    if not _is_single(inner.node):
        raise binder.refusal("UNSUPPORTED_EXPRESSION", "a scalar subquery that may have several rows")
    value = inner.fields[0].id
    pulled = _pulled(binder, inner.node)
    right = Bound(pulled.node, tuple(Field(of.id, of.name) for of in pulled.node.columns))
    if not pulled.conditions:
        is_always = _is_aggregate(inner.node)
        found = joined(binder, source, right, "inner" if is_always else "left", [])
        return Bound(found.node, source.fields, source.order), reference(value)
    found = joined(binder, source, right, "left", pulled.conditions)
    answer = reference(value)
    nothing = _of_nothing(inner.node, value)
    if nothing is not None:
        keys = references(pulled.conditions[0]) & set(pulled.node.ids)
        is_there = call("isNotNull", reference(next(iter(keys))))
        answer = call("when", is_there, answer, nothing)
    return Bound(found.node, source.fields, source.order), answer


def _is_single(node: Node) -> bool:
    """Whether there is one row at most."""
    if isinstance(node, Map | Filter):
        return _is_single(node.input)
    return (isinstance(node, Aggregate) and not node.keys) or (isinstance(node, Top) and node.limit == 1)


def _is_aggregate(node: Node) -> bool:
    return _is_aggregate(node.input) if isinstance(node, Map) else isinstance(node, Aggregate)


def _of_nothing(node: Node, value: str) -> Expression | None:
    """What a column of a global aggregate is without any row; None for null."""
    if isinstance(node, Map):
        expression = next(each.expression for each in node.outputs if each.columns[0].id == value)
        below = {of: _of_nothing(node.input, of) for of in references(expression)}
        if all(each is None for each in below.values()) and plain(expression):
            return None
        return rewritten(expression, lambda each: below.get(plain(each) or "", each) or null() if plain(each) in below else each)
    if not isinstance(node, Aggregate):
        return None
    expression = next(each.expression for each in node.aggregates if each.columns[0].id == value)
    calls = {function(each) for each in walk(expression) if function(each) in functions.AGGREGATES}
    if calls.isdisjoint({"count", "count_if"}) and function(expression) in functions.AGGREGATES:
        return None

    def settled(each: Expression) -> Expression:
        if function(each) in ("count", "count_if"):
            return integer(0)
        return null() if function(each) in functions.AGGREGATES else each

    return rewritten(expression, settled)


@dataclass(frozen=True)
class _Pulled:
    """A node without the conditions that refer to rows outside, and those conditions over its columns."""

    node: Node
    conditions: Sequence[Expression]


def _pulled(binder: Binder, node: Node) -> _Pulled:
    if not _free(node):
        return _Pulled(node, ())
    match node:
        case Filter():
            below = _pulled(binder, node.input)
            own, outside = _parted(conjuncts(node.condition), below.node.ids)
            kept = changed(node, columns=below.node.columns, input=below.node, condition=all_of(own)) if own else below.node
            return _Pulled(kept, [*below.conditions, *outside])
        case Map():
            below = _pulled(binder, node.input)
            if any(references(each.expression) - set(below.node.ids) for each in node.outputs):
                raise binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery that computes with columns from outside")
            needed = {of for each in below.conditions for of in references(each)} - set(node.ids)
            hidden = tuple(of for of in below.node.columns if of.id in needed)
            outputs = (*node.outputs, *(Output((of,), column(of.id)) for of in hidden))
            return _Pulled(changed(node, columns=(*node.columns, *hidden), input=below.node, outputs=outputs), below.conditions)
        case Join(kind="inner"):
            left, right = _pulled(binder, node.left), _pulled(binder, node.right)
            columns = (*left.node.columns, *right.node.columns)
            own, outside = _parted(conjuncts(node.condition) if node.condition else [], [of.id for of in columns])
            joined_ = changed(node, columns=columns, left=left.node, right=right.node, condition=all_of(own))
            return _Pulled(joined_, [*left.conditions, *right.conditions, *outside])
        case Aggregate():
            return _grouped(binder, node)
    raise binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery that refers to rows outside below another operator than a filter")


def _grouped(binder: Binder, node: Aggregate) -> _Pulled:
    """An aggregate per value of what the outside is compared with."""
    below = _pulled(binder, node.input)
    keys: list[Expression] = []
    for each in below.conditions:
        sides = list(each.unresolved_function.arguments) if function(each) in ("==", "=") else []
        inside = [side for side in sides if references(side) and references(side) <= set(below.node.ids)]
        if len(inside) != 1:
            raise binder.refusal("UNSUPPORTED_EXPRESSION", "an aggregate in a subquery with another comparison than equality")
        keys.append(inside[0])
    source = Bound(below.node, tuple(Field(of.id, of.name) for of in below.node.columns))
    source, ids = binder.with_keys(source, keys)
    known = {of.id: of for of in source.node.columns}
    extra = tuple(known[of] for of in dict.fromkeys(ids) if of not in node.keys)
    conditions = []
    for each, key, of in zip(below.conditions, keys, ids, strict=True):
        one, other = each.unresolved_function.arguments
        conditions.append(call("==", reference(of), other if one == key else one))
    grouped = changed(node, columns=(*node.columns, *extra), input=source.node, keys=(*node.keys, *(of.id for of in extra)))
    return _Pulled(grouped, conditions)


def _parted(conditions: Sequence[Expression], ids: Sequence[str]) -> tuple[list[Expression], list[Expression]]:
    own = [each for each in conditions if references(each) <= set(ids)]
    return own, [each for each in conditions if not references(each) <= set(ids)]


def _free(node: Node) -> bool:
    """Whether something in the tree refers to columns that are not of it."""
    read: set[str] = set()
    match node:
        case Filter():
            read = references(node.condition)
        case Map():
            read = {of for each in node.outputs for of in references(each.expression)}
        case Join():
            read = references(node.condition) if node.condition else set()
        case Aggregate():
            read = {of for each in node.aggregates for of in references(each.expression)}
    known = {of for below in node.inputs for of in below.ids}
    return bool(read - known) or any(_free(below) for below in node.inputs)
