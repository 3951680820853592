"""Window functions of random stages, in PySpark and in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column, WindowSpec
from pyspark.sql import functions as F

from firnline.model import sql_value as sql
from tests.spark.grammar.aggregate import MEANS, NUMBERS, ORDERED, mean, same, to
from tests.spark.grammar.expression import EXACT, Expr

Ranks = Sequence[Any]
"""The values of the first column of the order: rows with equal ones are peers."""


@dataclass(frozen=True)
class Function:
    """Kinds taken and given, the order that it needs, the column of it, and its values for the rows of a part in that order.

    With the order "near" its frame are rows that differ by one at most in the first column, which must be of integers.
    """

    gives: dict[str, str]
    order: Literal["none", "first", "near", "total"]
    column: Callable[[Column, WindowSpec], Column]
    values: Callable[[list[Any], Ranks], Sequence[Any]]


def of_all(function: Callable[[list[Any]], Any]) -> Callable[[list[Any], Ranks], Sequence[Any]]:
    return lambda values, ranks: [function(values)] * len(values)


def framed(function: Callable[[list[Any]], Any], back: int, ahead: int) -> Callable[[list[Any], Ranks], Sequence[Any]]:
    return lambda values, ranks: [function(values[max(at - back, 0) : at + ahead + 1]) for at in range(len(values))]


def running(function: Callable[[list[Any]], Any]) -> Callable[[list[Any], Ranks], Sequence[Any]]:
    def values_of(values: list[Any], ranks: Ranks) -> Sequence[Any]:
        keys = [sql.rank(each) for each in ranks]
        return [function(values[: len(keys) - keys[::-1].index(key)]) for key in keys]

    return values_of


def near(function: Callable[[list[Any]], Any]) -> Callable[[list[Any], Ranks], Sequence[Any]]:
    def is_near(one: Any, other: Any) -> bool:
        return one is other if one is None or other is None else abs(one - other) <= 1

    def values_of(values: list[Any], ranks: Ranks) -> Sequence[Any]:
        pairs = [*zip(values, ranks, strict=True)]
        return [function([value for value, other in pairs if is_near(rank, other)]) for rank in ranks]

    return values_of


def sorted_list(values: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted(sql.present(values), key=sql.rank))


def ranks_of(values: list[Any], ranks: Ranks) -> Sequence[int]:
    keys = [sql.rank(each) for each in ranks]
    return [keys.index(key) + 1 for key in keys]


def dense_ranks_of(values: list[Any], ranks: Ranks) -> Sequence[int]:
    keys = [sql.rank(each) for each in ranks]
    distinct = [*dict.fromkeys(keys)]
    return [distinct.index(key) + 1 for key in keys]


def numbers_of(values: list[Any], ranks: Ranks) -> Sequence[int]:
    return range(1, len(values) + 1)


def before(values: list[Any], ranks: Ranks) -> Sequence[Any]:
    return [None, *values[:-1]]


def after(values: list[Any], ranks: Ranks) -> Sequence[Any]:
    return [*values[1:], None]


NUMBERED = to("int", *EXACT)
LISTS = to("out", *ORDERED)
FUNCTIONS = {
    "row_number": Function(NUMBERED, "total", lambda a, w: F.row_number().over(w), numbers_of),
    "rank": Function(NUMBERED, "first", lambda a, w: F.rank().over(w), ranks_of),
    "dense_rank": Function(NUMBERED, "first", lambda a, w: F.dense_rank().over(w), dense_ranks_of),
    "lag": Function(same(*EXACT), "total", lambda a, w: F.lag(a).over(w), before),
    "lead": Function(same(*EXACT), "total", lambda a, w: F.lead(a).over(w), after),
    "sum": Function(NUMBERS, "none", lambda a, w: F.sum(a).over(w), of_all(sql.total)),
    "avg": Function(MEANS, "none", lambda a, w: F.avg(a).over(w), of_all(mean)),
    "max": Function(same(*ORDERED), "none", lambda a, w: F.max(a).over(w), of_all(sql.greatest)),
    "count": Function(
        to("int", *EXACT), "none", lambda a, w: F.count(a).over(w), of_all(lambda values: len(sql.present(values)))
    ),
    "sum of two": Function(NUMBERS, "total", lambda a, w: F.sum(a).over(w.rowsBetween(-1, 0)), framed(sql.total, 1, 0)),
    "min of three": Function(same(*ORDERED), "total", lambda a, w: F.min(a).over(w.rowsBetween(-1, 1)), framed(sql.least, 1, 1)),
    "running": Function(NUMBERS, "first", lambda a, w: F.sum(a).over(w), running(sql.total)),
    "near": Function(NUMBERS, "near", lambda a, w: F.sum(a).over(w), near(sql.total)),
    "list so far": Function(LISTS, "first", lambda a, w: F.sort_array(F.collect_list(a).over(w)), running(sorted_list)),
    "list near": Function(LISTS, "near", lambda a, w: F.sort_array(F.collect_list(a).over(w)), near(sorted_list)),
}


@dataclass(frozen=True)
class Over:
    """One function of a window."""

    name: str
    function: str
    argument: Expr

    @property
    def kind(self) -> str:
        return FUNCTIONS[self.function].gives[self.argument.kind]

    @property
    def order(self) -> str:
        return FUNCTIONS[self.function].order

    def column(self, window: WindowSpec) -> Column:
        return FUNCTIONS[self.function].column(self.argument.column(), window)

    def values(self, rows: Sequence[dict[str, Any]], ranks: Ranks) -> Sequence[Any]:
        return FUNCTIONS[self.function].values([self.argument.value(row) for row in rows], ranks)
