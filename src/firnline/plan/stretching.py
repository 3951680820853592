"""How many neighbouring epochs are computed at once: as many as change few rows between them.

What an epoch costs whatever it changes is then paid once. An epoch that changes many rows gains nothing by company.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST = 50
"""Epochs: so many unions Spark still plans quickly, and so much is computed again after a crash."""


def length(changes: Iterable[int], few: int) -> int:
    """How many epochs make a stretch, by how many rows each changes; below two there is none.

    >>> length([40, 40, 40], few=100), length([400, 1], few=100), length([0] * 80, few=100)
    (2, 0, 50)
    """
    count = total = 0
    for rows in changes:
        total += rows
        if total > few or count == MOST:
            break
        count += 1
    return count
