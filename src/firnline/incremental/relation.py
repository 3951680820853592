"""Small words for building Connect plans: columns, literals, calls, projections, joins, unions, sums of weights.

Weighted rows carry their weight in ``_diff``. Plans are built bottom-up and never changed: every word returns a new message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pyspark.sql.connect.proto import Expression, Relation
from pyspark.sql.connect.proto import Join as JoinProto

from firnline.model.names import DIFF

INNER = JoinProto.JOIN_TYPE_INNER
LEFT_OUTER = JoinProto.JOIN_TYPE_LEFT_OUTER
SEMI = JoinProto.JOIN_TYPE_LEFT_SEMI
ANTI = JoinProto.JOIN_TYPE_LEFT_ANTI


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


def small_integer(value: int) -> Expression:
    """An int literal."""
    expression = Expression()
    expression.literal.integer = value
    return expression


def double(value: float) -> Expression:
    """A double literal."""
    expression = Expression()
    expression.literal.double = value
    return expression


def boolean(value: bool) -> Expression:
    """A boolean literal."""
    expression = Expression()
    expression.literal.boolean = value
    return expression


def null() -> Expression:
    """The null literal, of no type yet."""
    expression = Expression()
    expression.literal.null.null.SetInParent()
    return expression


def text(value: str) -> Expression:
    """A string literal."""
    expression = Expression()
    expression.literal.string = value
    return expression


def call(function: str, *arguments: Expression) -> Expression:
    """A call of one of Spark's own functions."""
    expression = Expression()
    expression.unresolved_function.function_name = function
    expression.unresolved_function.arguments.extend(arguments)
    return expression


def cast(expression: Expression, kind: str) -> Expression:
    """The expression as another type, given in DDL."""
    found = Expression()
    found.cast.expr.CopyFrom(expression)
    found.cast.type_str = kind
    return found


def alias(expression: Expression, *names: str) -> Expression:
    """The expression under a name; a generator of several columns under several."""
    named = Expression()
    named.alias.expr.CopyFrom(expression)
    named.alias.name.extend(names)
    return named


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """The conjunction, as a balanced tree (protobuf refuses deep nesting); None of nothing."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    middle = len(conditions) // 2
    left, right = all_of(conditions[:middle]), all_of(conditions[middle:])
    assert left is not None
    assert right is not None
    return call("and", left, right)


def any_of(conditions: Sequence[Expression]) -> Expression | None:
    """The disjunction, as a balanced tree; None of nothing."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    middle = len(conditions) // 2
    left, right = any_of(conditions[:middle]), any_of(conditions[middle:])
    assert left is not None
    assert right is not None
    return call("or", left, right)


def project(source: Relation, expressions: Iterable[Expression]) -> Relation:
    """Select expressions."""
    relation = Relation()
    relation.project.input.CopyFrom(source)
    relation.project.expressions.extend(expressions)
    return relation


def filtered(source: Relation, condition: Expression) -> Relation:
    """The rows for which the condition is true."""
    relation = Relation()
    relation.filter.input.CopyFrom(source)
    relation.filter.condition.CopyFrom(condition)
    return relation


def joined(left: Relation, right: Relation, kind: JoinProto.JoinType.ValueType, condition: Expression | None) -> Relation:
    """The join of two relations without a common column name."""
    relation = Relation()
    relation.join.left.CopyFrom(left)
    relation.join.right.CopyFrom(right)
    relation.join.join_type = kind if condition is not None or kind != INNER else JoinProto.JOIN_TYPE_CROSS
    if condition is not None:
        relation.join.join_condition.CopyFrom(condition)
    return relation


def broadcast(source: Relation) -> Relation:
    """A hint that the relation is small."""
    relation = Relation()
    relation.hint.input.CopyFrom(source)
    relation.hint.name = "broadcast"
    return relation


def in_one(source: Relation) -> Relation:
    """The rows in one partition, so that nothing above needs a shuffle to bring them together."""
    relation = Relation()
    relation.repartition.input.CopyFrom(source)
    relation.repartition.num_partitions = 1
    relation.repartition.shuffle = False
    return relation


def grouped(source: Relation, keys: Iterable[Expression], aggregates: Iterable[Expression]) -> Relation:
    """One row per group, or one for all without keys."""
    relation = Relation()
    relation.aggregate.input.CopyFrom(source)
    relation.aggregate.group_type = relation.aggregate.GROUP_TYPE_GROUPBY
    relation.aggregate.grouping_expressions.extend(keys)
    relation.aggregate.aggregate_expressions.extend(aggregates)
    return relation


def running(aggregate: Expression, keys: Iterable[Expression], order: Expression, upto: int) -> Expression:
    """An aggregate over the rows of equal keys that come first in an order: through this one, or some before it."""
    expression = Expression()
    window = expression.window
    window.window_function.CopyFrom(aggregate)
    window.partition_spec.extend(keys)
    ordered = window.order_spec.add()
    ordered.child.CopyFrom(order)
    ordered.direction = ordered.SORT_DIRECTION_ASCENDING
    ordered.null_ordering = ordered.SORT_NULLS_FIRST
    window.frame_spec.frame_type = window.frame_spec.FRAME_TYPE_ROW
    window.frame_spec.lower.unbounded = True
    if upto:
        window.frame_spec.upper.value.literal.integer = upto
    else:
        window.frame_spec.upper.current_row = True
    return expression


def distinct(source: Relation) -> Relation:
    """Each row once."""
    relation = Relation()
    relation.deduplicate.input.CopyFrom(source)
    relation.deduplicate.all_columns_as_keys = True
    return relation


def union(left: Relation, *others: Relation) -> Relation:
    """All rows of all, by position."""
    for right in others:
        relation = Relation()
        relation.set_op.left_input.CopyFrom(left)
        relation.set_op.right_input.CopyFrom(right)
        relation.set_op.set_op_type = relation.set_op.SET_OP_TYPE_UNION
        relation.set_op.is_all = True
        left = relation
    return left


def named(table: str, options: Mapping[str, str] | None = None) -> Relation:
    """A table or view by its quoted name."""
    relation = Relation()
    relation.read.named_table.unparsed_identifier = table
    relation.read.named_table.options.update(options or {})
    return relation


def exact(names: Iterable[str], floating: Collection[str]) -> list[Expression]:
    """Columns of a log; those of floating numbers so that no filter above them is pushed below.

    Scans leave out files and dictionaries by an order that is not Spark's: NaN is no greater than others there, -0.0 is not 0.0.
    """
    return [alias(call("coalesce", column(name), column(name)), name) if name in floating else column(name) for name in names]


def negated(source: Relation, columns: Sequence[str]) -> Relation:
    """The rows with opposite weights."""
    return project(source, [*map(column, columns), alias(call("negative", column(DIFF)), DIFF)])


def consolidated(source: Relation, columns: Sequence[str]) -> Relation:
    """Equal rows merged into one with the sum of their weights; rows whose weights cancel out vanish."""
    summed = grouped(source, map(column, columns), [alias(call("sum", column(DIFF)), DIFF)])
    return filtered(summed, call("not", call("==", column(DIFF), integer(0))))


def renamed(source: Relation, names: Sequence[str]) -> Relation:
    """The relation under new column names, by position."""
    relation = Relation()
    relation.to_df.input.CopyFrom(source)
    relation.to_df.column_names.extend(names)
    return relation


def named_as(source: Relation, ids: Sequence[str], names: Sequence[str]) -> Relation:
    """Some columns under other names."""
    return project(source, [alias(column(of), name) for of, name in zip(ids, names, strict=True)])
