"""Which expectations are answered by numbers of one pass over the rows, and which only Great Expectations can answer.

``planned`` takes an expectation only if all of it is understood here: its type, each of its arguments, the types of column and
bounds. Whatever is left (row conditions, parameters, dates as text, windows, custom ones) goes to Great Expectations itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["rows", "number", "values"]
"""About how many rows there are, about a number of a column, or about every value of a column."""

_INTEGRAL = ("int", "bigint")
_BOUNDS = frozenset({"min_value", "max_value", "strict_min", "strict_max"})


@dataclass(frozen=True, slots=True)
class Planned:
    """An expectation that numbers answer.

    Attributes:
        config: The expectation as its suite has it.
        kind: What it is about.
        measure: The number (``one_pass.NUMBERS``), or the condition that values have to meet (``one_pass.CONDITIONS``).
        column: The column, if it is about one.
    """

    config: Mapping[str, Any]
    kind: Kind
    measure: str
    column: str | None = None

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The expectation's arguments."""
        kwargs: Mapping[str, Any] = self.config["kwargs"]
        return kwargs


@dataclass(frozen=True, slots=True)
class _Type:
    """How a type of expectation is planned: its arguments, and for which kinds of column and values of them."""

    kind: Kind
    measure: str
    arguments: frozenset[str]
    accepts: Callable[[str, Mapping[str, Any]], bool]


def planned(config: Mapping[str, Any], types: Mapping[str, str]) -> Planned | None:
    """The expectation as numbers of one pass; ``types`` are Spark's of the columns. None if Great Expectations has to answer."""
    found = _TYPES.get(config["type"])
    if found is None:
        return None
    kwargs = {key: value for key, value in config["kwargs"].items() if value is not None}
    column = kwargs.pop("column", None)
    if (found.kind == "rows") != (column is None) or not kwargs.keys() <= found.arguments:
        return None
    if column is not None and (not isinstance(column, str) or column not in types):
        return None
    if not found.accepts(types[column] if column is not None else "", kwargs):
        return None
    return Planned(config, found.kind, found.measure, column)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_numeric(kind: str) -> bool:
    return kind in (*_INTEGRAL, "float", "double") or kind.startswith("decimal")


def _has_bounds(kwargs: Mapping[str, Any]) -> bool:
    bounds = [kwargs[key] for key in ("min_value", "max_value") if key in kwargs]
    flags = [kwargs[key] for key in ("strict_min", "strict_max") if key in kwargs]
    if not bounds or not all(map(_is_number, bounds)) or not all(isinstance(flag, bool) for flag in flags):
        return False
    return bool(bounds[0] <= bounds[-1])


def _has_whole_bounds(kwargs: Mapping[str, Any]) -> bool:
    return _has_bounds(kwargs) and all(_is_whole(kwargs[key]) for key in ("min_value", "max_value") if key in kwargs)


def _has_share(kwargs: Mapping[str, Any]) -> bool:
    mostly = kwargs.get("mostly", 1)
    return _is_number(mostly) and 0 <= mostly <= 1


def _any(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _has_share(kwargs)


def _between(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _is_numeric(kind) and _has_bounds(kwargs) and _has_share(kwargs)


def _set(kind: str, kwargs: Mapping[str, Any]) -> bool:
    values = kwargs.get("value_set")
    if not isinstance(values, list) or not values or not _has_share(kwargs):
        return False
    if kind == "string":
        return all(isinstance(value, str) for value in values)
    return kind in _INTEGRAL and all(map(_is_whole, values))


def _regex(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return kind == "string" and isinstance(kwargs.get("regex"), str) and _has_share(kwargs)


def _length(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return kind == "string" and _has_whole_bounds(kwargs) and _has_share(kwargs)


def _lengths_equal(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return kind == "string" and _is_whole(kwargs.get("value")) and _has_share(kwargs)


def _count(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _has_whole_bounds(kwargs)


def _equal(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _is_whole(kwargs.get("value"))


def _number(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _is_numeric(kind) and _has_bounds(kwargs)


def _share(kind: str, kwargs: Mapping[str, Any]) -> bool:
    return _has_bounds(kwargs)


def _values(condition: str, accepts: Callable[[str, Mapping[str, Any]], bool], *arguments: str) -> _Type:
    return _Type("values", condition, frozenset({"mostly", *arguments}), accepts)


_TYPES: Mapping[str, _Type] = {
    "expect_table_row_count_to_be_between": _Type("rows", "between", _BOUNDS, _count),
    "expect_table_row_count_to_equal": _Type("rows", "equal", frozenset({"value"}), _equal),
    "expect_column_values_to_not_be_null": _values("not_null", _any),
    "expect_column_values_to_be_null": _values("null", _any),
    "expect_column_values_to_be_between": _values("between", _between, *_BOUNDS),
    "expect_column_values_to_be_in_set": _values("in_set", _set, "value_set"),
    "expect_column_values_to_not_be_in_set": _values("not_in_set", _set, "value_set"),
    "expect_column_values_to_match_regex": _values("match", _regex, "regex"),
    "expect_column_values_to_not_match_regex": _values("not_match", _regex, "regex"),
    "expect_column_value_lengths_to_be_between": _values("length_between", _length, *_BOUNDS),
    "expect_column_value_lengths_to_equal": _values("length_equal", _lengths_equal, "value"),
    "expect_column_min_to_be_between": _Type("number", "min", _BOUNDS, _number),
    "expect_column_max_to_be_between": _Type("number", "max", _BOUNDS, _number),
    "expect_column_mean_to_be_between": _Type("number", "mean", _BOUNDS, _number),
    "expect_column_sum_to_be_between": _Type("number", "sum", _BOUNDS, _number),
    "expect_column_stdev_to_be_between": _Type("number", "stdev", _BOUNDS, _number),
    "expect_column_unique_value_count_to_be_between": _Type("number", "distinct", _BOUNDS, _count),
    "expect_column_proportion_of_unique_values_to_be_between": _Type("number", "distinct_share", _BOUNDS, _share),
    "expect_column_proportion_of_non_null_values_to_be_between": _Type("number", "nonnull_share", _BOUNDS, _share),
}
