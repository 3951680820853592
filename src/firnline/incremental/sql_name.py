"""Columns, stars, fields and aliases of SQL expressions. Names stay unresolved: Spark resolves them as it does for SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import MappingProxyType

from pyspark.sql.connect.proto import Expression
from sqlglot import exp

from firnline.incremental.relation import alias
from firnline.incremental.sql_literal import string
from firnline.incremental.sql_scope import Rule, Scope, only, shown
from firnline.incremental.sql_syntax import opaque


def identifier(parts: Sequence[exp.Expression]) -> str:
    """Dotted parts as Connect reads them, quoted where needed."""
    return ".".join("`" + part.name.replace("`", "``") + "`" if _needs_quotes(part) else part.name for part in parts)


def _needs_quotes(part: exp.Expression) -> bool:
    return not part.name.isidentifier() or not part.name.isascii()


def _column(node: exp.Expression, scope: Scope) -> Expression:
    parts = [part for part in (node.args.get(key) for key in ("catalog", "db", "table", "this")) if part is not None]
    only(node, "catalog", "db", "table", "this")
    if isinstance(node.this, exp.Star):
        return _star(node.this, scope, parts[:-1])
    first = parts[0].name.lower()
    if first in scope.variables:
        return reduce(_field, parts[1:], variable(parts[0].name))
    if len(parts) > 1 and first in scope.views:
        parts = parts[1:]
    expression = Expression()
    expression.unresolved_attribute.unparsed_identifier = identifier(parts)
    return expression


def _star(node: exp.Expression, scope: Scope, qualifier: Sequence[exp.Expression] = ()) -> Expression:
    only(node)
    expression = Expression()
    expression.unresolved_star.SetInParent()
    if qualifier:
        if qualifier[0].name.lower() in scope.views:
            raise opaque("all columns of a LATERAL VIEW")
        expression.unresolved_star.unparsed_target = identifier(qualifier) + ".*"
    return expression


def _identifier(node: exp.Expression, scope: Scope) -> Expression:
    if node.name.lower() in scope.variables:
        return variable(node.name)
    return _column(exp.Column(this=node.copy()), scope)


def variable(name: str) -> Expression:
    """A variable of a lambda function."""
    expression = Expression()
    expression.unresolved_named_lambda_variable.name_parts.append(name)
    return expression


def _field(parent: Expression, name: exp.Expression) -> Expression:
    expression = Expression()
    expression.unresolved_extract_value.child.CopyFrom(parent)
    expression.unresolved_extract_value.extraction.CopyFrom(string(name.name))
    return expression


def _dot(node: exp.Expression, scope: Scope) -> Expression:
    parent, name = node.this, node.expression
    if isinstance(name, exp.Star):
        raise opaque("all fields of a struct that is no column")
    if not isinstance(name, exp.Identifier):
        raise opaque(f"a function in a namespace: {shown(node)}")
    outer = scope.expression(parent)
    if outer.WhichOneof("expr_type") == "unresolved_attribute":
        outer.unresolved_attribute.unparsed_identifier += "." + identifier([name])
        return outer
    return _field(outer, name)


def _bracket(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "expressions")
    if len(node.expressions) != 1:
        raise opaque(f"several subscripts: {shown(node)}")
    expression = Expression()
    expression.unresolved_extract_value.child.CopyFrom(scope.expression(node.this))
    expression.unresolved_extract_value.extraction.CopyFrom(scope.expression(node.expressions[0]))
    return expression


def _alias(node: exp.Expression, scope: Scope) -> Expression:
    return alias(scope.expression(node.this), node.alias)


def _aliases(node: exp.Expression, scope: Scope) -> Expression:
    names = [name.name for name in node.expressions]
    expression = alias(scope.expression(node.this), names[0])
    expression.alias.name.extend(names[1:])
    return expression


RULES: MappingProxyType[type[exp.Expression], Rule] = MappingProxyType(
    {
        exp.Alias: _alias,
        exp.Aliases: _aliases,
        exp.Bracket: _bracket,
        exp.Column: _column,
        exp.Dot: _dot,
        exp.Identifier: _identifier,
        exp.Star: _star,
    }
)
