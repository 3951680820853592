"""Digests: of a multiset of weighted rows, numbers that add.

digest(rows) = (sum of |_diff|, sum of _diff, sum of _diff * H1(row) mod 2^64, sum of _diff * H2(row) mod 2^64)

So digest(a + b) = digest(a) + digest(b), however rows are cut into epochs, parts, waves or layers.

H_seed(row) = xxh64 of the exclusive or, over the columns that are not null, of xxh64(seed, field id, value), where xxh64 of
several values feeds each result to the next as its seed, beginning with 42, as Spark's ``xxhash64`` does. A null column
contributes nothing and a column is known by its Iceberg field id, so that adding, renaming or reordering columns keeps every
digest. ``engine/hashing.py`` says the same in Spark's words; a property test holds the two equal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from xxhash import xxh64_intdigest

SEEDS = (1, 2)
FIRST_SEED = 42
NULL_ELEMENT = -1
LONG_DIGITS = 18
_MODULUS = 1 << 64


@dataclass(frozen=True, slots=True)
class Digest:
    """Counts and hash sums of weighted rows.

    >>> Digest(1, 1, 5, 7) + Digest(1, -1, -5, -7)
    Digest(rows=2, weight=0, first=0, second=0)
    """

    rows: int = 0
    weight: int = 0
    first: int = 0
    second: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(
            self.rows + other.rows,
            self.weight + other.weight,
            (self.first + other.first) % _MODULUS,
            (self.second + other.second) % _MODULUS,
        )

    def is_same_state(self, other: Digest) -> bool:
        """Whether both digest the same multiset once rows that cancel out are dropped."""
        return (self.weight, self.first, self.second) == (other.weight, other.first, other.second)


def digest(rows: Iterable[tuple[Mapping[int, Any], int]]) -> Digest:
    """The digest of rows given as ({field id: value}, weight)."""
    total = Digest()
    for row, weight in rows:
        first, second = (weight * row_hash(seed, row) % _MODULUS for seed in SEEDS)
        total += Digest(abs(weight), weight, first, second)
    return total


def row_hash(seed: int, row: Mapping[int, Any]) -> int:
    """H_seed of a row given by field id, as a signed 64-bit integer."""
    combined = 0
    for field, value in row.items():
        if value is not None:
            combined ^= chain(seed, field, value)
    return chain(combined)


def part_of(values: Iterable[Any], parts: int) -> int:
    """The part of a row, from the values of its ``partition_by`` columns in their order."""
    return chain(*(NULL_ELEMENT if value is None else chain(value) for value in values)) % parts


def parts_of_same(parts: Iterable[int], of: int, into: int) -> frozenset[int]:
    """Where the rows of some parts are if they are cut by the same columns into another number of parts.

    Both numbers are powers of two, so that each part of the one lies in a part of the other, or is made of some of them.

    >>> sorted(parts_of_same([1], 2, 8)), sorted(parts_of_same([5, 7], 8, 2)), sorted(parts_of_same([3], 4, 4))
    ([1, 3, 5, 7], [1], [3])
    """
    least = min(of, into)
    wanted = {part % least for part in parts}
    return frozenset(part for part in range(into) if part % least in wanted)


def chain(*values: Any) -> int:
    """xxh64 over values that are not null, each seeded by the result before it, as a signed integer."""
    result = FIRST_SEED
    for value in values:
        result = _signed(xxh64_intdigest(_encoded(value), seed=result % _MODULUS))
    return result


def _signed(value: int) -> int:
    return value - _MODULUS if value >= _MODULUS >> 1 else value


def _long(value: int) -> bytes:
    return struct.pack("<q", value)


def _encoded(value: Any) -> bytes:
    """The canonical bytes of a value: one form for all the ways in which engines write the same thing."""
    match value:
        case bool() | int():
            return _long(int(value))
        case float():
            return b"\x00\x00\x00\x00\x00\x00\xf8\x7f" if value != value else struct.pack("<d", value + 0.0)
        case str():
            return value.encode()
        case bytes() | bytearray():
            return bytes(value)
        case Decimal():
            return _decimal(value)
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            since = aware - datetime(1970, 1, 1, tzinfo=UTC)
            return _long((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds)
        case date():
            return _long(value.toordinal() - date(1970, 1, 1).toordinal())
        case Mapping():
            return _long(_map(value))
        case list() | tuple():
            return _long(chain(len(value), *(NULL_ELEMENT if item is None else chain(item) for item in value)))
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _map(value: Mapping[Any, Any]) -> int:
    combined = 0
    for key, item in value.items():
        combined ^= chain(chain(key), NULL_ELEMENT if item is None else chain(item))
    return chain(len(value), combined)


def _decimal(value: Decimal) -> bytes:
    """The unscaled value, as an integer if it has at most 18 digits, otherwise as the shortest big-endian two's complement.

    The scale is the column's own and no part of the form: the value must have it, as Spark returns it. Above a scale of 18 no
    column of 18 digits exists, and the second form is always taken.
    """
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    if abs(unscaled) < 10**LONG_DIGITS and isinstance(exponent, int) and -exponent <= LONG_DIGITS:
        return _long(unscaled)
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)
