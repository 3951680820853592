"""SQL's values in Python: comparisons, conditions and aggregates, as the reference of the incremental engine sees them.

None is null. NaN equals itself and is larger than every number; -0.0 is 0.0. A comparison with null is null, and conditions
have three values. Sums are exact: of floats the true sum, rounded once. Aggregates pass over nulls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

NAN = float("nan")
"""The one NaN: being the same object, it is equal to itself wherever rows are compared."""

_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def settled(value: Any) -> Any:
    """The one form of a value: one NaN, no -0.0, tuples for lists, bytes for all that is binary.

    >>> settled([-0.0, float("nan")])[1] is NAN, str(settled(-0.0))
    (True, '0.0')
    """
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(settled(each) for each in value)
    return bytes(value) if isinstance(value, bytearray) else value


def rank(value: Any) -> tuple[Any, ...]:
    """What values are sorted by: nulls, then all others, then NaN.

    >>> sorted([NAN, 1.0, None, float("inf")], key=rank)
    [None, 1.0, inf, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(rank(each) for each in value))
    return (2,) if value is NAN else (1, value)


def equal(one: Any, other: Any) -> bool | None:
    """Whether two values are equal; null if one is.

    >>> equal(NAN, NAN), equal(1, None)
    (True, None)
    """
    return None if one is None or other is None else rank(one) == rank(other)


def less(one: Any, other: Any) -> bool | None:
    """Whether the first value is smaller; null if one is."""
    return None if one is None or other is None else rank(one) < rank(other)


def negation(condition: bool | None) -> bool | None:
    """NOT."""
    return None if condition is None else not condition


def conjunction(conditions: Iterable[bool | None]) -> bool | None:
    """AND.

    >>> conjunction([True, None]), conjunction([False, None]), conjunction([])
    (None, False, True)
    """
    found = list(conditions)
    return False if False in found else None if None in found else True


def disjunction(conditions: Iterable[bool | None]) -> bool | None:
    """OR."""
    return negation(conjunction(map(negation, conditions)))


def member(value: Any, values: Iterable[Any]) -> bool | None:
    """IN.

    >>> member(1, [2, None]), member(None, []), member(2, [2, None])
    (None, False, True)
    """
    return disjunction(equal(value, each) for each in values)


# ---- aggregates


def present(values: Iterable[Any]) -> list[Any]:
    """The values that are not null."""
    return [value for value in values if value is not None]


def total(values: Iterable[Any]) -> Any:
    """SUM; null of nothing.

    >>> total([0.1] * 10), total([float("inf"), 1.0]), total([float("inf"), float("-inf")]), total([None])
    (1.0, inf, nan, None)
    """
    found = present(values)
    if not found:
        return None
    if isinstance(found[0], Decimal):
        whole = Decimal(0)
        for value in found:
            whole = _WIDE.add(whole, value)
        return whole
    if not isinstance(found[0], float):
        return sum(found)
    special = {value for value in found if not math.isfinite(value)}
    if special:
        return next(iter(special)) if len(special) == 1 else NAN
    return settled(math.fsum(found))


def average(values: Iterable[Any], places: int | None = None) -> Any:
    """AVG; of decimals with so many places, rounded half up.

    >>> average([1, 2, None]), average([Decimal("1.00"), Decimal("1.01")], 3)
    (1.5, Decimal('1.005'))
    """
    found = present(values)
    if not found:
        return None
    if places is not None:
        return _WIDE.divide(total(found), Decimal(len(found))).quantize(Decimal(1).scaleb(-places), context=_WIDE)
    return settled(float(total(found)) / len(found))


def least(values: Iterable[Any]) -> Any:
    """MIN."""
    return min(present(values), key=rank, default=None)


def greatest(values: Iterable[Any]) -> Any:
    """MAX.

    >>> greatest([1.0, NAN, None]), least([1.0, NAN, None]), greatest([])
    (nan, 1.0, None)
    """
    return max(present(values), key=rank, default=None)


def distinct_values(values: Iterable[Any]) -> list[Any]:
    """The values that are not null, each once, in order."""
    return sorted({settled(value) for value in present(values)}, key=rank)


def variance(values: Iterable[Any], *, is_sample: bool) -> float | None:
    """VAR_SAMP or VAR_POP; null of too few.

    >>> variance([1, 3], is_sample=False), variance([1, 3], is_sample=True), variance([1], is_sample=True)
    (1.0, 2.0, None)
    """
    found = present(values)
    if len(found) < 1 + is_sample:
        return None
    if not all(map(math.isfinite, found)):
        return NAN
    exact = [Fraction(value) for value in found]
    mean = sum(exact, Fraction(0)) / len(exact)
    squares = sum(((value - mean) ** 2 for value in exact), Fraction(0))
    return float(squares / (len(exact) - is_sample))


def percentile(values: Iterable[Any], share: float) -> float | None:
    """PERCENTILE: between two values, in proportion.

    >>> percentile([4, 1, None], 0.5)
    2.5
    """
    found: Sequence[Any] = sorted(present(values))
    if not found:
        return None
    place = (len(found) - 1) * share
    low, high = found[math.floor(place)], found[math.ceil(place)]
    return float(low + (high - low) * (place - math.floor(place)))
