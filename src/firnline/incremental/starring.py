"""Binding stars, and the names that columns give to fields of structs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental import functions
from firnline.incremental.expressions import function
from firnline.incremental.relation import alias, integer, project
from firnline.incremental.scope import Bound, Field, reference, split

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

BOUND = -1
"""The plan id of references that are bound already."""

Draft = tuple[tuple[str, ...] | None, Expression, Field | None]
"""Names, if the plan says them; a bound expression; the field that it passes on, if it is nothing but a column."""


def spread_stars(binder: Binder, expression: Expression, scopes: Sequence[Bound]) -> None:
    """Replace a star among a function's arguments; count of a star alone counts rows."""
    arguments = list(expression.unresolved_function.arguments)
    if not any(each.WhichOneof("expr_type") == "unresolved_star" for each in arguments):
        return
    del expression.unresolved_function.arguments[:]
    if function(expression) == "count" and len(arguments) == 1 and not expression.unresolved_function.is_distinct:
        expression.unresolved_function.arguments.append(integer(1))
        return
    for each in arguments:
        if each.WhichOneof("expr_type") != "unresolved_star":
            expression.unresolved_function.arguments.append(each)
            continue
        for field in _starred(binder, each, scopes):
            value = binder.already(reference(field.id))
            named = alias(value, field.name) if function(expression) in functions.NAMING else value
            expression.unresolved_function.arguments.append(named)


def keep_names(expression: Expression) -> None:
    """Columns that become fields of a struct keep the names by which they are called."""
    if function(expression) not in functions.NAMING:
        return
    for each in expression.unresolved_function.arguments:
        if each.WhichOneof("expr_type") == "unresolved_attribute" and each.unresolved_attribute.plan_id != BOUND:
            each.CopyFrom(alias(each, split(each.unresolved_attribute.unparsed_identifier)[-1]))


def _starred(binder: Binder, expression: Expression, scopes: Sequence[Bound]) -> list[Field]:
    star = expression.unresolved_star
    fields = [field for scope in scopes for field in scope.fields]
    if star.HasField("plan_id"):
        of_plan = {field.id for bound in binder.plans.get(star.plan_id, ()) for field in bound.fields}
        fields = [field for field in fields if field.id in of_plan]
    elif star.unparsed_target:
        alias = split(star.unparsed_target)[0].lower()
        fields = [field for field in fields if field.qualifier is not None and field.qualifier.lower() == alias]
    if not fields:
        raise binder.refusal("UNSUPPORTED_EXPRESSION", f"{star.unparsed_target!r} names no relation here")
    return fields


def star(binder: Binder, each: Expression, source: Bound, relation: Relation | None) -> list[Draft]:
    """All columns, those of a relation, or the fields of a struct."""
    target = each.unresolved_star.unparsed_target.removesuffix(".*")
    is_relation = any((field.qualifier or "").lower() == split(target)[0].lower() for field in source.fields)
    if not target or is_relation or relation is None or not relation.HasField("project"):
        return [((field.name,), reference(field.id), field) for field in _starred(binder, each, (source,))]
    whole = Expression()
    whole.unresolved_attribute.unparsed_identifier = target
    bound = binder.expression(whole, source)
    names = [name for name, _ in binder.analyze(project(relation.project.input, [each]))]
    of, *path = split(bound.unresolved_attribute.unparsed_identifier)
    return [((name,), reference(of, [*path, name]), None) for name in names]
