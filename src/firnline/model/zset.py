"""Z-sets: rows with weights, and the operators of SQL over them. The reference that the incremental engine is held to.

A Z-set is a function from rows to integers, zero almost everywhere. Deltas are Z-sets, and states are sums of deltas:
Z-sets without a negative weight, which are multisets. ``map``, ``filter``, ``flat_map``, + and - are linear,
f(a + b) = f(a) + f(b).
The other operators are defined on multisets, by what they mean, not by how they change.

Rows are tuples; what is equal follows ``sql_value``. Nothing here is fast, and nothing is shared with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from firnline.model.sql_value import rank, settled

Row = tuple[Any, ...]
Condition = Callable[[Row], bool | None]
Kind = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Order:
    """One column that rows are sorted by."""

    place: int
    is_descending: bool = False
    has_nulls_last: bool = False


@dataclass(frozen=True, slots=True)
class ZSet:
    """Rows with weights other than zero.

    >>> ZSet.of([((1,), 2), ((2,), 1)]) - ZSet.of([((2,), 1)])
    ZSet(weights={(1,): 2})
    """

    weights: Mapping[Row, int]

    @classmethod
    def of(cls, changes: Iterable[tuple[Row, int]]) -> ZSet:
        """The sum of weighted rows."""
        found: dict[Row, int] = {}
        for row, weight in changes:
            row = settled(row)
            found[row] = found.get(row, 0) + weight
        return cls({row: weight for row, weight in found.items() if weight})

    @classmethod
    def rows_of(cls, rows: Iterable[Row]) -> ZSet:
        """The multiset of rows."""
        return cls.of((row, 1) for row in rows)

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self.weights.items())

    def __add__(self, other: ZSet) -> ZSet:
        return ZSet.of([*self, *other])

    def __neg__(self) -> ZSet:
        return ZSet({row: -weight for row, weight in self})

    def __sub__(self, other: ZSet) -> ZSet:
        return self + -other

    def rows(self) -> list[Row]:
        """The multiset, spelt out."""
        if any(weight < 0 for _, weight in self):
            raise ValueError("a row with a negative weight is no row")
        return [row for row, weight in self for _ in range(weight)]

    # ---- linear

    def map(self, function: Callable[[Row], Row]) -> ZSet:
        """Row by row.

        >>> ZSet.rows_of([(1, "a"), (1, "b")]).map(lambda row: row[:1])
        ZSet(weights={(1,): 2})
        """
        return ZSet.of((function(row), weight) for row, weight in self)

    def filter(self, condition: Condition) -> ZSet:
        """The rows for which a condition is true, not false or null."""
        return ZSet({row: weight for row, weight in self if condition(row) is True})

    def flat_map(self, function: Callable[[Row], Iterable[Row]]) -> ZSet:
        """A generator: any number of rows for each."""
        return ZSet.of((made, weight) for row, weight in self for made in function(row))

    # ---- of two

    def join(self, other: ZSet, kind: Kind, on: Callable[[Row, Row], bool | None], widths: tuple[int, int]) -> ZSet:
        """The pairs for which a condition is true; widths say how many nulls stand for a row that has no match.

        >>> one, two = ZSet.rows_of([(1,), (None,)]), ZSet.rows_of([(1,), (2,)])
        >>> one.join(two, "full", lambda left, right: left == right, (1, 1)).rows()
        [(1, 1), (None, None), (None, 2)]
        """
        if kind == "right":
            turned = other.join(self, "left", lambda left, right: on(right, left), widths[::-1])
            return turned.map(lambda row: row[widths[1] :] + row[: widths[1]])
        if kind in ("semi", "anti"):
            return self.filter(lambda row: any(on(row, match) is True for match, _ in other) == (kind == "semi"))
        pairs = ZSet.of((row + match, weight * times) for row, weight in self for match, times in other if on(row, match) is True)
        if kind == "inner":
            return pairs
        nothing = (None,) * widths[0], (None,) * widths[1]
        pairs += self.join(other, "anti", on, widths).map(lambda row: row + nothing[1])
        if kind == "full":
            lonely = other.join(self, "anti", lambda left, right: on(right, left), widths[::-1])
            pairs += lonely.map(lambda row: nothing[0] + row)
        return pairs

    def intersect(self, other: ZSet, *, is_all: bool) -> ZSet:
        """The rows of both: as often as in both, or once."""
        return self._by_counts(other, lambda one, two: min(one, two) if is_all else min(one, two, 1))

    def subtract(self, other: ZSet, *, is_all: bool) -> ZSet:
        """The rows of the first without those of the second: one for one, or all of them.

        >>> one, two = ZSet.of([((1,), 3), ((2,), 2)]), ZSet.of([((1,), 1)])
        >>> one.subtract(two, is_all=True), one.subtract(two, is_all=False)
        (ZSet(weights={(1,): 2, (2,): 2}), ZSet(weights={(2,): 1}))
        """
        return self._by_counts(other, lambda one, two: max(one - two, 0) if is_all else int(one > 0 and not two))

    def _by_counts(self, other: ZSet, count: Callable[[int, int], int]) -> ZSet:
        return ZSet.of((row, count(weight, other.weights.get(row, 0))) for row, weight in self)

    # ---- of groups, parts and orders

    def distinct(self) -> ZSet:
        """Every row once."""
        return ZSet.rows_of(row for row, weight in self if weight > 0)

    def group(self, keys: Sequence[int], aggregate: Callable[[list[Row]], Row]) -> ZSet:
        """One row per group: the keys, then what is made of its rows. Without keys one row, also of nothing.

        >>> ZSet.rows_of([(None, 1), (None, 2), (3, 4)]).group([0], lambda rows: (len(rows),)).rows()
        [(None, 2), (3, 1)]
        """
        groups = self._parts(keys)
        return ZSet.rows_of(key + aggregate(rows) for key, rows in (groups.items() if keys else [((), self.rows())]))

    def window(self, partition: Sequence[int], order: Sequence[Order], function: Callable[[list[Row]], Iterable[Row]]) -> ZSet:
        """Every row with what a function of its part, in order, makes for it."""
        parts = [ordered(rows, order) for rows in self._parts(partition).values()]
        return ZSet.rows_of(row + made for rows in parts for row, made in zip(rows, function(rows), strict=True))

    def top(self, order: Sequence[Order], limit: int, offset: int = 0) -> ZSet:
        """The first rows, after skipping some.

        >>> ZSet.rows_of([(2,), (None,), (5,)]).top([Order(0, is_descending=True, has_nulls_last=True)], 1, offset=1).rows()
        [(2,)]
        """
        return ZSet.rows_of(ordered(self.rows(), order)[offset : offset + limit])

    def _parts(self, keys: Sequence[int]) -> dict[Row, list[Row]]:
        parts: dict[Row, list[Row]] = {}
        for row in self.rows():
            parts.setdefault(tuple(row[key] for key in keys), []).append(row)
        return parts


def ordered(rows: Iterable[Row], order: Sequence[Order]) -> list[Row]:
    """The rows in an order.

    >>> ordered([(None, 1), (1, 2), (1, 1)], [Order(0, has_nulls_last=True), Order(1)])
    [(1, 1), (1, 2), (None, 1)]
    """
    found = list(rows)
    for each in reversed(order):
        found.sort(key=lambda row: rank(row[each.place]), reverse=each.is_descending)
        found.sort(key=lambda row: (row[each.place] is None) == each.has_nulls_last)
    return found
