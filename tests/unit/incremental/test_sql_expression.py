"""Texts of expressions as Connect protobuf, without Spark. What they mean to Spark is tested in tests/spark/test_sql.py."""

from __future__ import annotations

from decimal import Decimal

import pytest
from google.protobuf.text_format import MessageToString, Parse
from pyspark.sql.connect.proto import Expression
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from firnline.errors import FirnlineError
from firnline.incremental.relation import alias, call
from firnline.incremental.sql_expression import parsed


def column(name: str) -> Expression:
    expression = Expression()
    expression.unresolved_attribute.unparsed_identifier = name
    return expression


def literal(**value: object) -> Expression:
    return Expression(literal=Expression.Literal(**value))  # type: ignore[arg-type]


A, B = column("a"), column("b")
ONE, TWO = literal(integer=1), literal(integer=2)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", "integer", 1),
        ("-1", "integer", -1),
        ("2147483648", "long", 2147483648),
        ("-2147483648", "integer", -2147483648),
        ("1L", "long", 1),
        ("-1L", "long", -1),
        ("1S", "short", 1),
        ("1Y", "byte", 1),
        ("1.5D", "double", 1.5),
        ("1e3", "double", 1000.0),
        ("0.5F", "float", 0.5),
        ("true", "boolean", True),
        ("'x'", "string", "x"),
        ('"x"', "string", "x"),
        ("'it''s'", "string", "it's"),
        (r"'a\'b\n\d\\d\%'", "string", "a'b\nd\\d\\%"),
        (r"r'\d'", "string", r"\d"),
        ("'a' 'b'", "string", "ab"),
        ("X'1F'", "binary", b"\x1f"),
        ("date'1970-01-02'", "date", 1),
    ],
)
def test_literals_have_sparks_types(text: str, kind: str, value: object) -> None:
    found = parsed(text).literal
    assert found.WhichOneof("literal_type") == kind
    assert getattr(found, kind) == value


@pytest.mark.parametrize(
    ("text", "value", "precision", "scale"),
    [
        ("1.5", "1.5", 2, 1),
        ("1.50", "1.50", 3, 2),
        ("0.05", "0.05", 2, 2),
        ("-1.5", "-1.5", 2, 1),
        ("9223372036854775808", "9223372036854775808", 19, 0),
        ("2.50BD", "2.50", 3, 2),
        ("1E3BD", "1000", 4, 0),
    ],
)
def test_decimals_have_the_narrowest_type(text: str, value: str, precision: int, scale: int) -> None:
    found = parsed(text).literal.decimal
    assert (found.value, found.precision, found.scale) == (value, precision, scale)
    assert Decimal(found.value).is_finite()


def test_null_is_untyped() -> None:
    assert parsed("null").literal.null.WhichOneof("kind") == "null"


@pytest.mark.parametrize(
    ("text", "amount", "type_name"),
    [
        ("interval 1 day", 86_400_000_000, "interval day"),
        ("interval '1' day", 86_400_000_000, "interval day"),
        ("interval 2 weeks", 14 * 86_400_000_000, "interval day"),
        ("interval '1.5' second", 1_500_000, "interval second"),
        ("interval '1 day 2 hours'", 26 * 3_600_000_000, "interval day to hour"),
        ("interval -3 months", -3, "interval month"),
        ("interval '1 year 2 months'", 14, "interval year to month"),
    ],
)
def test_intervals_have_the_units_of_the_text(text: str, amount: int, type_name: str) -> None:
    found = parsed(text).literal
    assert getattr(found, found.WhichOneof("literal_type") or "") == amount
    assert proto_schema_to_pyspark_data_type(found.data_type).simpleString() == type_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", call("==", A, ONE)),
        ("a == 1", call("==", A, ONE)),
        ("a != 1", call("not", call("==", A, ONE))),
        ("a <> 1", call("not", call("==", A, ONE))),
        ("a <=> 1", call("<=>", A, ONE)),
        ("a is distinct from 1", call("not", call("<=>", A, ONE))),
        ("a is null", call("isNull", A)),
        ("a is not null", call("isNotNull", A)),
        ("a is true", call("<=>", A, literal(boolean=True))),
        ("a and b or not a", call("or", call("and", A, B), call("not", A))),
        ("-a", call("negative", A)),
        ("a in (1, 2)", call("in", A, ONE, TWO)),
        ("a not in (1)", call("not", call("in", A, ONE))),
        ("a between 1 and 2", call("between", A, ONE, TWO)),
        ("a like 'x'", call("like", A, literal(string="x"))),
        ("a not like 'x' escape '/'", call("not", call("like", A, literal(string="x"), literal(string="/")))),
        ("a rlike 'x'", call("rlike", A, literal(string="x"))),
        ("a || b", call("concat", A, B)),
        ("a div b", call("div", A, B)),
        ("case when a then 1 else 2 end", call("when", A, ONE, TWO)),
        ("case a when 1 then 2 end", call("when", call("==", A, ONE), TWO)),
        ("if(a, 1, 2)", call("if", A, ONE, TWO)),
        ("current_date", call("current_date")),
        ("extract(year from a)", call("extract", literal(string="year"), A)),
        ("trim(both 'x' from a)", call("trim", literal(string="x"), A)),
        ("trim(leading from a)", call("ltrim", A)),
        ("position('x' in a)", call("locate", literal(string="x"), A)),
    ],
)
def test_operators_have_the_names_of_the_connect_client(text: str, expected: Expression) -> None:
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a || b + 1", "(a || b) + 1"),
        ("a | b & 1", "a | (b & 1)"),
        ("a | b ^ 1", "a | (b ^ 1)"),
        ("a << 1 + 2", "a << (1 + 2)"),
        ("a = b < 1", "(a = b) < 1"),
        ("a & 1 = 1", "(a & 1) = 1"),
        ("not a = b", "not (a = b)"),
        ("a = b is null", "(a = b) is null"),
        ("a or b and a", "a or (b and a)"),
        ("- a * b", "(-a) * b"),
    ],
)
def test_operators_bind_as_in_spark(text: str, same: str) -> None:
    assert parsed(text) == parsed(same)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("substring(a, 1, 2)", call("substring", A, ONE, TWO)),
        ("substring(a from 1 for 2)", call("substring", A, ONE, TWO)),
        ("date_add(a, 1)", call("date_add", A, ONE)),
        ("date_sub(a, 1)", call("date_sub", A, ONE)),
        ("datediff(a, b)", call("datediff", A, B)),
        ("datediff(day, a, b)", call("timestampdiff", literal(string="day"), A, B)),
        ("dateadd(month, 1, a)", call("timestampadd", literal(string="month"), ONE, A)),
        ("log(2, a)", call("log", TWO, A)),
        ("log(a)", call("log", A)),
        ("date_trunc('month', a)", call("date_trunc", literal(string="month"), A)),
        ("trunc(a, 'month')", call("trunc", A, literal(string="month"))),
        ("regexp_extract(a, b, 1)", call("regexp_extract", A, B, ONE)),
        ("trim('x', a)", call("trim", literal(string="x"), A)),
        ("COALESCE(a, b)", call("COALESCE", A, B)),
        ("array(a, b)", call("array", A, B)),
        ("first(a) ignore nulls", call("first", A, literal(boolean=True))),
        ("my_own(a)", call("my_own", A)),
    ],
)
def test_functions_keep_the_order_of_their_arguments(text: str, expected: Expression) -> None:
    assert parsed(text) == expected


def test_distinct_belongs_to_the_function() -> None:
    expected = call("count", A, B)
    expected.unresolved_function.is_distinct = True
    assert parsed("count(distinct a, b)") == expected


def test_a_filter_becomes_a_condition_inside_the_aggregate() -> None:
    assert parsed("sum(a) filter (where b = 1)") == call("sum", call("when", call("==", B, ONE), A))
    assert parsed("count(*) filter (where b = 1)") == call("count", call("when", call("==", B, ONE), ONE))


@pytest.mark.parametrize(
    ("text", "name"),
    [("a", "a"), ("t.a", "t.a"), ("s.x.y.z.w", "s.x.y.z.w"), ("`a b`.c", "`a b`.c"), ("`x.y`", "`x.y`"), ("`a``b`", "`a``b`")],
)
def test_names_keep_their_qualifiers(text: str, name: str) -> None:
    assert parsed(text) == column(name)


@pytest.mark.parametrize(
    ("text", "proto"),
    [
        ("*", "unresolved_star {}"),
        ("t.*", 'unresolved_star { unparsed_target: "t.*" }'),
        (
            "m['k'].x",
            """unresolved_extract_value { child { unresolved_extract_value {
                 child { unresolved_attribute { unparsed_identifier: "m" } } extraction { literal { string: "k" } } } }
               extraction { literal { string: "x" } } }""",
        ),
        (
            "transform(a, x -> X.f)",
            """unresolved_function { function_name: "transform" arguments { unresolved_attribute { unparsed_identifier: "a" } }
                 arguments { lambda_function { arguments { name_parts: "x" } function { unresolved_extract_value {
                   child { unresolved_named_lambda_variable { name_parts: "X" } }
                   extraction { literal { string: "f" } } } } } } }""",
        ),
        (
            "cast(a as decimal(10, 2))",
            'cast { expr { unresolved_attribute { unparsed_identifier: "a" } } type_str: "DECIMAL(10, 2)" }',
        ),
        (
            "try_cast(a as long)",
            'cast { expr { unresolved_attribute { unparsed_identifier: "a" } } type_str: "BIGINT" eval_mode: EVAL_MODE_TRY }',
        ),
        (
            "rank() over (partition by a order by b desc rows between 1 preceding and unbounded following)",
            """window { window_function { unresolved_function { function_name: "rank" } }
                 partition_spec { unresolved_attribute { unparsed_identifier: "a" } }
                 order_spec { child { unresolved_attribute { unparsed_identifier: "b" } }
                   direction: SORT_DIRECTION_DESCENDING null_ordering: SORT_NULLS_LAST }
                 frame_spec { frame_type: FRAME_TYPE_ROW lower { value { literal { integer: -1 } } }
                   upper { unbounded: true } } }""",
        ),
    ],
)
def test_other_forms(text: str, proto: str) -> None:
    assert MessageToString(parsed(text)) == MessageToString(Parse(proto, Expression()))


def test_aliases() -> None:
    assert parsed("a as `x y`") == alias(A, "x y")
    assert parsed("posexplode(a) as (p, e)") == alias(call("posexplode", A), "p", "e")


def test_long_conditions_are_not_nested_deeply() -> None:
    assert parsed(" or ".join(f"a = {number}" for number in range(1000))).ByteSize() > 1000


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("(select 1)", "a subquery inside an expression"),
        ("a in (select 1)", "a subquery inside an expression"),
        ("percentile_cont(0.5) within group (order by a)", "WithinGroup"),
        ("* except (a)", "Star with except"),
        ("lag(a) ignore nulls over (order by b)", "IGNORE NULLS of lag"),
        ("first(a) filter (where b)", "FILTER on first"),
        ("rank() over w", "the window w"),
        ("interval a day", "an interval whose value is no literal"),
        ("interval '1 month 2 days'", "an interval of both months and days"),
        ("interval '1.5' day", "the interval '1.5 DAY'"),
        ("a:b", "cannot read the SQL"),
        ("count(t.*)", "count(t.*), which Spark refuses"),
        ("count(distinct t.*)", "count(t.*), which Spark refuses"),
        ("count(*, 1) filter (where b)", "FILTER on"),
        ("a = b in (1)", "needs parentheses"),
        ("a collate UTF8_LCASE", "Collate"),
        ("a, b", "one expression"),
        ("a +", "cannot read the SQL"),
        ("a where b", "expected an expression"),
        (" + ".join(["a"] * 100), "nested too deeply"),
        (" + ".join(["a"] * 5000), "nested too deeply"),
        ("1" * 39, "more than 38 digits"),
    ],
)
def test_what_has_no_translation_is_named(text: str, named: str) -> None:
    with pytest.raises(FirnlineError) as refusal:
        parsed(text)
    assert refusal.value.code == "OPAQUE_SQL"
    assert named in refusal.value.what
