"""Spark hashes what ``model.digest`` hashes, and digests behave as promised on the real thing."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firnline.engine import hashing
from firnline.errors import FirnlineError
from firnline.model import digest as twin
from firnline.model.digest import Digest

pytestmark = pytest.mark.spark

INT, LONG, STRING = T.IntegerType(), T.LongType(), T.StringType()


def decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def integers(bits: int) -> SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> SearchStrategy[Decimal]:
    most = 10**precision - 1
    edges = [
        edge
        for edge in (0, -1, 127, -128, 128, 10**18 - 1, 1 - 10**18, 10**18, -(10**18), 2**63, most, -most)
        if abs(edge) <= most
    ]
    return (st.sampled_from(edges) | st.integers(-most, most)).map(lambda unscaled: decimal(unscaled, scale))


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)
LEAVES: dict[T.DataType, SearchStrategy[Any]] = {
    T.BooleanType(): st.booleans(),
    T.ByteType(): integers(8),
    T.ShortType(): integers(16),
    INT: integers(32),
    LONG: integers(64),
    T.FloatType(): st.floats(width=32),
    T.DoubleType(): st.floats() | st.just(-0.0),
    **{
        T.DecimalType(p, s): decimals(p, s)
        for p, s in ((5, 0), (10, 2), (18, 18), (20, 2), (38, 0), (38, 10), (38, 18), (38, 19), (38, 38))
    },
    STRING: TEXT,
    T.StringType("UNICODE_CI"): TEXT,
    T.BinaryType(): st.binary(max_size=70),
    T.DateType(): st.dates(),
    T.TimestampType(): st.datetimes(timezones=st.just(UTC)),
    T.TimestampNTZType(): st.datetimes(),
}
KEYS = (INT, STRING, T.DateType(), T.DecimalType(20, 2))
TYPES: SearchStrategy[T.DataType] = st.recursive(
    st.sampled_from(list(LEAVES)),
    lambda inner: st.one_of(
        inner.map(T.ArrayType),
        st.lists(inner, min_size=1, max_size=3).map(lambda kinds: structure(*kinds)),
        st.builds(T.MapType, st.sampled_from(KEYS), inner),
    ),
    max_leaves=4,
)


def structure(*kinds: T.DataType, names: Sequence[str] = ()) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in zip(names or NAMES, kinds, strict=False)])


NAMES = tuple(f"{awkward}{n}" for n in range(20) for awkward in ("a.b", "two words", "back`tick", "größe", "🧊", "plain"))


def values(kind: T.DataType) -> SearchStrategy[Any]:
    """Values of a type as Python has them, nulls among them."""
    match kind:
        case T.ArrayType(elementType=element):
            some: SearchStrategy[Any] = st.lists(values(element), max_size=4)
        case T.StructType(fields=fields):
            some = st.tuples(*(values(field.dataType) for field in fields))
        case T.MapType(keyType=key, valueType=value):
            some = st.dictionaries(LEAVES[key], values(value), max_size=4)
        case _:
            some = LEAVES[kind]
    return st.one_of(some, some, some, st.none())


def drawn(strategy: SearchStrategy[Any], count: int) -> list[Any]:
    """Many examples at once, for a Spark job costs more than a thousand rows."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


def frame(
    spark: SparkSession, kinds: Sequence[T.DataType], rows: Sequence[tuple[Any, ...]], names: Sequence[str] = ()
) -> DataFrame:
    return spark.createDataFrame(list(rows), structure(*kinds, names=names))


def fields_of(kinds: Sequence[T.DataType]) -> list[tuple[int, str, T.DataType]]:
    return [(3 * place + 1, NAMES[place], kind) for place, kind in enumerate(kinds)]


def hashes(spark: SparkSession, kind: T.DataType, examples: Sequence[Any]) -> list[int | None]:
    """The hash of each value, on which both evaluations must agree: on local rows Spark interprets, elsewhere it compiles."""
    local = frame(spark, [LONG, kind], list(enumerate(examples)), ["n", "v"])
    column = hashing.value_hash(F.col("v"), kind)
    interpreted, compiled = (
        [row[1] for row in sorted(data.select("n", column).collect())] for data in (local, local.repartition(1))
    )
    assert interpreted == compiled
    return interpreted


def digested(data: DataFrame, fields: Sequence[tuple[int, str, T.DataType]]) -> Digest:
    hashed = data.select("_diff", *hashing.hash_columns(fields).values())
    return hashing.digest_of(hashed.agg(*hashing.digest_columns().values()).collect()[0].asDict())


FIXED: list[T.DataType] = [
    T.ArrayType(structure(INT, STRING, T.ArrayType(T.DoubleType()))),
    T.MapType(STRING, T.ArrayType(INT)),
    structure(structure(T.DateType()), T.MapType(INT, T.DecimalType(38, 10))),
]


@pytest.mark.parametrize("kinds", [[*LEAVES, *FIXED], "drawn"])
def test_every_value_row_part_and_digest_equals_the_twin(spark: SparkSession, kinds: list[T.DataType] | str) -> None:
    kinds = drawn(TYPES, 25) if isinstance(kinds, str) else kinds
    rows = drawn(st.tuples(st.integers(-3, 3), *map(values, kinds)), 300)
    fields = fields_of(kinds)
    names = ["n", "_diff", *(name for _, name, _ in fields)]
    local = frame(spark, [LONG, INT, *kinds], [(n, *row) for n, row in enumerate(rows)], names)
    columns = [
        *(hashing.value_hash(hashing._column(name), kind) for _, name, kind in fields),
        *(hashing.row_hash(seed, fields) for seed in twin.SEEDS),
        hashing.part_of([(name, kind) for _, name, kind in fields], 7),
    ]
    for data in (local, local.repartition(2)):
        collected = data.select("n", *(column.alias(f"c{n}") for n, column in enumerate(columns))).collect()
        got = {row[0]: row[1:] for row in collected}
        for n, (_, *row) in enumerate(rows):
            for place, value in enumerate(row):
                assert got[n][place] == (None if value is None else twin.chain(value)), (kinds[place], value)
            by_id = {field: value for (field, _, _), value in zip(fields, row, strict=True)}
            assert got[n][len(row) :] == (*(twin.row_hash(seed, by_id) for seed in twin.SEEDS), twin.part_of(row, 7))
        ids = [field for field, _, _ in fields]
        expected = twin.digest((dict(zip(ids, row, strict=True)), diff) for diff, *row in rows)
        assert digested(data, fields) == expected


@pytest.mark.parametrize(
    ("narrow", "wide", "examples"),
    [
        (T.ByteType(), INT, [-128, 0, 127]),
        (T.BooleanType(), INT, [False, True]),
        (INT, LONG, [-(2**31), -1, 0, 2**31 - 1]),
        (T.FloatType(), T.DoubleType(), [0.5, -1.25, float("inf"), float("nan")]),
        (T.DecimalType(10, 2), T.DecimalType(20, 2), [decimal(n, 2) for n in (0, 1, -1, 10**10 - 1)]),
        (T.DecimalType(19, 2), T.DecimalType(38, 2), [decimal(n, 2) for n in (10**18 - 1, 10**18, -(10**18), 10**19 - 1)]),
        (T.ArrayType(INT), T.ArrayType(LONG), [[], [None], [1, 2]]),
        (T.VarcharType(5), STRING, ["", "héllo"]),
    ],
)
def test_widening_a_type_keeps_the_hash(spark: SparkSession, narrow: T.DataType, wide: T.DataType, examples: list[Any]) -> None:
    shown = STRING if isinstance(narrow, T.VarcharType) else narrow
    data = frame(spark, [shown], [(value,) for value in examples], ["v"]).repartition(1)
    pairs = data.select(hashing.value_hash(F.col("v"), narrow), hashing.value_hash(F.col("v").cast(wide), wide)).collect()
    assert all(narrowed == widened for narrowed, widened in pairs)
    assert len({narrowed for narrowed, _ in pairs}) == len(examples)


def test_zeros_are_one_value_and_nans_are_one_value(spark: SparkSession) -> None:
    nans = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, (0x7FF8 << 48) + 1, 0xFFF8 << 48)]
    got = hashes(spark, T.DoubleType(), [0.0, -0.0, *nans])
    assert got[0] == got[1] == twin.chain(0.0)
    assert set(got[2:]) == {twin.chain(float("nan"))}


def test_instants_are_microseconds_since_1970(spark: SparkSession) -> None:
    instants = [
        datetime(1, 1, 1),
        datetime(1582, 10, 10, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(9999, 12, 31, 23, 59, 59, 1),
    ]
    expected = [twin.chain(instant) for instant in instants]
    assert hashes(spark, T.TimestampNTZType(), instants) == expected
    assert hashes(spark, T.TimestampType(), [instant.replace(tzinfo=UTC) for instant in instants]) == expected
    assert twin.chain(instants[2]) == twin.chain(-1)
    assert hashes(spark, T.DateType(), [date.min, date.max]) == [twin.chain(date.min), twin.chain(date.max)]


def test_text_of_every_length_is_hashed_as_its_bytes(spark: SparkSession) -> None:
    texts = ["x" * length for length in range(130)]
    assert hashes(spark, STRING, texts) == [twin.chain(text) for text in texts]
    assert hashes(spark, T.StringType("UNICODE_CI"), ["a", "A"]) == [twin.chain("a"), twin.chain("A")]


def test_nulls_and_emptiness_inside_nested_values_are_told_apart(spark: SparkSession) -> None:
    arrays = hashes(
        spark, T.ArrayType(T.ArrayType(INT)), [None, [], [None], [None, None], [[]], [[None]], [[], None], [None, []]]
    )
    assert arrays[0] is None
    assert len(set(arrays)) == len(arrays)
    maps = hashes(spark, T.MapType(STRING, INT), [{}, {"a": None}, {"b": None}, {"a": 1, "b": 2}, {"a": 2, "b": 1}])
    assert len(set(maps)) == len(maps)


def test_the_order_of_map_entries_does_not_matter(spark: SparkSession) -> None:
    one, other = hashes(spark, T.MapType(STRING, INT), [{"a": 1, "b": None}, {"b": None, "a": 1}])
    assert one == other


def test_a_null_says_in_which_column_it_is(spark: SparkSession) -> None:
    fields = fields_of([STRING, STRING])
    data = frame(spark, [STRING, STRING], [(None, "a"), ("a", None)])
    parts = hashing.part_of([(name, kind) for _, name, kind in fields], 1 << 30)
    first, second = data.select(hashing.row_hash(1, fields), parts).collect()
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_adding_a_null_column_renaming_and_reordering_keep_the_digest(spark: SparkSession) -> None:
    data = frame(spark, [INT, INT, STRING], [(1, 7, "a"), (-2, None, "b"), (1, 7, None)], ["_diff", "x", "y"])
    before = digested(data, [(1, "x", INT), (2, "y", STRING)])
    assert before != Digest()
    changed = data.select(F.lit(None).cast("date").alias("new"), F.col("y").alias("z.z"), F.col("x").cast("bigint"), "_diff")
    assert digested(changed, [(9, "new", T.DateType()), (2, "z.z", STRING), (1, "x", LONG)]) == before


def test_a_digest_adds_up_over_any_split_and_cancels_with_negative_weights(spark: SparkSession) -> None:
    fields = [(1, "id", LONG), (2, "t", STRING)]
    data = spark.range(1000).select("id", F.col("id").cast("string").alias("t"), (F.col("id") % 5 - 1).alias("_diff"))
    whole = digested(data, fields)
    hashed = data.select("*", *hashing.hash_columns(fields).values())
    groups = hashed.groupBy(F.pmod(F.xxhash64("id"), F.lit(3))).agg(*hashing.digest_columns().values()).collect()
    assert sum((hashing.digest_of(row.asDict()) for row in groups), Digest()) == whole
    at_hand = data.select("*", F.lit(7).alias("e"), F.lit(8).alias("p"), *hashing.hash_columns(fields).values()).toArrow()
    assert hashing.digests_of(at_hand, ("e", "p"))[7, 8] == whole
    undone = whole + digested(data.withColumn("_diff", -F.col("_diff")), fields)
    assert undone == Digest(rows=2 * whole.rows)
    assert undone.is_same_state(Digest())


def test_no_rows_and_no_columns(spark: SparkSession) -> None:
    assert digested(frame(spark, [INT, STRING], [], ["_diff", "t"]), [(1, "t", STRING)]) == Digest()
    assert digested(frame(spark, [INT], [(2,)], ["_diff"]), []) == twin.digest([({}, 2)])
    parts = spark.range(1).select(hashing.part_of([("id", LONG)], 1), hashing.part_of([], 5)).collect()
    assert parts[0][:] == (0, twin.part_of([], 5))
    assert spark.range(1).select(hashing.part_of([("id", LONG)], 8)).schema[0].dataType == INT


def test_a_table_of_hundreds_of_columns_has_a_digest(spark: SparkSession) -> None:
    names = [f"c{n}" for n in range(300)]
    data = frame(spark, [INT] * 301, [tuple(range(301))], ["_diff", *names]).withColumn("_diff", F.lit(1)).repartition(1)
    expected = twin.digest([({n: n + 1 for n in range(300)}, 1)])
    assert digested(data, [(n, name, INT) for n, name in enumerate(names)]) == expected


@pytest.mark.parametrize("diffs", [(2**62, 2**62), (-(2**63),), (2**40,) * 2])
def test_overflow_is_loud(spark: SparkSession, diffs: tuple[int, ...]) -> None:
    data = frame(spark, [LONG, LONG], [(diff, 1) for diff in diffs], ["_diff", "x"]).repartition(1)
    with pytest.raises(PySparkException, match="ARITHMETIC_OVERFLOW"):
        digested(data, [(1, "x", LONG)])


def test_without_ansi_mode_hash_sums_wrap_by_their_own_modulus(spark: SparkSession) -> None:
    data = frame(spark, [LONG, LONG], [(2**40, 1), (2**41, 1)], ["_diff", "x"]).repartition(1)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert digested(data, [(1, "x", LONG)]) == twin.digest([({1: 1}, 3 * 2**40)])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_weights_of_a_billion_are_exact(spark: SparkSession) -> None:
    data = frame(spark, [LONG, LONG], [(2**30, 1), (-(2**30), 2)], ["_diff", "x"])
    assert digested(data, [(1, "x", LONG)]) == twin.digest([({1: 1}, 2**30), ({1: 2}, -(2**30))])


@pytest.mark.parametrize("kind", [T.NullType(), T.DayTimeIntervalType(), T.VariantType(), T.ArrayType(T.YearMonthIntervalType())])
def test_a_type_without_canonical_form_is_refused_by_name(spark: SparkSession, kind: T.DataType) -> None:
    inner = kind.elementType if isinstance(kind, T.ArrayType) else kind
    with pytest.raises(FirnlineError, match=f"UNSUPPORTED_TYPE.*{inner.simpleString()}"):
        hashing.value_hash(F.col("v"), kind)
