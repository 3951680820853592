from __future__ import annotations

import pytest

from firnline.model.epoch import Schedule
from firnline.plan.freshness import late_by

DAILY = Schedule.parse("@daily", "2026-01-01", "2026-01-04")
HOUR = 3600.0


@pytest.mark.parametrize(
    ("frontier", "now", "hours"),
    [
        (None, "2025-12-31", 0.0),  # before its start
        (None, "2026-01-01T12:00", 0.0),
        (None, "2026-01-02T02:00", 0.0),  # at the last moment
        (None, "2026-01-02T03:00", 1.0),
        (None, "2026-01-04T03:00", 49.0),  # of the first that is missing, not of the last
        ("2026-01-02", "2026-01-02T03:00", 0.0),
        ("2026-01-02", "2026-01-03T04:00", 2.0),
        ("2026-01-04", "2026-02-01", 0.0),  # at its end
    ],
)
def test_a_pipeline_is_late_since_its_first_missing_epoch_was_due(frontier: str | None, now: str, hours: float) -> None:
    at = None if frontier is None else DAILY.point(frontier)
    assert late_by(DAILY, at, 2 * HOUR, DAILY.point(now)) == hours * HOUR


def test_integer_epochs_are_never_late() -> None:
    assert late_by(Schedule.parse(1, 0, None), None, HOUR, 10**18) == 0.0
