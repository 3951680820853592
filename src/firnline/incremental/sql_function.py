"""Functions, casts, lambda functions and windows of SQL expressions. A function keeps the text's name and arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from pyspark.sql.connect.proto import Expression
from sqlglot import exp

from firnline.incremental.relation import boolean, call
from firnline.incremental.sql_literal import cast, number, string
from firnline.incremental.sql_name import variable
from firnline.incremental.sql_predicate import negative
from firnline.incremental.sql_scope import Rule, Scope, only, shown
from firnline.incremental.sql_syntax import opaque

WITHOUT_PARENTHESES: MappingProxyType[type[exp.Expression], str] = MappingProxyType(
    {
        exp.CurrentDate: "current_date",
        exp.CurrentTimestamp: "current_timestamp",
        exp.CurrentUser: "current_user",
        exp.SessionUser: "session_user",
    }
)
# Functions whose first argument may be a bare unit: what they are with one.
WITH_UNIT: MappingProxyType[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("date_add", "dateadd", "timestampadd"), "timestampadd"),
        **dict.fromkeys(("date_diff", "datediff", "timestampdiff", "timediff"), "timestampdiff"),
    }
)
# These take "ignore nulls" as a last argument.
NULL_SKIPPING = frozenset({"first", "first_value", "last", "last_value", "any_value", "nth_value"})
# These see nulls, so that FILTER cannot be written as "null where it does not hold".
NULL_SEEING = frozenset({"first", "first_value", "last", "last_value", "any_value", "grouping", "grouping_id"})


def _cast(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "to", "safe")
    tries = isinstance(node, exp.TryCast)
    return cast(scope.expression(node.this), node.args["to"].sql(dialect="spark"), tries=tries)


def _function(node: exp.Expression, scope: Scope) -> Expression:
    name, arguments = node.name, list(node.expressions)
    unit = WITH_UNIT.get(name.lower())
    if unit and len(arguments) == 3 and isinstance(arguments[0], exp.Column):
        return call(unit, string(arguments[0].name), *scope.expressions(arguments[1:]))
    if name.lower() == "timestampadd":
        raise opaque("timestampadd without a unit")
    distinct = arguments[0] if arguments and isinstance(arguments[0], exp.Distinct) else None
    if distinct is not None:
        only(distinct, "expressions")
        arguments = [*distinct.expressions, *arguments[1:]]
    if name.lower() == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Column) and arguments[0].is_star:
        raise opaque(f"count({shown(arguments[0])}), which Spark refuses: write count(*), or the columns")
    expression = call(name, *scope.expressions(arguments))
    expression.unresolved_function.is_distinct = distinct is not None
    return expression


def _nulls(node: exp.Expression, scope: Scope) -> Expression:
    """``first(x) IGNORE NULLS``; to respect nulls is the default."""
    function = scope.expression(node.this)
    if isinstance(node, exp.RespectNulls):
        return function
    if function.unresolved_function.function_name.lower() not in NULL_SKIPPING:
        raise opaque(f"IGNORE NULLS of {node.this.name}")
    function.unresolved_function.arguments.append(boolean(True))
    return function


def _filter(node: exp.Expression, scope: Scope) -> Expression:
    """``sum(x) FILTER (WHERE c)``: Connect has no filter, so x is null where c does not hold."""
    aggregate = scope.expression(node.this)
    condition = scope.expression(node.expression.this)
    function = aggregate.unresolved_function
    name = function.function_name.lower()
    if name in NULL_SEEING or not function.arguments:
        raise opaque(f"FILTER on {name or shown(node.this)}")
    position = 1 if name in ("max_by", "min_by") else 0
    value = function.arguments[position]
    if value.WhichOneof("expr_type") == "unresolved_star":
        if len(function.arguments) > 1:
            raise opaque(f"FILTER on {shown(node.this)}")
        value = number("1")
    function.arguments[position].CopyFrom(call("when", condition, value))
    return aggregate


def _lambda(node: exp.Expression, scope: Scope) -> Expression:
    names = [name.name for name in node.expressions]
    inner = replace(scope, variables=scope.variables | {name.lower() for name in names})
    expression = Expression()
    expression.lambda_function.function.CopyFrom(inner.expression(node.this))
    expression.lambda_function.arguments.extend(variable(name).unresolved_named_lambda_variable for name in names)
    return expression


def _named_argument(node: exp.Expression, scope: Scope) -> Expression:
    expression = Expression()
    expression.named_argument_expression.key = node.this.name
    expression.named_argument_expression.value.CopyFrom(scope.expression(node.expression))
    return expression


def _constant(name: str) -> Rule:
    return lambda node, scope: call(name)


def _given(name: str, *keys: str) -> Callable[[exp.Expression, Scope], Expression]:
    """A node with a grammar of its own as a call of the arguments that it has."""

    def rule(node: exp.Expression, scope: Scope) -> Expression:
        only(node, *keys)
        return call(name, *scope.expressions([node.args[key] for key in keys if node.args.get(key) is not None]))

    return rule


def _trim(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "expression", "position")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    trimmed = node.args.get("expression")
    return call(name, *scope.expressions([part for part in (trimmed, node.this) if part is not None]))


def sort_order(node: exp.Expression, scope: Scope) -> Expression.SortOrder:
    """One term of an ORDER BY."""
    ordered = node if isinstance(node, exp.Ordered) else exp.Ordered(this=node.copy(), nulls_first=True)
    only(ordered, "this", "desc", "nulls_first")
    return order_of(scope.expression(ordered.this), ordered)


def order_of(expression: Expression, ordered: exp.Ordered) -> Expression.SortOrder:
    """An expression in the direction of a term."""
    order = Expression.SortOrder()
    order.child.CopyFrom(expression)
    order.direction = order.SORT_DIRECTION_DESCENDING if ordered.args.get("desc") else order.SORT_DIRECTION_ASCENDING
    order.null_ordering = order.SORT_NULLS_FIRST if ordered.args.get("nulls_first") else order.SORT_NULLS_LAST
    return order


def _window(node: exp.Expression, scope: Scope) -> Expression:
    only(node, "this", "partition_by", "order", "spec", "alias", "over")
    spec: exp.Expression = node
    if node.alias:
        if node.alias.lower() not in scope.windows or any(node.args.get(key) for key in ("partition_by", "order", "spec")):
            raise opaque(f"a window made of the window {node.alias}")
        spec = scope.windows[node.alias.lower()]
    expression = Expression()
    expression.window.window_function.CopyFrom(scope.expression(node.this))
    expression.window.partition_spec.extend(scope.expressions(spec.args.get("partition_by") or []))
    order = spec.args.get("order")
    expression.window.order_spec.extend(sort_order(term, scope) for term in (order.expressions if order is not None else []))
    frame = spec.args.get("spec")
    if frame is not None:
        _frame(expression.window.frame_spec, frame, scope)
    return expression


def _frame(into: Expression.Window.WindowFrame, frame: exp.WindowSpec, scope: Scope) -> None:
    only(frame, "kind", "start", "start_side", "end", "end_side")
    into.frame_type = into.FRAME_TYPE_ROW if frame.args["kind"].upper() == "ROWS" else into.FRAME_TYPE_RANGE
    for boundary, end in ((into.lower, "start"), (into.upper, "end")):
        value, side = frame.args.get(end), str(frame.args.get(f"{end}_side") or "").upper()
        if value is None or value == "CURRENT ROW":
            boundary.current_row = True
        elif value == "UNBOUNDED":
            boundary.unbounded = True
        elif side == "PRECEDING":
            boundary.value.CopyFrom(negative(value, scope))
        else:
            boundary.value.CopyFrom(scope.expression(value))


RULES: MappingProxyType[type[exp.Expression], Rule] = MappingProxyType(
    {
        **{node: _constant(name) for node, name in WITHOUT_PARENTHESES.items()},
        exp.Anonymous: _function,
        exp.Cast: _cast,
        exp.Filter: _filter,
        exp.IgnoreNulls: _nulls,
        exp.Kwarg: _named_argument,
        exp.Lambda: _lambda,
        exp.Overlay: _given("overlay", "this", "expression", "from_", "for_"),
        exp.RespectNulls: _nulls,
        exp.StrPosition: _given("locate", "substr", "this", "position"),
        exp.Substring: _given("substring", "this", "start", "length"),
        exp.Trim: _trim,
        exp.TryCast: _cast,
        exp.Window: _window,
    }
)
