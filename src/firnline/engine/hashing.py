"""Hashes of rows as Spark columns: bit for bit what ``model.digest`` computes in Python.

value_hash = chain, row_hash = row_hash, part_of = part_of, and digest_of(the row of digest_columns) = digest(rows).

Every type has one canonical form, so a value keeps its hash when its column is widened (int to bigint, float to double, a decimal
to more digits of the same scale) and however an engine writes it (-0.0, the many NaNs, the order of a map's entries). Spark's
``xxhash64`` hashes doubles so already, feeds each result to the next value as its seed, and passes over nulls; where it does
otherwise, that is settled here. The expressions hold no Python code and work on Spark Connect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from firnline.errors import FirnlineError
from firnline.model import digest
from firnline.model.digest import Digest

_LONG = T.LongType()
_ROWS, _WEIGHT = "_firnline_rows", "_firnline_weight"
_HASHES = {seed: f"_firnline_hash_{seed}" for seed in digest.SEEDS}
_HALF = 32


def value_hash(column: Column, kind: T.DataType) -> Column:
    """The bigint hash of a value, equal to ``chain(value)``; null for null.

    Raises:
        FirnlineError: ``UNSUPPORTED_TYPE``, at once, for a type that has no canonical form.
    """
    return F.when(column.isNotNull(), F.xxhash64(*_canonical(column, kind)))


def row_hash(seed: int, fields: Sequence[tuple[int, str, T.DataType]]) -> Column:
    """The bigint H_seed of a row, from (field id, column name, type); the order and the names of columns do not matter."""
    parts = [
        F.when(column.isNotNull(), F.xxhash64(_long(seed), _long(field), *_canonical(column, kind))).otherwise(_long(0))
        for field, column, kind in ((field, _column(name), kind) for field, name, kind in fields)
    ]
    return F.xxhash64(_xor(parts or [_long(0)]))


def part_of(columns: Sequence[tuple[str, T.DataType]], parts: int) -> Column:
    """The part of a row as an int in [0, parts), from the (name, type) of its ``partition_by`` columns in their order."""
    if parts == 1 or not columns:
        return F.lit(digest.part_of((), parts))
    hashes = [_element_hash(_column(name), kind) for name, kind in columns]
    return F.pmod(F.xxhash64(*hashes), _long(parts)).cast(T.IntegerType())


def digest_columns() -> dict[str, Column]:
    """Aggregates, under their names, over rows with ``_diff`` and their ``hash_columns``: for ``agg``, with or without groups.

    From hashes that stand in columns, since Spark computes the ones that stand in an aggregate once for each sum of a group.

    A hash is summed as two 32-bit halves, each in [-2^31, 2^31) and near 0 in the mean, so that the sums over distinct rows stay
    far inside a bigint however many they are. A sum that leaves it nevertheless (it takes 2^32 copies of one row) is an error in
    ANSI mode, and does no harm to the hashes without it, as a bigint wraps by a digest's own modulus; counts need ANSI mode.
    """
    diff = F.col("_diff").cast(_LONG)
    sums = {_ROWS: F.sum(F.abs(diff)), _WEIGHT: F.sum(diff)}
    for seed in digest.SEEDS:
        hashed = F.col(_HASHES[seed])
        high, low = _halves(seed)
        sums[high] = F.sum(diff * F.shiftright(hashed, _HALF))
        sums[low] = F.sum(diff * (hashed.bitwiseAND(_long((1 << _HALF) - 1)) - _long(1 << (_HALF - 1))))
    return {name: column.alias(name) for name, column in sums.items()}


def digest_of(row: Mapping[str, Any]) -> Digest:
    """The digest in a collected row of ``digest_columns``; ``Digest()`` if there was no input."""
    rows, weight = (row[name] or 0 for name in (_ROWS, _WEIGHT))
    sums = []
    for seed in digest.SEEDS:
        high, low = (row[name] or 0 for name in _halves(seed))
        sums.append(((high << _HALF) + low + (weight << (_HALF - 1))) % (1 << 64))
    return Digest(rows, weight, *sums)


def hash_columns(fields: Sequence[tuple[int, str, T.DataType]]) -> dict[str, Column]:
    """The hashes of a row, under their names: what ``digest_columns`` adds up in Spark, and ``digests_of`` here."""
    return {name: row_hash(seed, fields).alias(name) for seed, name in _HASHES.items()}


def digests_of(rows: pa.Table, places: tuple[str, str]) -> dict[tuple[int, int], Digest]:
    """The digests of rows with ``_diff`` and their ``hash_columns``, by the values of two columns."""
    weights = rows["_diff"]
    parts = {_ROWS: pc.abs(weights), _WEIGHT: weights, **{name: pc.multiply(weights, rows[name]) for name in _HASHES.values()}}
    added = pa.table({**{name: rows[name] for name in places}, **parts})
    found = added.group_by(list(places)).aggregate([(name, "sum") for name in parts]).to_pylist()
    return {(row[places[0]], row[places[1]]): Digest() + Digest(*(row[f"{name}_sum"] for name in parts)) for row in found}


def check_kind(kind: T.DataType) -> None:
    """Refuse a type that has no canonical form.

    Raises:
        FirnlineError: ``UNSUPPORTED_TYPE``.
    """
    value_hash(F.lit(None), kind)


def _halves(seed: int) -> tuple[str, str]:
    return f"_firnline_high_{seed}", f"_firnline_low_{seed}"


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _long(value: int) -> Column:
    return F.lit(value).cast(_LONG)


def _xor(columns: Sequence[Column]) -> Column:
    """As a balanced tree: protobuf refuses messages nested deeper than 100, which a chain over 50 columns is."""
    if len(columns) == 1:
        return columns[0]
    middle = len(columns) // 2
    return _xor(columns[:middle]).bitwiseXOR(_xor(columns[middle:]))


def _element_hash(column: Column, kind: T.DataType) -> Column:
    return F.coalesce(value_hash(column, kind), _long(digest.NULL_ELEMENT))


def _canonical(column: Column, kind: T.DataType) -> Sequence[Column]:
    """The columns to give to ``xxhash64`` for a value that is not null; exactly one of them is not null."""
    match kind:
        case T.LongType() | T.DoubleType() | T.TimestampType() | T.TimestampNTZType() | T.BinaryType():
            return [column]
        case T.FloatType():
            return [column.cast(T.DoubleType())]
        case T.BooleanType() | T.ByteType() | T.ShortType() | T.IntegerType():
            return [column.cast(_LONG)]
        case T.DateType():
            return [F.unix_date(column).cast(_LONG)]
        case T.StringType() | T.CharType() | T.VarcharType():
            # Under a collation Spark hashes the sort key; the bytes are what is stored.
            is_plain = not isinstance(kind, T.StringType) or kind.isUTF8BinaryCollation()
            return [column if is_plain else column.cast(T.BinaryType())]
        case T.DecimalType():
            return _decimal(column, kind)
        case T.ArrayType(elementType=element):
            hashes = F.transform(column, lambda item: _element_hash(item, element))
            return [F.xxhash64(F.size(column).cast(_LONG), hashes)]
        case T.StructType(fields=fields):
            members = [_element_hash(column.getField(field.name), field.dataType) for field in fields]
            return [F.xxhash64(_long(len(fields)), *members)]
        case T.MapType(keyType=key, valueType=value):
            return [_map(column, key, value)]
    raise FirnlineError("UNSUPPORTED_TYPE", f"a value of type {kind.simpleString()} has no canonical form")


def _decimal(column: Column, kind: T.DecimalType) -> Sequence[Column]:
    """Up to 18 digits as a bigint, more as bytes. Spark goes by the column's precision, this by the value, as columns widen."""
    digits = digest.LONG_DIGITS
    if kind.precision <= digits or kind.scale > digits:
        return [column]
    short = column.try_cast(T.DecimalType(digits, kind.scale))
    return [short, F.when(short.isNull(), column)]


def _map(column: Column, key: T.DataType, value: T.DataType) -> Column:
    # Not map_entries: on Iceberg's own maps it fails at a null value.
    def of_entry(one: Column, other: Column) -> Column:
        return F.xxhash64(value_hash(one, key), _element_hash(other, value))

    entries = F.zip_with(F.map_keys(column), F.map_values(column), of_entry)
    combined = F.aggregate(entries, _long(0), lambda before, entry: before.bitwiseXOR(entry))
    return F.xxhash64(F.size(column).cast(_LONG), combined)
