"""What an epoch of a stage costs, and how that grows.

    seconds = fixed + change * rows that changed + state * rows of the states that are read

The log's own past tells a price where what it is the price of varied enough. Other prices are figures that were measured once, on
two cores (docs/guides/sizing.md says where), and never more than the past allows. Nothing here is a promise: beyond what was seen
it is a straight line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, inf, log2
from statistics import median
from typing import Literal

Price = Literal["fixed", "change", "state"]

FIXED = 0.9
"""Seconds of an epoch of one collection that changes little, in a warm session."""
CHANGE = 4.3e-6
"""Seconds for a row that is computed, written, hashed and published."""
STATE = 3.7e-8
"""Seconds for a row of a state that is scanned and probed."""
FILE = 0.003
"""Seconds for a data file of a log that is read without Spark."""
COMMIT = 0.1
"""Seconds of a publish, of which a catalog in SQLite does one at a time."""
TASK = 0.45
"""Seconds of a scheduler of Airflow's from queue to start of one task."""
FILE_BYTES = 512 << 20
"""What Iceberg lets a data file grow to."""

HUGE_BYTES = 10**13
MANY_COLLECTIONS = 10_000
GROWTH = (1, 10, 100, 1000)
_TELLING = 2.0
"""Rows that vary less than by this factor do not tell their price."""
_NOISE = 0.05
"""Nor do rows whose difference would be less than this share of an epoch's seconds, by the figures."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An epoch of the past: the rows that its inputs changed, those of the states that it read, and how long it took."""

    changed: float
    state: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds for an epoch, for a changed row, and for a row of state."""

    fixed: float
    change: float
    state: float
    told: tuple[Price, ...] = ()
    """Those that the log's own past tells."""

    def seconds(self, changed: float, state: float) -> float:
        """What an epoch takes."""
        return self.fixed + self.change * changed + self.state * state


@dataclass(frozen=True, slots=True)
class Shape:
    """What a stage reads in an epoch now, and how it is stored."""

    changed: int
    """Rows that its inputs change in an epoch: the median of the past."""
    state: int
    """Rows of the states that its change is computed from."""
    rows: int
    """Rows of its inputs, whether their states are read or not."""
    bytes: int
    """What its inputs take in storage, with all layers."""
    files: int
    layers: int
    parts: int
    interval: float
    """Seconds between epochs."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds of an epoch when the state, the change, or both are so many times what they are."""

    factor: int
    state: float
    change: float
    both: float


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that takes longer and longer: how long it would, how long it may, and what to do about it."""

    what: str
    seconds: float
    most: float
    todo: str

    @property
    def load(self) -> float:
        """How many times too long; up to one it holds."""
        return self.seconds / self.most


def priced(past: Sequence[Seen], *, is_full: bool = False) -> Prices:
    """The prices that explain the past best, none of them below zero.

    A stage that is computed in full at every epoch has no changes: every row of its inputs is computed each time.

    >>> prices = priced([Seen(rows, 0, 1 + rows / 1e5) for rows in (1e5, 2e5, 4e5)])
    >>> round(prices.fixed, 6), round(prices.change, 6), prices.told
    (1.0, 1e-05, ('fixed', 'change'))
    """
    figures: dict[str, float] = {"change": 0.0 if is_full else CHANGE, "state": CHANGE if is_full else STATE}
    if not past:
        return Prices(FIXED, figures["change"], figures["state"])
    values: dict[str, list[float]] = {"change": [each.changed for each in past], "state": [each.state for each in past]}
    usual = median(each.seconds for each in past)
    told = [name for name, price in figures.items() if _tells(values[name], price, usual)]
    taken = {name: price for name, price in figures.items() if name not in told}
    expected = [sum(price * values[name][at] for name, price in taken.items()) for at in range(len(past))]
    allowed = min((each.seconds / cost for each, cost in zip(past, expected, strict=True) if cost), default=1.0)
    taken = {name: price * min(1.0, allowed) for name, price in taken.items()}
    left = [each.seconds - min(1.0, allowed) * cost for each, cost in zip(past, expected, strict=True)]
    weights = [1 / max(each.seconds, 0.001) for each in past]
    error, fixed, found = inf, 0.0, dict[str, float]()
    for names in (some for count in range(len(told) + 1) for some in combinations(told, count)):
        columns = [[1.0] * len(past), *(values[name] for name in names)]
        solved = _least_squares(columns, left, weights)
        if solved is not None and min(solved) >= 0 and (off := _error(columns, left, weights, solved)) < error * (1 - 1e-9):
            error, fixed, found = off, solved[0], dict(zip(names, solved[1:], strict=True))
    prices = {**taken, **dict.fromkeys(told, 0.0), **found}
    known: dict[str, Price] = {"change": "change", "state": "state"}
    return Prices(fixed, prices["change"], prices["state"], ("fixed", *(known[name] for name in told)))


def grown(prices: Prices, shape: Shape) -> tuple[Growth, ...]:
    """What an epoch would take, along a straight line."""
    changed, state = shape.changed, shape.state
    return tuple(
        Growth(by, *(prices.seconds(changed * more, state * rows) for more, rows in ((1, by), (by, 1), (by, by))))
        for by in GROWTH
    )


def limits_of_size(prices: Prices, shape: Shape) -> list[Limit]:
    """What breaks, the first thing first, when a stage's inputs have ``HUGE_BYTES``, with as wide rows and as many parts."""
    times = HUGE_BYTES / shape.bytes
    rows = shape.rows * times
    compute = max(prices.change, prices.state)
    scan = prices.state * shape.state * times
    part = 2 * compute * rows / shape.parts  # figures are those of two cores, and a part is one task
    files = max(shape.files, ceil(HUGE_BYTES / FILE_BYTES))
    more = 2 ** ceil(log2(max(part / shape.interval, 1))) * shape.parts
    found = [
        Limit(
            "reading the states at every epoch",
            scan,
            shape.interval,
            f"spark.cores.max: {_times(scan / shape.interval)} the cores; or a longer schedule; or, where few rows change and "
            "the files are on a local disk, concordance = true",
        ),
        Limit("making one lost part again", part, shape.interval, f"parts={more} instead of {shape.parts}, and firnline rescale"),
        Limit(
            "listing the files for firnline.scan",
            FILE * files,
            shape.interval,
            "firnline maintain on a schedule, filters on all of partition_by, or firnline.read, which lets Spark list them",
        ),
        Limit(
            "computing all of it, once, and after every change of its plan",
            compute * rows,
            shape.interval,
            f"{_times(compute * rows / shape.interval)} the cores for that time; try changed code on a branch from a late epoch",
        ),
    ]
    return _sorted(found)


def limits_of_number(prices: Prices, interval: float) -> list[Limit]:
    """What breaks, the first thing first, when a project has ``MANY_COLLECTIONS`` as small as one that changes little."""
    fixed = prices.fixed * MANY_COLLECTIONS
    return _sorted(
        [
            Limit(
                "epochs that change little, one after the other",
                fixed,
                interval,
                f"pipelines that run beside one another, on {ceil(fixed / interval)} engines or more",
            ),
            Limit(
                "starting a task of Airflow's for each",
                TASK * MANY_COLLECTIONS,
                interval,
                'tasks="per-epoch", several pipelines, several schedulers',
            ),
            Limit(
                "commits to one catalog, one at a time",
                COMMIT * MANY_COLLECTIONS,
                interval,
                "a catalog in PostgreSQL, where tables are committed beside one another; SQLite does one at a time",
            ),
        ]
    )


def _times(factor: float) -> str:
    return f"{max(ceil(factor), 1):,} times"


def _sorted(limits: Iterable[Limit]) -> list[Limit]:
    return sorted(limits, key=lambda limit: limit.load, reverse=True)


def _tells(values: Sequence[float], price: float, seconds: float) -> bool:
    least, most = min(values), max(values)
    return len(set(values)) > 2 and most >= _TELLING * least and price * (most - least) >= _NOISE * seconds


def _least_squares(columns: Sequence[Sequence[float]], target: Sequence[float], weights: Sequence[float]) -> list[float] | None:
    """The coefficients of the columns that come closest to the target; None if several do."""
    sizes = [max(map(abs, column)) for column in columns]
    scaled = [
        [value / size * weight for value, weight in zip(column, weights, strict=True)]
        for column, size in zip(columns, sizes, strict=True)
    ]
    wanted = [value * weight for value, weight in zip(target, weights, strict=True)]
    rows = [[_dot(one, other) for other in scaled] + [_dot(one, wanted)] for one in scaled]
    for at, _ in enumerate(rows):
        pivot = max(range(at, len(rows)), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        if abs(rows[at][at]) < 1e-12:
            return None
        for other, row in enumerate(rows):
            if other != at:
                factor = row[at] / rows[at][at]
                rows[other] = [value - factor * by for value, by in zip(row, rows[at], strict=True)]
    return [row[-1] / row[at] / size for at, (row, size) in enumerate(zip(rows, sizes, strict=True))]


def _error(
    columns: Sequence[Sequence[float]], target: Sequence[float], weights: Sequence[float], solved: Sequence[float]
) -> float:
    found = [_dot(solved, values) for values in zip(*columns, strict=True)]
    return sum(((one - other) * weight) ** 2 for one, other, weight in zip(found, target, weights, strict=True))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
