"""How many neighbouring epochs are computed at once: as many as change few rows between them.

What an epoch costs whatever it changes is then paid once. An epoch that changes many rows gains nothing by company.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from firnline.model.epoch import Epoch, Schedule

MOST = 50
"""Epochs: so many unions Spark still plans quickly, and so much is computed again after a crash."""
_MANY = 5
"""Epochs that wait: a pipeline that is fewer behind is as good as there."""


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


def along(schedule: Schedule, target: Epoch, due: int) -> Epoch:
    """Through which epoch a task advances, of whose schedule all epochs will be asked for: its own, unless many more wait.

    >>> hours = Schedule.parse(1, 0, None)
    >>> [along(hours, Epoch(3, 4), due).lower for due in (4, 8, 9, 1000)]
    [3, 3, 8, 53]
    """
    later = list(islice(schedule.epochs(target.upper, due), MOST))
    return later[-1] if len(later) >= _MANY else target
