"""Freshness: an epoch [l, u) has to be complete by u + freshness.

A pipeline is late by how long ago that was, of its first epoch that is not complete.
"""

from __future__ import annotations

from firnline.model.epoch import Schedule


def late_by(schedule: Schedule, frontier: int | None, freshness: float, now: int) -> float:
    """By how many seconds a pipeline is late; 0 while there is time, and when it is at its end.

    >>> daily = Schedule.parse("@daily", "2026-01-01", "2026-01-03")
    >>> noon = daily.point("2026-01-02T12:00")
    >>> late_by(daily, None, 7200.0, noon), late_by(daily, daily.point("2026-01-02"), 7200.0, noon)
    (36000.0, 0.0)
    """
    first = schedule.start if frontier is None else frontier
    if not schedule.timed or (schedule.end is not None and first >= schedule.end):
        return 0.0
    return max(0.0, (now - schedule.epoch_at(first).upper) / 1e6 - freshness)
