"""Operators, predicates, CASE and subqueries of SQL expressions, under the names that Connect's Column gives them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from types import MappingProxyType

from pyspark.sql.connect.proto import Expression, SubqueryExpression
from sqlglot import exp

from firnline.incremental.relation import boolean, call
from firnline.incremental.sql_literal import number, typed
from firnline.incremental.sql_scope import Rule, Scope, only, shown
from firnline.incremental.sql_syntax import TypedLiteral, opaque

BINARY: MappingProxyType[type[exp.Expression], str] = MappingProxyType(
    {
        exp.Add: "+",
        exp.Sub: "-",
        exp.Mul: "*",
        exp.Div: "/",
        exp.Mod: "%",
        exp.IntDiv: "div",
        exp.EQ: "==",
        exp.NullSafeEQ: "<=>",
        exp.GT: ">",
        exp.GTE: ">=",
        exp.LT: "<",
        exp.LTE: "<=",
        exp.BitwiseAnd: "&",
        exp.BitwiseOr: "|",
        exp.BitwiseXor: "^",
        exp.BitwiseLeftShift: "<<",
        exp.RegexpLike: "rlike",
        exp.DPipe: "concat",
    }
)
NEGATED: MappingProxyType[type[exp.Expression], str] = MappingProxyType({exp.NEQ: "==", exp.NullSafeNEQ: "<=>"})
COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
PREDICATES = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)
# Longer chains are balanced: protobuf refuses deep nesting.
LONGEST_CHAIN = 8


def _operands(node: exp.Expression, scope: Scope) -> tuple[Expression, Expression]:
    if isinstance(node, COMPARISONS) and isinstance(node.expression, PREDICATES):
        raise opaque(f"a comparison with a predicate that needs parentheses: {shown(node)}")
    return scope.expression(node.this), scope.expression(node.expression)


def _operator(node: exp.Expression, scope: Scope) -> Expression:
    return call(BINARY[type(node)], *_operands(node, scope))


def _negated(node: exp.Expression, scope: Scope) -> Expression:
    return call("not", call(NEGATED[type(node)], *_operands(node, scope)))


def _chain(node: exp.Expression, scope: Scope) -> Expression:
    """AND or OR of all operands that stand side by side."""
    kind, name = type(node), "and" if isinstance(node, exp.And) else "or"
    operands: list[exp.Expression] = []
    while isinstance(node, kind):
        operands.append(node.expression)
        node = node.this
    terms = scope.expressions([node, *reversed(operands)])
    if len(terms) <= LONGEST_CHAIN:
        return reduce(lambda left, right: call(name, left, right), terms)
    return _balanced(name, terms)


def _balanced(name: str, terms: Sequence[Expression]) -> Expression:
    middle = len(terms) // 2
    return terms[0] if len(terms) == 1 else call(name, _balanced(name, terms[:middle]), _balanced(name, terms[middle:]))


def _negative(node: exp.Expression, scope: Scope) -> Expression:
    return negative(node.this, scope)


def negative(node: exp.Expression, scope: Scope) -> Expression:
    """Minus something; the sign is part of a number."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return number("-" + str(node.this))
    if isinstance(node, TypedLiteral) and not node.this.is_string:
        return typed(node, "-")
    return call("negative", scope.expression(node))


def _like(node: exp.Expression, scope: Scope, escape: Expression | None = None) -> Expression:
    only(node, "this", "expression", "negate")
    name = "ilike" if isinstance(node, exp.ILike) else "like"
    value, pattern = scope.expression(node.this), node.expression
    negated = bool(node.args.get("negate"))
    tail = [escape] if escape is not None else []
    if not isinstance(pattern, exp.Any | exp.All):
        matched = call(name, value, scope.expression(pattern), *tail)
        return call("not", matched) if negated else matched
    listed = pattern.this.expressions if isinstance(pattern.this, exp.Tuple) else [pattern.this]
    each = [call(name, value, scope.expression(one), *tail) for one in listed]
    # NOT LIKE ALL means: unlike each of them; NOT LIKE ANY: unlike at least one.
    each = [call("not", one) for one in each] if negated else each
    return reduce(lambda left, right: call("or" if isinstance(pattern, exp.Any) else "and", left, right), each)


def _escape(node: exp.Expression, scope: Scope) -> Expression:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise opaque("ESCAPE outside of LIKE")
    return _like(node.this, scope, scope.expression(node.expression))


def _is(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "expression")
    value, what = scope.expression(node.this), node.expression
    if isinstance(what, exp.Null) or (isinstance(what, exp.Column) and what.name.lower() == "unknown"):
        return call("isNull", value)
    if isinstance(what, exp.Boolean):
        return call("<=>", value, boolean(bool(what.this)))
    raise opaque(f"IS {shown(what)}")


def _not(node: exp.Expression, scope: Scope) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return call("isNotNull", scope.expression(inner.this))
    return call("not", scope.expression(inner))


def _in(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "expressions", "query")
    query = node.args.get("query")
    if query is not None:
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        return _subquery(_once_or_more(query), SubqueryExpression.SUBQUERY_TYPE_IN, scope, scope.expressions(values))
    if not node.expressions:
        raise opaque("IN without values")
    return call("in", scope.expression(node.this), *scope.expressions(node.expressions))


def _between(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "low", "high")
    return call("between", *scope.expressions([node.this, node.args["low"], node.args["high"]]))


def _case(node: exp.Expression, scope: Scope) -> Expression:
    operand, default = node.args.get("this"), node.args.get("default")
    arguments: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = scope.expression(branch.this)
        arguments += [
            condition if operand is None else call("==", scope.expression(operand), condition),
            scope.expression(branch.args["true"]),
        ]
    return call("when", *arguments, *([scope.expression(default)] if default is not None else []))


def _exists(node: exp.Expression, scope: Scope) -> Expression:
    if not isinstance(node.this, exp.Query):
        raise opaque("EXISTS of something else than a query")
    return _subquery(_once_or_more(node.this), SubqueryExpression.SUBQUERY_TYPE_EXISTS, scope)


def without_parentheses(query: exp.Query) -> exp.Query:
    """The query inside parentheses that add nothing."""
    while isinstance(query, exp.Subquery) and query.is_wrapper and isinstance(query.this, exp.Query):
        query = query.this
    return query


def _once_or_more(query: exp.Query) -> exp.Query:
    """A query that is only asked whether rows are there, so that DISTINCT says nothing: Connect cannot have it correlated."""
    query = without_parentheses(query)
    counted = query.args.get("limit") or query.args.get("offset")
    if isinstance(query, exp.Select) and query.args.get("distinct") and not counted:
        query = query.copy()
        query.set("distinct", None)
    return query


def _subquery(
    query: exp.Query,
    kind: SubqueryExpression.SubqueryType.ValueType,
    scope: Scope,
    values: Sequence[Expression] = (),
) -> Expression:
    expression = Expression()
    expression.subquery_expression.plan_id = scope.subquery(query)
    expression.subquery_expression.subquery_type = kind
    expression.subquery_expression.in_subquery_values.extend(values)
    return expression


def _scalar(node: exp.Expression, scope: Scope) -> Expression:
    query = node if isinstance(node, exp.Query) else exp.Subquery(this=node.copy())
    return _subquery(query, SubqueryExpression.SUBQUERY_TYPE_SCALAR, scope)


RULES: MappingProxyType[type[exp.Expression], Rule] = MappingProxyType(
    {
        **dict.fromkeys(BINARY, _operator),
        **dict.fromkeys(NEGATED, _negated),
        **dict.fromkeys((exp.And, exp.Or), _chain),
        **dict.fromkeys((exp.Select, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.Values), _scalar),
        exp.Between: _between,
        exp.BitwiseNot: lambda node, scope: call("~", scope.expression(node.this)),
        exp.Case: _case,
        exp.Escape: _escape,
        exp.Exists: _exists,
        exp.ILike: _like,
        exp.In: _in,
        exp.Is: _is,
        exp.Like: _like,
        exp.Neg: _negative,
        exp.Not: _not,
        exp.Paren: lambda node, scope: scope.expression(node.this),
        exp.Tuple: lambda node, scope: call("struct", *scope.expressions(node.expressions)),
    }
)
