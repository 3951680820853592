"""Binding groups: keys become columns, and grouping sets and pivots become plain groups.

Grouping sets are the union of one aggregate per set. A pivot is one conditional aggregate per value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Aggregate as AggregateProto
from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental import functions
from firnline.incremental.algebra import Aggregate, Column, Output, Union
from firnline.incremental.expressions import function, identity, rewritten
from firnline.incremental.expressions import inner as inner_of
from firnline.incremental.relation import alias, call, cast, integer, null, project
from firnline.incremental.scope import Bound, Field, reference, split
from firnline.incremental.subqueries import has_subquery, valued

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


_NUMBERS = frozenset(["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"])


def aggregate(binder: Binder, relation: Relation, source: Bound) -> Bound:
    """Groups of a relation's rows, and what is computed of them."""
    message = relation.aggregate
    is_over = any(map(_has_value_over_groups, message.aggregate_expressions))
    if is_over and message.group_type != AggregateProto.GROUP_TYPE_PIVOT:
        return _beside_subqueries(binder, relation, source)
    source, expressions = _valued_inside(binder, source, list(message.grouping_expressions))
    source, aggregates = _valued_inside(binder, source, list(message.aggregate_expressions))
    grouping = binder.outputs(expressions, source, None if message.HasField("pivot") else relation)
    source, keys = binder.with_keys(source, [each.expression for each, _ in grouping])
    fields = [replace(named[0], id=key) for key, (_, named) in zip(keys, grouping, strict=True)]
    if message.group_type == AggregateProto.GROUP_TYPE_PIVOT:
        return _pivoted(binder, relation, source, fields)
    terms = [identity(each.expression) for each, _ in grouping]
    as_keys = {term: reference(field.id) for term, field in zip(terms, fields, strict=True)}
    made = _over_keys(_aggregates(binder, relation, aggregates, source, len(fields)), as_keys)
    if message.group_type == AggregateProto.GROUP_TYPE_GROUPBY:
        return grouped(binder, source, fields, made)
    kinds = [kind for _, kind in binder.analyze(relation)][: len(fields)]
    sets = _sets(binder, message, source, fields, terms)
    parts = [_part(binder, source, fields, terms, made, chosen, kinds) for chosen in sets]
    whole = parts[0]
    for part in parts[1:]:
        whole = Bound(Union(whole.columns(), binder.where, whole.node, part.node), whole.fields)
    return whole


def _beside_subqueries(binder: Binder, relation: Relation, source: Bound) -> Bound:
    """Aggregates in expressions with subqueries: the aggregates first, then the expressions over the groups."""
    calls: list[Expression] = []

    def made(call_: Expression) -> Expression:
        calls.append(call_)
        return call_

    given = list(relation.aggregate.aggregate_expressions)
    for each in given:
        _over_calls(each, made)
    inner = Relation()
    inner.CopyFrom(relation)
    del inner.aggregate.aggregate_expressions[:]
    names = [f"_firnline_aggregate_{number}" for number in range(len(calls))]
    inner.aggregate.aggregate_expressions.extend(alias(each, name) for each, name in zip(calls, names, strict=True))
    groups = aggregate(binder, inner, source)
    waiting = iter(groups.fields[len(groups.fields) - len(calls) :])
    keys = Bound(groups.node, groups.fields[: len(groups.fields) - len(calls)])
    found, over = keys, []
    for each in given:
        found, without = valued(binder, found, _over_calls(each, lambda _: binder.already(reference(next(waiting).id))))
        over.append(without)
    kept = [binder.already(reference(field.id)) for field in keys.fields]
    return binder.mapped(found, binder.outputs([*kept, *over], found, relation))


def _has_value_over_groups(expression: Expression) -> bool:
    """Whether a subquery, or logical time, is outside of all aggregates."""
    return has_subquery(_over_calls(expression, lambda _: null()))


def _over_calls(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A copy of an expression with its outermost aggregates changed, from left to right."""
    if function(expression) in functions.AGGREGATES:
        return change(expression)
    copy = Expression()
    copy.CopyFrom(expression)
    for below in list(inner_of(copy)):
        below.CopyFrom(_over_calls(below, change))
    return copy


def grouped(binder: Binder, source: Bound, keys: Sequence[Field], made: Sequence[Output]) -> Bound:
    """Plain groups."""
    unique = {field.id: field for field in keys}
    columns = (*(Column(field.id, field.name) for field in unique.values()), *(each.columns[0] for each in made))
    node = Aggregate(columns, binder.where, source.node, tuple(unique), tuple(made))
    fields = (*keys, *(Field(each.columns[0].id, each.columns[0].name) for each in made))
    return Bound(node, fields)


def _valued_inside(binder: Binder, source: Bound, expressions: Sequence[Expression]) -> tuple[Bound, list[Expression]]:
    """The source beside the values of subqueries inside of aggregates, and the aggregates with those instead."""
    found = []
    for each in expressions:
        source, each = valued(binder, source, each)
        found.append(each)
    return source, found


def _aggregates(binder: Binder, relation: Relation, expressions: Sequence[Expression], source: Bound, keys: int) -> list[Output]:
    names = None
    made = []
    for number, each in enumerate(expressions):
        name = each.alias.name[0] if each.WhichOneof("expr_type") == "alias" else None
        if each.WhichOneof("expr_type") == "unresolved_attribute":
            name = split(each.unresolved_attribute.unparsed_identifier)[-1]
        if name is None:
            names = names or binder.names(relation, keys + len(expressions))
            name = names[keys + number]
        expression = binder.expression(_unnamed(each), source)
        made.append(Output((binder.new(name),), expression))
    return made


def _over_keys(made: Sequence[Output], values: Mapping[bytes, Expression]) -> list[Output]:
    """The same with other expressions for what is grouped by, outside of aggregates."""

    def over(expression: Expression) -> Expression:
        if function(expression) in functions.AGGREGATES:
            return expression
        found = values.get(identity(expression))
        if found is None:
            for below in list(inner_of(expression)):
                below.CopyFrom(over(below))
        return expression if found is None else found

    return [replace(each, expression=over(each.expression)) for each in made]


def _sets(
    binder: Binder, message: AggregateProto, source: Bound, keys: Sequence[Field], terms: Sequence[bytes]
) -> list[tuple[Field, ...]]:
    if message.group_type == AggregateProto.GROUP_TYPE_ROLLUP:
        return [tuple(keys[:count]) for count in range(len(keys), -1, -1)]
    if message.group_type == AggregateProto.GROUP_TYPE_CUBE:
        return [chosen for count in range(len(keys), -1, -1) for chosen in combinations(keys, count)]
    has_alias = [each.WhichOneof("expr_type") == "alias" for each in message.grouping_expressions]
    known = {term for term, is_named in zip(terms, has_alias, strict=True) if not is_named}
    chosen = []
    for each in message.grouping_sets:
        wanted = {identity(binder.expression(one, source)) for one in each.grouping_set}
        if not wanted <= known:
            raise binder.refusal(
                "UNSUPPORTED_EXPRESSION", "a grouping set of something that is grouped by under an alias, or not at all"
            )
        chosen.append(tuple(field for field, term in zip(keys, terms, strict=True) if term in wanted))
    return chosen


def _unnamed(expression: Expression) -> Expression:
    return expression.alias.expr if expression.WhichOneof("expr_type") == "alias" else expression


def _part(
    binder: Binder,
    source: Bound,
    keys: Sequence[Field],
    terms: Sequence[bytes],
    made: Sequence[Output],
    chosen: Sequence[Field],
    kinds: Sequence[str],
) -> Bound:
    """The groups of one grouping set, with nulls for the keys that are not in it.

    Of nothing there is no row, not even of the set without keys: so Spark has it, unlike for plain groups without keys.
    """
    ids = {field.id for field in chosen}
    if not chosen:
        source, made_up = binder.with_keys(source, [integer(0)])
        chosen = [Field(key, "_key") for key in made_up]

    def settled(expression: Expression) -> Expression:
        name = function(expression)
        if name == "grouping":
            (argument,) = map(identity, expression.unresolved_function.arguments)
            if argument not in terms:
                raise binder.refusal("UNSUPPORTED_EXPRESSION", "grouping() of something that is not grouped by")
            return cast(integer(0 if keys[terms.index(argument)].id in ids else 1), "tinyint")
        if name == "grouping_id":
            bits = [0 if field.id in ids else 1 for field in keys]
            return integer(sum(bit << place for place, bit in enumerate(reversed(bits))))
        return expression

    nulls = {identity(reference(of.id)): cast(null(), kind) for of, kind in zip(keys, kinds, strict=True) if of.id not in ids}
    settled_ = [Output((binder.new(each.columns[0].name),), rewritten(each.expression, settled)) for each in made]
    columns = _over_keys(settled_, nulls)
    groups = grouped(binder, source, chosen, columns)
    outputs = []
    for field, kind in zip(keys, kinds, strict=True):
        new = binder.new(field.name)
        value = reference(field.id) if field.id in ids else cast(null(), kind)
        outputs.append((Output((new,), value), (Field(new.id, new.name),)))
    for each in columns:
        found = each.columns[0]
        outputs.append((Output((found,), reference(found.id)), (Field(found.id, found.name),)))
    return binder.mapped(groups, outputs)


def _pivoted(binder: Binder, relation: Relation, source: Bound, keys: Sequence[Field]) -> Bound:
    message = relation.aggregate
    if not message.pivot.values:
        raise binder.refusal("PIVOT_WITHOUT_VALUES", "its columns would depend on the data")
    columns = binder.analyze(relation)[len(keys) :]
    # Spark groups by the pivot's column first, so that nothing is null, but only if it can keep all answers in arrays of numbers.
    is_null_of_none = all(kind.split("(")[0] in _NUMBERS for _, kind in columns)
    on = binder.expression(message.pivot.col, source)
    ((_, kind),) = binder.analyze(project(message.input, [message.pivot.col]))
    made: list[Output] = []
    for value in message.pivot.values:
        literal = Expression()
        literal.literal.CopyFrom(value)
        is_there = call("<=>", on, cast(literal, kind))
        for each in message.aggregate_expressions:
            expression = binder.expression(_unnamed(each), source)
            found = rewritten(expression, partial(_only, condition=is_there))
            if is_null_of_none:
                found = call("when", call(">", call("count_if", is_there), integer(0)), found)
            made.append(Output((binder.new(columns[len(made)][0]),), found))
    return grouped(binder, source, keys, made)


def _only(expression: Expression, condition: Expression) -> Expression:
    """An aggregate over the rows for which a condition holds: all aggregates pass over nulls."""
    if function(expression) not in functions.AGGREGATES:
        return expression
    arguments = expression.unresolved_function.arguments
    for each in arguments[: 2 if function(expression) in functions.OF_PAIRS else 1]:
        each.CopyFrom(call("when", condition, each))
    return expression
