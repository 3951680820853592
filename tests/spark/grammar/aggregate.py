"""Aggregates and window functions of random stages, in PySpark, in SQL and in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from firnline.model import sql_value as sql
from tests.spark.grammar.expression import EXACT, Expr

ORDERED = ("int", "str", "dbl", "dec", "bool")
NUMBERS = {"int": "int", "dbl": "dbl", "dec": "dec", "approx": "approx"}
MEANS = {"int": "approx", "dbl": "approx", "dec": "out", "approx": "approx"}
ROUGH = {"int": "approx", "dbl": "approx"}
MEAN_PLACES = 10
"""Of an average of decimal(30,6)."""


@dataclass(frozen=True)
class Aggregation:
    """The kinds it takes with the kind that it gives for each; a column; SQL; and a function of all values of a group."""

    gives: dict[str, str]
    column: Callable[[Column], Column]
    text: str
    value: Callable[[list[Any]], Any]


def same(*kinds: str) -> dict[str, str]:
    return {kind: kind for kind in kinds}


def to(kind: str, *kinds: str) -> dict[str, str]:
    return dict.fromkeys(kinds, kind)


def mean(values: list[Any]) -> Any:
    is_decimal = any(hasattr(value, "quantize") for value in values)
    return sql.average(values, MEAN_PLACES if is_decimal else None)


def root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


AGGREGATIONS = {
    "sum": Aggregation(NUMBERS, F.sum, "sum({})", sql.total),
    "count": Aggregation(to("int", *EXACT, "approx"), F.count, "count({})", lambda values: len(sql.present(values))),
    "avg": Aggregation(MEANS, F.avg, "avg({})", mean),
    "min": Aggregation(same(*ORDERED), F.min, "min({})", sql.least),
    "max": Aggregation(same(*ORDERED), F.max, "max({})", sql.greatest),
    "count distinct": Aggregation(
        to("int", *EXACT), F.count_distinct, "count(DISTINCT {})", lambda values: len(sql.distinct_values(values))
    ),
    "sum distinct": Aggregation(
        same("int"), F.sum_distinct, "sum(DISTINCT {})", lambda values: sql.total(sql.distinct_values(values))
    ),
    "every": Aggregation(same("bool"), F.bool_and, "bool_and({})", lambda values: sql.least(values)),
    "some": Aggregation(same("bool"), F.bool_or, "bool_or({})", lambda values: sql.greatest(values)),
    "count if": Aggregation(to("int", "bool"), F.count_if, "count_if({})", lambda values: sum(value is True for value in values)),
    "var_pop": Aggregation(ROUGH, F.var_pop, "var_pop({})", lambda values: sql.variance(values, is_sample=False)),
    "variance": Aggregation(ROUGH, F.variance, "variance({})", lambda values: sql.variance(values, is_sample=True)),
    "stddev": Aggregation(ROUGH, F.stddev, "stddev({})", lambda values: root(sql.variance(values, is_sample=True))),
    "percentile": Aggregation(
        to("approx", "int"), lambda a: F.percentile(a, 0.25), "percentile({}, 0.25)", lambda values: sql.percentile(values, 0.25)
    ),
    "set": Aggregation(
        to("out", "int", "str", "bool"),
        lambda a: F.sort_array(F.collect_set(a)),
        "sort_array(collect_set({}))",
        lambda values: tuple(sql.distinct_values(values)),
    ),
    "list": Aggregation(
        to("out", *ORDERED),
        lambda a: F.sort_array(F.collect_list(a)),
        "sort_array(collect_list({}))",
        lambda values: tuple(sorted(sql.present(values), key=sql.rank)),
    ),
}


@dataclass(frozen=True)
class Agg:
    """One aggregate; with ``only`` of the rows for which that is true."""

    name: str
    function: str
    argument: Expr
    only: Expr | None = None

    @property
    def kind(self) -> str:
        return AGGREGATIONS[self.function].gives[self.argument.kind]

    def column(self, *, as_text: bool) -> Column:
        made = F.expr(self._text()) if as_text or self.only else AGGREGATIONS[self.function].column(self.argument.column())
        return made.alias(self.name)

    def _text(self) -> str:
        text = AGGREGATIONS[self.function].text.format(self.argument.text())
        return f"{text} FILTER (WHERE {self.only.text()})" if self.only else text

    def value(self, rows: Sequence[dict[str, Any]]) -> Any:
        chosen = [row for row in rows if self.only is None or self.only.value(row) is True]
        return AGGREGATIONS[self.function].value([self.argument.value(row) for row in chosen])
