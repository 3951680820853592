"""The numbers of many expectations, by one aggregate over the rows; rows are fetched only where one of them is not met.

Conditions and numbers are written as Great Expectations writes them for Spark, so that both find the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.names import quoted
from firnline.quality.judging import SAMPLE, Numbers, Result, judged, with_samples
from firnline.quality.planning import Planned

Kwargs = Mapping[str, Any]
_PATTERN = re.compile(r"PatternSyntaxException: (.*)")


def _between(value: Column, kwargs: Kwargs) -> Column:
    """Bounds are compared as doubles, which is what Great Expectations reads them as."""
    least, most = kwargs.get("min_value"), kwargs.get("max_value")
    found = F.lit(True)
    if least is not None:
        found = value > F.lit(float(least)) if kwargs.get("strict_min") else value >= F.lit(float(least))
    if most is not None:
        below = value < F.lit(float(most)) if kwargs.get("strict_max") else value <= F.lit(float(most))
        found = found & below if least is not None else below
    return found


CONDITIONS: Mapping[str, Callable[[Column, Kwargs], Column]] = {
    "null": lambda value, _: value.isNull(),
    "not_null": lambda value, _: value.isNotNull(),
    "between": _between,
    "in_set": lambda value, kwargs: value.isin(kwargs["value_set"]),
    "not_in_set": lambda value, kwargs: ~value.isin(kwargs["value_set"]),
    "match": lambda value, kwargs: value.rlike(kwargs["regex"]),
    "not_match": lambda value, kwargs: ~value.rlike(kwargs["regex"]),
    "length_between": lambda value, kwargs: _between(F.length(value), kwargs),
    "length_equal": lambda value, kwargs: F.length(value) == F.lit(kwargs["value"]),
}

NUMBERS: Mapping[str, Callable[[Column, str], Column]] = {
    "min": lambda value, _: F.min(value),
    "max": lambda value, _: F.max(value),
    "mean": lambda value, _: F.mean(value),
    "sum": lambda value, kind: F.sum(value.cast("double") if kind in ("int", "bigint") else value),
    "stdev": lambda value, _: F.stddev_samp(value),
    "distinct": lambda value, _: F.count_distinct(value),
    "distinct_share": lambda value, _: F.when(F.count(value) > 0, F.count_distinct(value) / F.count(value)).otherwise(F.lit(0)),
    "nonnull_share": lambda value, _: F.count(value) / F.count(F.lit(1)),
}


def answered(frame: DataFrame, expectations: Sequence[Planned]) -> tuple[int, list[Result]]:
    """How many rows there are, and the results of the expectations."""
    try:
        rows, numbers = _measured(frame, expectations)
        results = [judged(each, found) for each, found in zip(expectations, numbers, strict=True)]
        return rows, [_sampled(frame, each, found) for each, found in zip(expectations, results, strict=True)]
    except PySparkException as error:
        found = _PATTERN.search(str(error))
        if found is None:
            raise
        raise FirnlineError("BAD_SUITE", f"a suite's regex is none of Java's: {found[1]}") from error


def _measured(frame: DataFrame, expectations: Sequence[Planned]) -> tuple[int, list[Numbers]]:
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    asked: dict[str, Column] = {"rows": F.count(F.lit(1))}
    for number, each in enumerate(expectations):
        if each.column is None:
            continue
        value = F.col(quoted(each.column))
        if each.kind == "values":
            asked.setdefault(f"nulls of {each.column}", F.count(F.when(value.isNull(), 1)))
            asked[f"unexpected {number}"] = F.count(F.when(_unexpected(each), 1))
        else:
            asked.setdefault(f"{each.measure} of {each.column}", NUMBERS[each.measure](value, kinds[each.column]))
    names = list(asked)
    row = frame.agg(*(asked[name].alias(f"n{number}") for number, name in enumerate(names))).collect()[0]
    found = dict(zip(names, row, strict=True))
    rows = found["rows"]
    return rows, [
        Numbers(
            rows,
            found.get(f"nulls of {each.column}", 0),
            found.get(f"unexpected {number}", 0),
            plain(found.get(f"{each.measure} of {each.column}")),
        )
        for number, each in enumerate(expectations)
    ]


def _unexpected(planned: Planned) -> Column:
    value = F.col(quoted(str(planned.column)))
    expected = CONDITIONS[planned.measure](value, planned.kwargs)
    return ~expected if planned.measure in ("null", "not_null") else value.isNotNull() & ~expected


def _sampled(frame: DataFrame, planned: Planned, result: Result) -> Result:
    if result["success"] or planned.kind != "values" or planned.column is None:
        return result
    rows = [plain(row.asDict(recursive=True)) for row in frame.where(_unexpected(planned)).limit(SAMPLE).collect()]
    return with_samples(result, planned.column, rows)


def plain(value: Any) -> Any:
    """A value of Spark's as JSON has it, as Great Expectations writes it: decimals as numbers, times as ISO text, NaN as null."""
    match value:
        case float() if math.isnan(value):
            return None
        case bool() | int() | float() | str() | None:
            return value
        case Decimal():
            return float(value)
        case datetime() | date() | time():
            return value.isoformat()
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return str(value)
