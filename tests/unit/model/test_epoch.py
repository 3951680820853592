from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch, Schedule, to_micros


def labels(schedule: Schedule, lower: object, upper: object) -> list[str]:
    return [schedule.label(epoch.lower) for epoch in schedule.epochs(schedule.point(lower), schedule.point(upper))]


@pytest.mark.parametrize(
    ("rule", "start", "upper", "expected"),
    [
        ("@daily", "2026-02-27", "2026-03-02", ["2026-02-27", "2026-02-28", "2026-03-01"]),
        ("@hourly", "2026-01-01T22:00", "2026-01-02T01:00", ["2026-01-01T22:00", "2026-01-01T23:00", "2026-01-02"]),
        ("@monthly", "2026-01-01", "2026-04-01", ["2026-01-01", "2026-02-01", "2026-03-01"]),
        (timedelta(minutes=90), "2026-01-01", "2026-01-01T04:30", ["2026-01-01", "2026-01-01T01:30", "2026-01-01T03:00"]),
        (2, 0, 5, ["0", "2"]),
    ],
)
def test_epochs_follow_one_another(rule: object, start: object, upper: object, expected: list[str]) -> None:
    assert labels(Schedule.parse(rule, start, None), start, upper) == expected


def test_a_point_is_in_exactly_one_epoch() -> None:
    schedule = Schedule.parse("0 6 * * *", "2026-01-01T06:00", None)
    assert schedule.epoch_at(schedule.point("2026-01-02T05:59:59.999999")).lower == schedule.start
    assert schedule.epoch_at(schedule.point("2026-01-02T06:00")).lower == schedule.point("2026-01-02T06:00")


def test_times_are_read_as_utc_and_zones_are_converted() -> None:
    schedule = Schedule.parse("@daily", datetime(2026, 1, 1, tzinfo=UTC), None)
    assert schedule.point("2026-01-01T01:00+01:00") == schedule.start
    assert to_micros(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == schedule.start


@pytest.mark.parametrize(
    ("rule", "start", "end"),
    [
        ("every day", "2026-01-01", None),
        ("99 * * * *", "2026-01-01", None),
        (None, "2026-01-01", None),
        (0, 0, None),
        (-1, 0, None),
        (True, 0, None),
        (timedelta(0), "2026-01-01", None),
        ("@daily", "2026-01-01T06:00", None),
        ("@daily", "2026-01-02", "2026-01-01"),
        ("@daily", "2026-01-01", "2026-01-02T12:00"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(rule: object, start: object, end: object) -> None:
    with pytest.raises(FirnlineError, match="BAD_SCHEDULE"):
        Schedule.parse(rule, start, end)


@pytest.mark.parametrize(("start", "rule"), [("soon", "@daily"), ("2026-13-01", "@daily"), ("x", 1), (None, "@daily")])
def test_a_point_that_is_no_time_is_refused(start: object, rule: object) -> None:
    with pytest.raises(FirnlineError, match="BAD_EPOCH"):
        Schedule.parse(rule, start, None)


def test_epochs_outside_the_pipelines_life_are_refused() -> None:
    schedule = Schedule.parse("@daily", "2026-01-02", "2026-01-04")
    with pytest.raises(FirnlineError, match="BEFORE_START"):
        schedule.epoch_at(schedule.point("2026-01-01"))
    with pytest.raises(FirnlineError, match="AFTER_END"):
        schedule.epoch_at(schedule.point("2026-01-04"))
    assert labels(schedule, "2026-01-02", "2027-01-01") == ["2026-01-02", "2026-01-03"]


def test_an_epoch_beyond_any_sense_is_refused_instead_of_counted() -> None:
    with pytest.raises(FirnlineError, match=r"BAD_EPOCH.*more than"):
        list(Schedule.parse(1, 0, None).epochs(0, 10**23))


def test_an_empty_interval_is_no_epoch() -> None:
    with pytest.raises(FirnlineError, match="BAD_EPOCH"):
        Epoch(1, 1)
