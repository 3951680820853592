"""Sums of doubles that do not depend on the order of rows.

A finite double v is cut into signed digits of 32 bits, v = sum of d_k * u_k with u_k = 2^(32k - 160), which are summed as
bigints: exactly, in any order. The total is put together from the sums in one fixed order. So equal multisets have equal sums,
bit for bit, however they were cut into epochs, waves and partitions; against the true sum the error is a few units in the last
place.

Between 2^-160 and 2^128 in magnitude; below, it is rounded; at or above, the row is an error, since silence would be wrong.
NaN and the infinities are counted beside and win as they do in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql.connect.proto import Expression

from firnline.incremental.relation import boolean, call, cast, double, integer, text

_LOWEST = -160
_DIGITS = 9
_BITS = 32


def double_parts(value: Expression) -> tuple[list[Expression], Callable[[Sequence[Expression]], Expression]]:
    """The terms to add up for a double (digits, then NaNs and both infinities), and the double from their sums."""
    is_finite = call("and", call("not", call("isnan", value)), call("<", call("abs", value), double(float("inf"))))
    finite = call("if", call("coalesce", is_finite, boolean(False)), value, double(0.0))
    terms = [*_digits(finite)]
    specials = [call("isnan", value), _is(value, float("inf")), _is(value, float("-inf"))]
    terms += [call("if", call("coalesce", each, boolean(False)), integer(1), integer(0)) for each in specials]
    return terms, _total


def _digits(value: Expression) -> list[Expression]:
    """Signed digits from the highest: d_k = round(v / u_k) - round(v / u_k+1) * 2^32, every step of which is exact in binary."""
    top = double(2.0 ** (_LOWEST + _BITS * _DIGITS))
    too_large = call("raise_error", text("a sum of doubles met a value of 2^128 or more: cast it to decimal, or scale it"))
    bounded = call("if", call(">=", call("abs", value), top), cast(too_large, "double"), value)
    rounded = [call("rint", call("/", bounded, _unit(place))) for place in reversed(range(_DIGITS))]
    shifted = [double(0.0), *(call("*", each, double(2.0**_BITS)) for each in rounded[:-1])]
    return [cast(call("-", one, other), "bigint") for one, other in zip(rounded, shifted, strict=True)]


def _total(sums: Sequence[Expression]) -> Expression:
    digits, (nans, ups, downs) = sums[:_DIGITS], sums[_DIGITS:]
    total = double(0.0)
    for place, digit in zip(reversed(range(_DIGITS)), digits, strict=True):
        total = call("+", total, call("*", cast(digit, "double"), _unit(place)))
    up, down = call(">", ups, integer(0)), call(">", downs, integer(0))
    is_nan = call("or", call(">", nans, integer(0)), call("and", up, down))
    infinite = call("when", up, double(float("inf")), down, double(float("-inf")), total)
    return call("if", is_nan, double(float("nan")), infinite)


def _unit(place: int) -> Expression:
    return double(2.0 ** (_LOWEST + _BITS * place))


def _is(value: Expression, other: float) -> Expression:
    return call("==", value, double(other))
