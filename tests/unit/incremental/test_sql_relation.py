"""Texts of SELECT statements as Connect protobuf, without Spark. What they mean to Spark is tested in tests/spark/test_sql.py."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message
from pyspark.sql.connect import plan
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.expressions import ColumnReference, SubqueryExpression, UnresolvedFunction
from pyspark.sql.connect.proto import Aggregate, Join, Relation
from pyspark.sql.connect.proto import SubqueryExpression as Subquery

from firnline.errors import FirnlineError
from firnline.incremental.relation import column
from firnline.incremental.sql_expression import parsed
from firnline.incremental.sql_relation import FIRST_PLAN_ID, translated


def table(name: str) -> Relation:
    relation = Relation()
    relation.read.named_table.unparsed_identifier = name
    return relation


INPUTS = {"t": table("t"), "U": table("u")}


def kinds(relation: Relation) -> list[str]:
    """The operators from the top down, along first inputs."""
    found = []
    while True:
        kind = relation.WhichOneof("rel_type") or ""
        found.append(kind)
        message = getattr(relation, kind)
        below = [field for field in ("input", "root", "left", "left_input") if field in message.DESCRIPTOR.fields_by_name]
        if not below or not message.HasField(below[0]):
            return found
        relation = getattr(message, below[0])


def without_ids(message: Message) -> Message:
    """A copy without the numbers that a client counts up."""
    copy = type(message)()
    copy.CopyFrom(message)
    _clear(copy)
    return copy


def _clear(message: Any) -> None:
    for field, value in message.ListFields():
        if field.name in ("common", "plan_id", "is_metadata_column", "is_distinct"):
            message.ClearField(field.name)
        elif field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                _clear(each)


def text_of(text: str) -> str:
    return str(without_ids(translated(text, INPUTS)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from t", ["project", "subquery_alias", "read"]),
        ("select a from T where b > 1", ["project", "filter", "subquery_alias", "read"]),
        ("select distinct a from t", ["aggregate", "project", "subquery_alias", "read"]),
        ("select distinct * from t", ["deduplicate", "project", "subquery_alias", "read"]),
        ("select a from t order by a limit 3", ["limit", "sort", "project", "subquery_alias", "read"]),
        ("select a from t order by a limit 3 offset 1", ["limit", "offset", "sort", "project", "subquery_alias", "read"]),
        ("select a, sum(b) from t group by a", ["aggregate", "subquery_alias", "read"]),
        ("select count(*) from t", ["aggregate", "subquery_alias", "read"]),
        ("select rank() over (order by a) from t", ["project", "subquery_alias", "read"]),
        ("select a from t union all select a from u", ["set_op", "project", "subquery_alias", "read"]),
        ("select t.a from t join u on t.a = u.a", ["project", "join", "subquery_alias", "read"]),
        ("select x.a from (select a from t) x", ["project", "subquery_alias", "project", "subquery_alias", "read"]),
        ("with c as (select a from t) select * from c", ["project", "subquery_alias", "project", "subquery_alias", "read"]),
        ("select a from t where exists (select 1 from u)", ["project", "with_relations", "filter", "subquery_alias", "read"]),
        ("select a, e from t lateral view explode(xs) v as e", ["project", "project", "subquery_alias", "read"]),
        ("select 1", ["project"]),
        ("select id from range(3)", ["project", "subquery_alias", "unresolved_table_valued_function"]),
    ],
)
def test_a_statement_becomes_the_operators_it_names(text: str, expected: list[str]) -> None:
    assert kinds(translated(text, INPUTS)) == expected


def test_groups_that_begin_the_select_list_need_nothing_hidden() -> None:
    aggregate = translated("select a as k, sum(b) as total from t group by a", INPUTS).aggregate
    assert list(aggregate.grouping_expressions) == [parsed("a as k")]
    assert list(aggregate.aggregate_expressions) == [parsed("sum(b) as total")]


def test_other_groups_are_hidden_and_projected_away() -> None:
    relation = translated("select sum(b) as total from t group by a", INPUTS)
    assert list(relation.project.expressions) == [column("total")]
    aggregate = relation.project.input.aggregate
    assert list(aggregate.grouping_expressions) == [parsed("a as _firnline_sql_key_0")]
    assert list(aggregate.aggregate_expressions) == [parsed("sum(b) as total")]


def test_columns_without_a_name_in_the_text_keep_sparks() -> None:
    relation = translated("select sum(b) from t group by a", INPUTS)
    assert list(relation.drop.column_names) == ["_firnline_sql_key_0"]


def test_having_and_order_compute_their_aggregates_once() -> None:
    text = "select a, sum(b) as total from t group by a having max(c) > 1 and count(*) > 2 order by max(c) desc limit 1"
    relation = translated(text, INPUTS)
    assert kinds(relation)[:5] == ["project", "limit", "sort", "filter", "aggregate"]
    ordered = relation.project.input.limit.input.sort
    aggregate = ordered.input.filter.input.aggregate
    assert list(aggregate.aggregate_expressions) == [
        parsed("sum(b) as total"),
        parsed("max(c) as _firnline_sql_0"),
        parsed("count(*) as _firnline_sql_1"),
    ]
    assert ordered.order[0].child == parsed("_firnline_sql_0")
    assert list(relation.project.expressions) == [column("a"), column("total")]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("select upper(s) as k, count(*) from t group by k", ["upper(s) as k"]),
        ("select upper(s) as s, count(*) from t group by s", ["s as _firnline_sql_key_0"]),
        ("select upper(t.s) as s, count(*) from t group by s", ["s as _firnline_sql_key_0"]),
        ("select upper(v.s) as s, count(*) from (u cross join t v) group by s", ["s as _firnline_sql_key_0"]),
        ("select upper(v.s) as s, count(*) from t lateral view explode(xs) v as s group by s", ["s as _firnline_sql_key_0"]),
        ("select upper(st.s) as s, count(*) from t group by s", ["upper(st.s) as s"]),
        ("select upper(t.st.s) as s, count(*) from t group by s", ["upper(t.st.s) as s"]),
        ("select a, b, count(*) from t group by 2, 1", ["b as _firnline_sql_key_0", "a as _firnline_sql_key_1"]),
        ("select a, b + 1 as c, count(*) from t group by all", ["a", "b + 1 as c"]),
        ("select t.a, count(*) from t group by a", ["t.a"]),
    ],
)
def test_group_by_means_what_it_can_only_mean(text: str, keys: list[str]) -> None:
    relation = translated(text, INPUTS)
    aggregate = relation.aggregate if relation.HasField("aggregate") else relation.drop.input.aggregate
    assert list(aggregate.grouping_expressions) == [parsed(key) for key in keys]


@pytest.mark.parametrize(
    ("clause", "kind"), [("rollup(a, b)", "ROLLUP"), ("cube(a, b)", "CUBE"), ("grouping sets ((a, b), (a), ())", "GROUPING_SETS")]
)
def test_grouping_sets(clause: str, kind: str) -> None:
    aggregate = translated(f"select a, b, count(*) from t group by {clause}", INPUTS).aggregate
    assert Aggregate.GroupType.Name(aggregate.group_type) == f"GROUP_TYPE_{kind}"
    assert len(aggregate.grouping_expressions) == 2
    assert [len(each.grouping_set) for each in aggregate.grouping_sets] == ([2, 1, 0] if kind == "GROUPING_SETS" else [])


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        (", u", "CROSS"),
        ("cross join u", "CROSS"),
        ("join u on t.a = u.a", "INNER"),
        ("left join u on t.a = u.a", "LEFT_OUTER"),
        ("right outer join u on t.a = u.a", "RIGHT_OUTER"),
        ("full join u using (a)", "FULL_OUTER"),
        ("left semi join u using (a)", "LEFT_SEMI"),
        ("anti join u using (a)", "LEFT_ANTI"),
    ],
)
def test_joins(how: str, kind: str) -> None:
    join = translated(f"select 1 from t {how}", INPUTS).project.input.join
    assert Join.JoinType.Name(join.join_type) == f"JOIN_TYPE_{kind}"
    assert list(join.using_columns) == (["a"] if "using" in how else [])
    assert join.HasField("join_condition") == ("on" in how.split())


class Given(plan.LogicalPlan):
    """A relation in the words of the client."""

    def __init__(self, relation: Relation) -> None:
        super().__init__(None)
        self.relation = relation

    def plan(self, session: Any) -> Relation:
        return self.relation


def by_the_client(kind: str, condition: Any, inner_condition: Any) -> Relation:
    """What the client sends for a filter of t by a subquery over u."""

    def column_of(name: str) -> Column:
        return Column(ColumnReference(name))

    inner = plan.Filter(plan.SubqueryAlias(Given(INPUTS["U"]), "u"), inner_condition(column_of))
    subquery = plan.Project(inner, [column_of("c")])
    values = [column_of("a")._expr] if kind == "in" else None
    expression = Column(SubqueryExpression(subquery, kind, in_subquery_values=values))
    outer = plan.Filter(plan.SubqueryAlias(Given(INPUTS["t"]), "t"), condition(expression, column_of))
    found: Relation = plan.Project(outer, [column_of("a")]).plan(None)  # type: ignore[arg-type]
    return found


def test_subqueries_look_as_the_client_sends_them() -> None:
    correlated = lambda column: Column(UnresolvedFunction("==", [column("u.a")._expr, column("t.a")._expr]))  # noqa: E731
    for kind, text, condition in (
        ("in", "a in (select c from u where u.a = t.a)", lambda found, column: found),
        ("exists", "not exists (select c from u where u.a = t.a)", lambda found, column: ~found),
        ("scalar", "b > (select c from u where u.a = t.a)", lambda found, column: column("b") > found),
    ):
        expected = by_the_client(kind, condition, correlated)
        assert text_of(f"select a from t where {text}") == str(without_ids(expected))


def test_every_subquery_has_a_plan_id_that_its_relation_knows() -> None:
    text = "select (select max(c) from u) as m from t where a in (select a from u where c > (select min(c) from u))"
    relation = translated(text, INPUTS)
    outer = relation.with_relations
    filtered = outer.root.project.input.with_relations
    nested = filtered.references[0].project.input.with_relations
    assert kinds(relation)[:4] == ["with_relations", "project", "with_relations", "filter"]
    assert outer.root.project.expressions[0].alias.expr.subquery_expression.plan_id == outer.references[0].common.plan_id
    within = filtered.root.filter.condition.subquery_expression
    assert within.subquery_type == Subquery.SUBQUERY_TYPE_IN
    assert within.plan_id == filtered.references[0].common.plan_id
    ids = [each.references[0].common.plan_id for each in (outer, filtered, nested)]
    assert len(set(ids)) == 3
    assert min(ids) >= FIRST_PLAN_ID


def test_the_same_text_gives_the_same_plan() -> None:
    text = "select a from t where a in (select a from u) and exists (select 1 from u where u.a = t.a)"
    assert translated(text, INPUTS) == translated(text, INPUTS)


def test_inputs_are_left_as_they_are() -> None:
    before = str(INPUTS)
    translated("select a from t where a in (select a from u) order by b limit 1", INPUTS)
    assert str(INPUTS) == before


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(FirnlineError, match="the SQL reads 'nowhere', which is not among its inputs") as refusal:
        translated("select * from t join nowhere using (a)", INPUTS)
    assert refusal.value.code == "UNKNOWN_INPUT"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("select a from t tablesample (10 percent)", "Table with sample"),
        ("select * from t pivot (sum(a) for b in (1, 2))", "Table with pivots"),
        ("select a from t natural join u", "Join with method"),
        ("select a from t sort by a", "Select with sort"),
        ("select a from t limit 1 + 1", "LIMIT of something else than a number"),
        ("select * from t order by 1", "the column number 1"),
        ("select * from t group by all", "GROUP BY ALL"),
        ("select a, b from t group by a, rollup(b)", "GROUP BY with more beside"),
        ("select a + 1, count(*) from t group by rollup(a)", "an expression over grouping sets without a name"),
        ("select a, a % 2 as k, count(*) from t group by a, k", "GROUP BY k, which may be a column or a % 2"),
        ("select a as j, a % 2 as k, count(*) from t group by j, k", "GROUP BY k, which may be a column or a % 2"),
        ("select 'x' as k, count(*) from t group by k", "GROUP BY k, which may be a column or 'x'"),
        ("with recursive r as (select 1) select * from r", "With with recursive"),
        ("select a from t where a > all (select a from u)", "All"),
        ("insert into t select 1", "no query"),
        ("select 1; select 2", "one statement"),
        ("select v.* from t lateral view explode(xs) v as e", "all columns of a LATERAL VIEW"),
        ("select from where", "cannot read the SQL"),
    ],
)
def test_what_has_no_translation_is_named(text: str, named: str) -> None:
    with pytest.raises(FirnlineError) as refusal:
        translated(text, INPUTS)
    assert refusal.value.code == "OPAQUE_SQL"
    assert named in refusal.value.what
