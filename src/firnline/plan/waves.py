"""How many waves an epoch is computed in, so that a crash costs about the recovery budget and no more.

The work of an epoch is guessed from the log's own past: the largest of its last epochs that took long enough to tell. Of several
that are merged the mean is taken for each. Epochs that fit the budget run in one wave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

MOST = 64
_RATE = 200_000
"""Rows a second, before anything was measured."""
_FIXED_SECONDS = 2.0
"""What an epoch takes however little changes."""
_TELLING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one epoch read, or several did that are merged, and how long it took."""

    rows: int
    seconds: float
    epochs: int = 1


def wave_count(rows: int, past: Iterable[Measured], budget: float, most: int = MOST) -> int:
    """How many waves for so many rows that are read.

    >>> wave_count(1_000_000, [], 30), wave_count(60_000_000, [], 30), wave_count(60_000_000, [], 30, most=8)
    (1, 10, 8)
    >>> wave_count(1_000_000, [Measured(100_000, 12.0), Measured(100, 1.5)], 30)
    4
    >>> wave_count(1_000_000, [Measured(100_000, 90.0, epochs=30)], 30)
    1
    """
    telling = [each for each in past if each.rows and each.seconds > each.epochs * _TELLING_SECONDS]
    largest = max(telling, key=lambda each: each.rows / each.epochs, default=None)
    rate = _RATE if largest is None else largest.rows / (largest.seconds - largest.epochs * _FIXED_SECONDS)
    return max(1, min(most, MOST, ceil(rows / rate / budget)))


def shared_out(parts: int, waves: int) -> list[tuple[int, ...]]:
    """Parts in as many groups, of nearly the same size.

    >>> shared_out(8, 3)
    [(0, 1), (2, 3, 4), (5, 6, 7)]
    """
    bounds = [number * parts // waves for number in range(waves + 1)]
    return [tuple(range(low, high)) for low, high in pairwise(bounds)]
