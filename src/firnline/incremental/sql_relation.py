"""Whole SELECT statements as Connect relations: the plan that the PySpark Connect client would send for the same meaning.

For any inputs, ``translated(text, inputs)`` has the rows (as a multiset) and the columns that Spark gives for the text over views
of the inputs. Names stay unresolved, so that Spark resolves them as it does for SQL. What ORDER BY and HAVING need beyond the
select list is computed under hidden names and dropped at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.connect.proto import Aggregate, Expression, Relation, SetOperation
from sqlglot import exp

from firnline.incremental.relation import alias, column, distinct, filtered, grouped, project, renamed
from firnline.incremental.sql_function import order_of
from firnline.incremental.sql_grouping import Grouping, aggregates, bare, grouping, is_star, name_of, position
from firnline.incremental.sql_order import HIDDEN, Lift, Term, aliases, beyond, names, reference, terms
from firnline.incremental.sql_predicate import without_parentheses
from firnline.incremental.sql_scope import only, shown
from firnline.incremental.sql_source import Clause, Names, source, values
from firnline.incremental.sql_syntax import not_too_deep, opaque, statement_of

# Far from the ids that the client counts up, so that a translation can stand inside any plan.
FIRST_PLAN_ID = 1 << 40
SET_OPERATIONS: dict[type[exp.SetOperation], SetOperation.SetOpType.ValueType] = {
    exp.Union: SetOperation.SET_OP_TYPE_UNION,
    exp.Intersect: SetOperation.SET_OP_TYPE_INTERSECT,
    exp.Except: SetOperation.SET_OP_TYPE_EXCEPT,
}


GROUP_TYPES = {
    "groupby": Aggregate.GROUP_TYPE_GROUPBY,
    "rollup": Aggregate.GROUP_TYPE_ROLLUP,
    "cube": Aggregate.GROUP_TYPE_CUBE,
    "grouping_sets": Aggregate.GROUP_TYPE_GROUPING_SETS,
}
# The clauses of a SELECT that are read; hints and the order of clauses say nothing about rows.
SELECT = (
    *("with_", "hint", "expressions", "from_", "joins", "laterals", "where", "group", "having", "windows", "distinct"),
    *("order", "limit", "offset", "operation_modifiers"),
)


def translated(text: str, inputs: Mapping[str, Relation]) -> Relation:
    """The relation of a statement over inputs by name, in any case."""
    with not_too_deep(text):
        statement = statement_of(text)
        if not isinstance(statement, exp.Query | exp.Values):
            raise opaque(f"a statement that is no query: {shown(statement)}")
        return _Statement().query(statement, Names({name.lower(): relation for name, relation in inputs.items()}))


@dataclass(frozen=True, slots=True)
class _Output:
    """The rows of a select list, with hidden columns for the terms of ORDER BY."""

    relation: Relation
    hidden: Sequence[str]
    terms: Sequence[Term]
    items: Sequence[exp.Expression] = ()

    @property
    def known(self) -> list[str]:
        """The names of the columns that are not hidden, if the text says all of them, each once; else none.

        Where they are known, nothing is dropped and no duplicates are: Connect analyzes what is below that at once, which fails
        in a correlated subquery.
        """
        found = [name_of(item) or "" for item in self.items]
        return found if all(found) and set(names(self.items).values()) == {1} else []

    def unique(self) -> Relation:
        """Each row once, without the hidden columns."""
        rows = self.visible(self.relation)
        return grouped(rows, map(column, self.known), []) if self.known else distinct(rows)

    def visible(self, relation: Relation) -> Relation:
        """Something made of these rows, without the hidden columns."""
        if not self.hidden:
            return relation
        if self.known:
            return project(relation, map(column, self.known))
        dropped = Relation()
        dropped.drop.input.CopyFrom(relation)
        dropped.drop.column_names.extend(self.hidden)
        return dropped


class _Statement:
    def __init__(self) -> None:
        self._ids = itertools.count(FIRST_PLAN_ID)

    def subquery(self, node: exp.Query, scope: Names) -> Relation:
        """A query inside an expression, where what its columns are called does not matter."""
        relation = Relation()
        relation.CopyFrom(self.query(_all_named(node), scope))
        relation.common.plan_id = next(self._ids)
        return relation

    def query(self, node: exp.Expr, scope: Names) -> Relation:
        scope = self._with(node, scope)
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        if isinstance(node, exp.Subquery):
            only(node, "this", "with_", "order", "limit", "offset")
            relation = self.query(node.this, scope)
        elif isinstance(node, exp.Values):
            relation = values(node, scope, self)
        elif isinstance(node, exp.SetOperation):
            relation = self._set_operation(node, scope)
        else:
            raise opaque(f"the query {type(node).__name__}: {shown(node)}")
        return self._finished(node, _Output(relation, [], terms(node)), Clause(self, scope))

    def _with(self, node: exp.Expr, scope: Names) -> Names:
        clause = node.args.get("with_")
        if clause is None:
            return scope
        only(clause, "expressions")
        for common in clause.expressions:
            only(common, "this", "alias")
            given = common.args["alias"]
            listed = [each.name for each in given.args.get("columns") or []]
            relation = self.query(common.this, scope)
            tables = {**scope.tables, given.name.lower(): renamed(relation, listed) if listed else relation}
            scope = replace(scope, tables=tables)
        return scope

    def _set_operation(self, node: exp.SetOperation, scope: Names) -> Relation:
        only(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
        relation = Relation()
        relation.set_op.left_input.CopyFrom(self.query(node.this, scope))
        relation.set_op.right_input.CopyFrom(self.query(node.expression, scope))
        relation.set_op.set_op_type = SET_OPERATIONS[type(node)]
        relation.set_op.is_all = not node.args.get("distinct")
        return relation

    def _select(self, node: exp.Select, scope: Names) -> Relation:
        only(node, *SELECT)
        relation, scope = source(node, scope, self)
        windows = {each.name.lower(): each for each in node.args.get("windows") or []}

        def clause() -> Clause:
            return Clause(self, scope, windows)

        where = node.args.get("where")
        if where is not None:
            made = clause()
            relation = made.around(filtered(relation or _one_row(), made.scope.expression(where.this)))
        if _is_grouped(node):
            output = _grouped(node, relation or _one_row(), clause(), clause())
        else:
            output = _projected(node, relation, clause())
        unique = node.args.get("distinct")
        if unique is not None:
            only(unique)
            output = _Output(output.unique(), [], output.terms)
        return self._finished(node, output, clause())

    def _finished(self, node: exp.Expression, output: _Output, clause: Clause) -> Relation:
        """ORDER BY, OFFSET and LIMIT."""
        relation = output.relation
        if output.terms:
            ordered = Relation()
            ordered.sort.input.CopyFrom(relation)
            ordered.sort.is_global = True
            ordered.sort.order.extend(order_of(clause.scope.expression(term.node), term.order) for term in output.terms)
            relation = clause.around(ordered)
        offset, limit = _count(node, "offset"), _count(node, "limit")
        if offset is not None:
            skipped = Relation()
            skipped.offset.input.CopyFrom(relation)
            skipped.offset.offset = offset
            relation = skipped
        if limit is not None:
            first = Relation()
            first.limit.input.CopyFrom(relation)
            first.limit.limit = limit
            relation = first
        return output.visible(relation)


def _all_named(node: exp.Query) -> exp.Query:
    inner = without_parentheses(node)
    if not isinstance(inner, exp.Select) or not any(inner.args.get(key) for key in ("group", "having", "order")):
        return node
    if any(is_star(item) for item in inner.expressions):
        return node
    copy, given = inner.copy(), names(inner.expressions)
    for index, item in enumerate(copy.expressions):
        name = name_of(item)
        if name is None or given[name.lower()] > 1:
            item.replace(exp.Alias(this=bare(item).copy(), alias=exp.to_identifier(f"{HIDDEN}column_{index}", quoted=True)))
    return copy


def _one_row() -> Relation:
    """One row without columns."""
    relation = Relation()
    relation.project.SetInParent()
    return relation


def _count(node: exp.Expression, key: str) -> int | None:
    clause = node.args.get(key)
    if clause is None or (isinstance(clause.expression, exp.Var) and clause.expression.name.upper() == "ALL"):
        return None
    only(clause, "expression")
    number = clause.expression
    if not isinstance(clause, exp.Limit | exp.Offset) or not isinstance(number, exp.Literal) or number.is_string:
        raise opaque(f"{key.upper()} of something else than a number")
    return int(number.this)


def _is_grouped(node: exp.Select) -> bool:
    order = node.args.get("order")
    listed = [*node.expressions, *(order.expressions if order is not None else [])]
    return bool(node.args.get("group") or node.args.get("having")) or any(any(aggregates(each)) for each in listed)


def _projected(node: exp.Select, source: Relation | None, clause: Clause) -> _Output:
    """The select list, with what ORDER BY needs beyond it."""
    hidden: dict[str, Expression] = {}
    found: list[Term] = []
    for term in terms(node):
        more = None if node.args.get("distinct") else beyond(term, node.expressions)
        if more is not None:
            name = f"{HIDDEN}{len(hidden)}"
            hidden[name] = alias(clause.scope.expression(more), name)
            term = replace(term, node=reference(name))
        found.append(term)
    relation = Relation()
    if source is not None:
        relation.project.input.CopyFrom(source)
    relation.project.expressions.extend([*clause.scope.expressions(node.expressions), *hidden.values()])
    return _Output(clause.around(relation), list(hidden), found, node.expressions)


def _grouped(node: exp.Select, source: Relation, clause: Clause, having: Clause) -> _Output:
    """Groups and aggregates, then HAVING.

    Connect puts the keys before the aggregates. Where the select list begins with its keys, that is the select list; else the
    keys are hidden, and what is selected follows as aggregates.
    """
    items, found = node.expressions, grouping(node)
    count = len(found.keys)
    leads = _leads(items, found)
    columns = [name_of(item) or "" for item in items[:count]] if leads else [f"{HIDDEN}key_{index}" for index in range(count)]
    lift = Lift(found.keys, columns)
    condition = node.args.get("having")
    wanted = lift.lifted(condition.this) if condition is not None else None
    ordered = [replace(term, node=lift.lifted(term.node, aliases(items))) for term in terms(node)]

    made, sets = clause.scope.expressions, found.sets
    if leads:
        keys, selected = made(items[:count]), made(items[count:])
    elif found.kind == "groupby":
        keys, selected = list(map(alias, made(found.keys), columns)), made(items)
    else:
        # The keys of grouping sets are known by name only, so they get theirs before.
        source = project(source, [*made([exp.Star()]), *map(alias, made(found.keys), columns)])
        keys, selected = made(map(reference, columns)), made(map(lift.over_keys, items))
        sets = tuple(tuple(reference(columns[position(key, found.keys) or 0]) for key in each) for each in sets)
    relation = Relation()
    relation.aggregate.input.CopyFrom(source)
    relation.aggregate.group_type = GROUP_TYPES[found.kind]
    relation.aggregate.grouping_expressions.extend(keys)
    relation.aggregate.aggregate_expressions.extend(selected)
    for name, aggregate in lift.aggregates.items():
        relation.aggregate.aggregate_expressions.append(alias(*made([aggregate]), name))
    for each in sets:
        relation.aggregate.grouping_sets.add().grouping_set.extend(made(each))
    relation = clause.around(relation)
    if wanted is not None:
        relation = having.around(filtered(relation, having.scope.expression(wanted)))
    return _Output(relation, [*([] if leads else columns), *lift.aggregates], ordered, items)


def _leads(items: Sequence[exp.Expression], found: Grouping) -> bool:
    """Whether a select list begins with all keys, each under a name that no other column has.

    Grouping sets look for their keys among those without an alias only: with one, they would find none and group by nothing.
    """
    count, given = len(found.keys), names(items)
    leading = [name_of(item) if found.kind == "groupby" or item is bare(item) else None for item in items[:count]]
    return len(leading) == count and all(
        name is not None and given[name.lower()] == 1 and position(bare(item), [key]) is not None
        for name, item, key in zip(leading, items, found.keys, strict=False)
    )
