"""FROM: tables, joins, subqueries, VALUES, table functions and LATERAL VIEWs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyspark.sql.connect.proto import Expression, Join, Relation
from sqlglot import exp

from firnline.errors import FirnlineError
from firnline.incremental.relation import alias, project, renamed, union
from firnline.incremental.sql_expression import RULES
from firnline.incremental.sql_scope import Scope, only, shown
from firnline.incremental.sql_syntax import opaque

UNNAMED = "__auto_generated_subquery_name"
JOINS = {
    "": Join.JOIN_TYPE_INNER,
    "INNER": Join.JOIN_TYPE_INNER,
    "CROSS": Join.JOIN_TYPE_CROSS,
    "LEFT": Join.JOIN_TYPE_LEFT_OUTER,
    "LEFT OUTER": Join.JOIN_TYPE_LEFT_OUTER,
    "RIGHT": Join.JOIN_TYPE_RIGHT_OUTER,
    "RIGHT OUTER": Join.JOIN_TYPE_RIGHT_OUTER,
    "FULL": Join.JOIN_TYPE_FULL_OUTER,
    "FULL OUTER": Join.JOIN_TYPE_FULL_OUTER,
    "SEMI": Join.JOIN_TYPE_LEFT_SEMI,
    "LEFT SEMI": Join.JOIN_TYPE_LEFT_SEMI,
    "ANTI": Join.JOIN_TYPE_LEFT_ANTI,
    "LEFT ANTI": Join.JOIN_TYPE_LEFT_ANTI,
}
WITH_OUTER = frozenset({"explode", "posexplode", "inline"})


@dataclass(frozen=True, slots=True)
class Names:
    """What a query can refer to: the tables around it by name, and the LATERAL VIEWs of the queries around it."""

    tables: Mapping[str, Relation]
    views: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Queries(Protocol):
    """Translates the queries inside a query."""

    def query(self, node: exp.Expr, scope: Names) -> Relation:
        """The relation of a query."""

    def subquery(self, node: exp.Query, scope: Names) -> Relation:
        """The relation of a query inside an expression, with a plan id of its own."""


class Clause:
    """The expressions of one relation, and the subqueries in them."""

    def __init__(self, queries: Queries, names: Names, windows: Mapping[str, exp.Window] | None = None) -> None:
        self._queries = queries
        self._names = names
        self._references: list[Relation] = []
        self.scope = Scope(RULES, self._reference, windows or {}, names.views)

    def _reference(self, subquery: exp.Query) -> int:
        relation = self._queries.subquery(subquery, self._names)
        self._references.append(relation)
        return relation.common.plan_id

    def around(self, relation: Relation) -> Relation:
        """The relation with the subqueries that its expressions refer to, as the client sends them."""
        if not self._references:
            return relation
        wrapped = Relation()
        wrapped.with_relations.root.CopyFrom(relation)
        wrapped.with_relations.references.extend(self._references)
        return wrapped


def aliased(relation: Relation, name: str, columns: Sequence[str] = ()) -> Relation:
    """The relation under a name, its columns perhaps under others."""
    result = Relation()
    result.subquery_alias.input.CopyFrom(renamed(relation, columns) if columns else relation)
    result.subquery_alias.alias = name
    return result


def source(select: exp.Select, names: Names, queries: Queries) -> tuple[Relation | None, Names]:
    """What a SELECT reads, and its names with those of its LATERAL VIEWs."""
    clause = select.args.get("from_")
    if clause is None:
        return None, names
    only(clause, "this")
    relation = _table(clause.this, names, queries)
    tables = [clause.this, *(join.this for join in select.args.get("joins") or [])]
    hidden = {table.alias_or_name.lower() for table in tables}
    names = replace(names, views={view: columns for view, columns in names.views.items() if view not in hidden})
    for join in select.args.get("joins") or []:
        relation = _join(relation, join, names, queries)
    for lateral in select.args.get("laterals") or []:
        relation, names = _view(relation, lateral, names, queries)
    return relation, names


def _table(node: exp.Expression, names: Names, queries: Queries) -> Relation:
    given = node.args.get("alias")
    columns = [column.name for column in given.args.get("columns") or []] if given is not None else []
    if isinstance(node, exp.Values):
        relation, default = values(node, names, queries), UNNAMED
    elif isinstance(node, exp.Subquery):
        only(node, "this", "alias", "joins")
        inner = node.this
        default = UNNAMED
        if isinstance(inner, exp.Query):
            relation = queries.query(inner, names)
        else:
            relation = _table(inner, names, queries)
            if given is None:
                return _joins(relation, node, names, queries)
    elif isinstance(node, exp.Table):
        only(node, "this", "db", "catalog", "alias", "joins")
        relation, default = _named(node, names, queries)
    else:
        raise opaque(f"FROM {type(node).__name__}: {shown(node)}")
    return _joins(aliased(relation, given.name if given is not None and given.name else default, columns), node, names, queries)


def _joins(relation: Relation, node: exp.Expression, names: Names, queries: Queries) -> Relation:
    for join in node.args.get("joins") or []:
        relation = _join(relation, join, names, queries)
    return relation


def _named(node: exp.Table, names: Names, queries: Queries) -> tuple[Relation, str]:
    if isinstance(node.this, exp.Anonymous):
        return table_function(node.this, names, queries), node.this.name
    name = ".".join(part.name for part in node.parts)
    relation = names.tables.get(name.lower())
    if relation is None:
        raise FirnlineError("UNKNOWN_INPUT", f"the SQL reads '{name}', which is not among its inputs")
    return relation, node.name


def table_function(node: exp.Anonymous, names: Names, queries: Queries) -> Relation:
    """``range(10)``, ``explode(...)`` and their like in FROM."""
    clause = Clause(queries, names)
    relation = Relation()
    relation.unresolved_table_valued_function.function_name = node.name
    relation.unresolved_table_valued_function.arguments.extend(clause.scope.expressions(node.expressions))
    return clause.around(relation)


def values(node: exp.Values, names: Names, queries: Queries) -> Relation:
    """The rows of VALUES: a union, as a balanced tree since protobuf refuses deep nesting."""
    only(node, "expressions", "alias", "order", "limit", "offset")
    rows = [list(row.expressions) if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    relations = []
    for row in rows:
        clause = Clause(queries, names)
        relation = Relation()
        relation.project.expressions.extend(
            alias(clause.scope.expression(value), f"col{index + 1}") for index, value in enumerate(row)
        )
        relations.append(clause.around(relation))
    while len(relations) > 1:
        pairs = [relations[index : index + 2] for index in range(0, len(relations), 2)]
        relations = [union(*pair) for pair in pairs]
    return relations[0]


def _join(left: Relation, join: exp.Join, names: Names, queries: Queries) -> Relation:
    only(join, "this", "side", "kind", "on", "using")
    how = " ".join(word.upper() for word in (join.args.get("side"), join.args.get("kind")) if word)
    if how not in JOINS:
        raise opaque(f"{how} JOIN")
    kind, on, clause = JOINS[how], join.args.get("on"), Clause(queries, names)
    condition = None if on is None or _is_true(on) else clause.scope.expression(on)
    if kind == Join.JOIN_TYPE_CROSS and condition is not None:
        kind = Join.JOIN_TYPE_INNER
    elif kind == Join.JOIN_TYPE_INNER and condition is None and not join.args.get("using"):
        kind = Join.JOIN_TYPE_CROSS
    elif on is not None and condition is None and kind != Join.JOIN_TYPE_CROSS:
        condition = clause.scope.expression(on)
    if isinstance(join.this, exp.Lateral):
        return clause.around(_lateral(left, join, kind, condition, names, queries))
    relation = Relation()
    relation.join.left.CopyFrom(left)
    relation.join.right.CopyFrom(_table(join.this, names, queries))
    relation.join.join_type = kind
    relation.join.using_columns.extend(column.name for column in join.args.get("using") or [])
    if condition is not None:
        relation.join.join_condition.CopyFrom(condition)
    return clause.around(relation)


def _is_true(node: exp.Expression) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


def _lateral(
    left: Relation,
    join: exp.Join,
    kind: Join.JoinType.ValueType,
    condition: Expression | None,
    names: Names,
    queries: Queries,
) -> Relation:
    lateral = join.this
    only(lateral, "this", "alias")
    if join.args.get("using"):
        raise opaque("a LATERAL join with USING")
    right, given = lateral.this, lateral.args.get("alias")
    table = exp.Table(this=right.copy(), alias=given) if isinstance(right, exp.Anonymous) else right.copy()
    if given is not None:
        table.set("alias", given.copy())
    relation = Relation()
    relation.lateral_join.left.CopyFrom(left)
    relation.lateral_join.right.CopyFrom(_table(table, names, queries))
    relation.lateral_join.join_type = kind
    if condition is not None:
        relation.lateral_join.join_condition.CopyFrom(condition)
    return relation


def _view(relation: Relation, lateral: exp.Lateral, names: Names, queries: Queries) -> tuple[Relation, Names]:
    """LATERAL VIEW: all columns, and those that the generator makes."""
    only(lateral, "this", "view", "outer", "alias")
    if not isinstance(lateral.this, exp.Anonymous):
        raise opaque(f"LATERAL VIEW of {shown(lateral.this)}")
    generator, given = lateral.this.copy(), lateral.args.get("alias")
    if lateral.args.get("outer"):
        if generator.name.lower() not in WITH_OUTER:
            raise opaque(f"LATERAL VIEW OUTER {generator.name}")
        generator.set("this", generator.name + "_outer")
    clause = Clause(queries, names)
    made = clause.scope.expression(generator)
    columns = [column.name for column in given.args.get("columns") or []] if given is not None else []
    relation = project(relation, [_everything(), alias(made, *columns) if columns else made])
    if given is not None and given.name:
        names = replace(names, views={**names.views, given.name.lower(): columns})
    return clause.around(relation), names


def _everything() -> Expression:
    expression = Expression()
    expression.unresolved_star.SetInParent()
    return expression
