"""Whether a subquery has rows, as a value: EXISTS is true or false, IN may be unknown.

By equalities: a left join with the distinct keys of the subquery, which are marked. By other conditions: the rows with a match
and the rows without, each marked. Neither changes how often a row outside is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression

from firnline.incremental.algebra import Aggregate, Column, Map, Node, Output, Union
from firnline.incremental.correlation import Pulled
from firnline.incremental.joining import joined, pair
from firnline.incremental.relation import boolean, call, column, integer
from firnline.incremental.scope import Bound, Field, plainly, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


def existing(binder: Binder, source: Bound, inner: Pulled, more: Sequence[Expression] = ()) -> tuple[Bound, Expression]:
    """The source beside whether the subquery has a row there, for which further conditions are true."""
    return _marked(binder, source, inner.bound, [*inner.conditions, *more])


def contained(
    binder: Binder, source: Bound, inner: Pulled, values: Sequence[Expression], fields: Sequence[Field]
) -> tuple[Bound, Expression]:
    """The source beside whether values are among the rows: unknown where a null might be an equal one."""
    equal = equalities(values, fields)
    found, is_there = existing(binder, source, inner, equal)
    if len(values) == 1 and _are_pairs(source, inner.bound, inner.conditions):
        found, may_be = _of_nulls(binder, found, inner, values[0], fields[0])
    else:
        unknown = [call("coalesce", each, boolean(True)) for each in equal]
        found, may_be = _marked(binder, found, inner.bound, [*inner.conditions, *unknown])
    return found, call("when", is_there, boolean(True), call("not", may_be), boolean(False))


def equalities(values: Sequence[Expression], fields: Sequence[Field]) -> list[Expression]:
    """Whether values are equal to those of a row."""
    return [call("==", value, reference(field.id)) for value, field in zip(values, fields, strict=True)]


def _are_pairs(source: Bound, right: Bound, conditions: Sequence[Expression]) -> bool:
    return all(pair(each, set(source.node.ids), set(right.node.ids)) for each in conditions)


def _marked(binder: Binder, source: Bound, right: Bound, conditions: Sequence[Expression]) -> tuple[Bound, Expression]:
    if not conditions:
        count = Output((binder.new("count"),), call("count", integer(1)))
        found, (counted,) = _beside(binder, source, right, (), [count])
        return found, call(">", counted, integer(0))
    if _are_pairs(source, right, conditions):
        found, (mark,) = _beside(binder, source, right, conditions, [Output((binder.new("mark"),), boolean(True))])
        return found, call("isNotNull", mark)
    made, columns = binder.new("mark"), source.node.columns
    match = _with_mark(joined(binder, source, right, "semi", conditions).node, columns, made, is_there=True)
    none = _with_mark(joined(binder, source, right, "anti", conditions).node, columns, made, is_there=False)
    both = Union(match.columns, binder.where, match, none)
    return Bound(both, source.fields, source.order), reference(made.id)


def _with_mark(node: Node, columns: Sequence[Column], mark: Column, *, is_there: bool) -> Node:
    kept = (Output((of,), column(of.id)) for of in columns)
    return Map((*columns, mark), node.where, node, (*kept, Output((mark,), boolean(is_there))))


def _of_nulls(binder: Binder, source: Bound, inner: Pulled, value: Expression, field: Field) -> tuple[Bound, Expression]:
    """Whether something on either side is null, so that a value without an equal may yet be there."""
    rows = Output((binder.new("rows"),), call("count", integer(1)))
    nulls = Output((binder.new("nulls"),), call("count_if", call("isNull", reference(field.id))))
    found, (some, missing) = _beside(binder, source, inner.bound, inner.conditions, [rows, nulls])
    there, unknown = (call(">", call("coalesce", each, integer(0)), integer(0)) for each in (some, missing))
    return found, call("or", unknown, call("and", there, call("isNull", value)))


def _beside(
    binder: Binder, source: Bound, right: Bound, conditions: Sequence[Expression], aggregates: Sequence[Output]
) -> tuple[Bound, list[Expression]]:
    """The source beside one row for each key of the right, if there is one, with aggregates or constants."""
    sides = [pair(each, set(source.node.ids), set(right.node.ids)) for each in conditions]
    right, keys = binder.with_keys(right, [each[1] for each in sides if each])
    known = {of.id: of for of in right.node.columns}
    fresh = {key: binder.new(known[key].name) for key in dict.fromkeys(keys)}  # the same keys may stand beside a row twice
    sums = tuple(each for each in aggregates if each.expression.HasField("unresolved_function"))
    summed = (*(known[key] for key in fresh), *(each.columns[0] for each in sums))
    outputs = (
        *(Output((to,), column(key)) for key, to in fresh.items()),
        *(Output(each.columns, column(each.columns[0].id)) if each in sums else each for each in aggregates),
    )
    below = Aggregate(summed, binder.where, right.node, tuple(fresh), sums)
    groups = Map(tuple(each.columns[0] for each in outputs), binder.where, below, outputs)
    equal = [call("==", each[0], reference(fresh[key].id)) for each, key in zip(sides, keys, strict=True) if each]
    found = joined(binder, source, plainly(groups), "left" if equal else "inner", equal)
    return Bound(found.node, source.fields, source.order), [reference(each.columns[0].id) for each in aggregates]
