"""Binding unions, intersections and differences: both sides get the columns of the whole, in its order and under its types.

So equal values are equal rows on both sides, and a change of one side alone has the types of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Aggregate, Column, Output, SetKind, SetOperation, Union
from firnline.incremental.relation import cast, null
from firnline.incremental.scope import Bound, Field, Made, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

_INSIDE = re.compile(r"(`(?:[^`]|``)*`|\w+):")
"""The names of a struct's fields, in a type in DDL."""


def united(binder: Binder, relation: Relation) -> Bound:
    """A union, an intersection or a difference."""
    message = relation.set_op
    sides = [binder.bind(message.left_input), binder.bind(message.right_input)]
    whole = binder.analyze(relation)
    below = [[kind for _, kind in binder.analyze(each)] for each in (message.left_input, message.right_input)]
    types = [dict(zip((field.id for field in side.fields), kinds, strict=True)) for side, kinds in zip(sides, below, strict=True)]
    if message.by_name:
        chosen = [[_found(binder, side, name, message.allow_missing_columns) for name, _ in whole] for side in sides]
        for fields, kinds in zip(chosen, types, strict=True):
            _check_inside(binder, fields, kinds, whole)
    else:
        chosen = [list(side.fields) for side in sides]
    left, right = (_typed(binder, side, fields, kinds, whole) for side, fields, kinds in zip(sides, chosen, types, strict=True))
    if message.set_op_type == message.SET_OP_TYPE_UNION:
        bound = Bound(Union(left.columns(), binder.where, left.node, right.node), left.fields)
        return bound if message.is_all else distinct(binder, bound)
    columns = tuple(binder.new(name) for name in left.names)
    kind: SetKind = "intersect" if message.set_op_type == message.SET_OP_TYPE_INTERSECT else "except"
    node = SetOperation(columns, binder.where, left.node, right.node, kind, message.is_all)
    return Bound(node, tuple(Field(each.id, each.name) for each in columns))


def distinct(binder: Binder, source: Bound) -> Bound:
    """Every row once."""
    if source.node.ids != [field.id for field in source.fields]:
        source = binder.exactly(source)
    return Bound(Aggregate(source.columns(), binder.where, source.node, tuple(source.node.ids), ()), source.fields)


def _found(binder: Binder, side: Bound, name: str, is_optional: bool) -> Field | None:
    field = side.find(name)
    if field is None and not is_optional:
        raise binder.refusal("UNRESOLVED_COLUMN", f"{name!r} is on one side of a union only")
    return field


def _check_inside(
    binder: Binder, fields: Sequence[Field | None], kinds: Mapping[str, str], whole: Sequence[tuple[str, str]]
) -> None:
    """Refuse structs whose fields would have to be put in order by their names: a cast goes by their places."""
    for field, (name, kind) in zip(fields, whole, strict=True):
        if field is not None and _INSIDE.findall(kinds[field.id].lower()) != _INSIDE.findall(kind.lower()):
            what = f"a union by name in which {name!r} is a struct of other fields, or in another order"
            raise binder.refusal("UNSUPPORTED_OPERATOR", what)


def _typed(
    binder: Binder, side: Bound, fields: Sequence[Field | None], kinds: Mapping[str, str], whole: Sequence[tuple[str, str]]
) -> Bound:
    """A side with exactly the columns of the whole; null where it has none."""
    if len(fields) != len(whole):
        raise binder.refusal("UNSUPPORTED_OPERATOR", "a set operation of relations with different numbers of columns")
    outputs: list[Made] = []
    for field, (name, kind) in zip(fields, whole, strict=True):
        if field is not None and kinds[field.id] == kind:
            outputs.append((Output((Column(field.id, field.name),), reference(field.id)), (field,)))
            continue
        made = binder.new(name)
        value = reference(field.id) if field is not None else null()
        outputs.append((Output((made,), cast(value, kind)), (replace(field, id=made.id) if field else Field(made.id, name),)))
    return binder.mapped(replace(side, order=()), outputs)
