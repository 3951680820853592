from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.epoch import Schedule

RULES = ["@hourly", "@daily", "@weekly", "@monthly", "*/7 * * * *", "0 6 * * 1-5"]
STARTS = {"@weekly": "2026-01-04", "0 6 * * 1-5": "2026-01-01T06:00"}


@given(st.sampled_from(RULES), st.integers(0, 400 * 24 * 3600 * 10**6))
def test_every_point_is_in_the_epoch_that_is_found_for_it(rule: str, offset: int) -> None:
    schedule = Schedule.parse(rule, STARTS.get(rule, "2026-01-01"), None)
    epoch = schedule.epoch_at(schedule.start + offset)
    assert epoch.lower <= schedule.start + offset < epoch.upper
    assert list(schedule.epochs(epoch.lower, epoch.upper)) == [epoch]


@given(st.sampled_from(RULES), st.integers(0, 30 * 24 * 3600 * 10**6), st.integers(0, 40 * 24 * 3600 * 10**6))
def test_counting_epochs_is_listing_them(rule: str, first: int, further: int) -> None:
    schedule = Schedule.parse(rule, STARTS.get(rule, "2026-01-01"), None)
    lower = schedule.epoch_at(schedule.start + first).lower
    upper = min(lower + further, lower + 200 * 3600 * 10**6)
    assert schedule.count(lower, upper) == len(list(schedule.epochs(lower, upper)))


@given(st.sampled_from(["0 * * * *", "0 0 * * *", "0 0 * * 0"]), st.integers(0, 400 * 24 * 3600 * 10**6))
def test_steps_are_what_cron_says(rule: str, offset: int) -> None:
    schedule = Schedule.parse(rule, "2026-01-04", None)
    asked = Schedule.parse(f"{rule} ", "2026-01-04", None)
    assert schedule.epoch_at(schedule.start + offset) == asked.epoch_at(schedule.start + offset)


@given(st.sampled_from(RULES), st.integers(0, 60 * 24 * 3600 * 10**6))
def test_labels_are_read_back_as_the_same_point(rule: str, offset: int) -> None:
    schedule = Schedule.parse(rule, STARTS.get(rule, "2026-01-01"), None)
    lower = schedule.epoch_at(schedule.start + offset).lower
    assert schedule.point(schedule.label(lower)) == lower
