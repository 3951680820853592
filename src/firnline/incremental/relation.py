"""Small words for building Connect relations: columns, projections, unions, sums of weights."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.connect.proto import Expression, Relation

from firnline.model.names import DIFF


def column(name: str) -> Expression:
    """A reference to a column by its exact name, whatever characters it has."""
    expression = Expression()
    expression.unresolved_attribute.unparsed_identifier = "`" + name.replace("`", "``") + "`"
    return expression


def integer(value: int) -> Expression:
    """A bigint literal."""
    expression = Expression()
    expression.literal.long = value
    return expression


def call(function: str, *arguments: Expression) -> Expression:
    """A call of one of Spark's own functions."""
    expression = Expression()
    expression.unresolved_function.function_name = function
    expression.unresolved_function.arguments.extend(arguments)
    return expression


def alias(expression: Expression, name: str) -> Expression:
    """The expression under a name."""
    named = Expression()
    named.alias.expr.CopyFrom(expression)
    named.alias.name.append(name)
    return named


def project(source: Relation, expressions: Sequence[Expression]) -> Relation:
    """Select expressions."""
    relation = Relation()
    relation.project.input.CopyFrom(source)
    relation.project.expressions.extend(expressions)
    return relation


def union(left: Relation, right: Relation) -> Relation:
    """All rows of both, by position."""
    relation = Relation()
    relation.set_op.left_input.CopyFrom(left)
    relation.set_op.right_input.CopyFrom(right)
    relation.set_op.set_op_type = relation.set_op.SET_OP_TYPE_UNION
    relation.set_op.is_all = True
    return relation


def consolidated(source: Relation, columns: Sequence[str]) -> Relation:
    """Equal rows merged into one with the sum of their weights; rows whose weights cancel out vanish."""
    summed = Relation()
    summed.aggregate.input.CopyFrom(source)
    summed.aggregate.group_type = summed.aggregate.GROUP_TYPE_GROUPBY
    summed.aggregate.grouping_expressions.extend(column(name) for name in columns)
    summed.aggregate.aggregate_expressions.append(alias(call("sum", column(DIFF)), DIFF))
    relation = Relation()
    relation.filter.input.CopyFrom(summed)
    relation.filter.condition.CopyFrom(call("not", call("==", column(DIFF), integer(0))))
    return relation
