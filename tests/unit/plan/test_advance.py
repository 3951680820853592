from __future__ import annotations

import pytest

from firnline.errors import FirnlineError, Location
from firnline.model.declaration import Collection
from firnline.model.description import Description
from firnline.model.epoch import Epoch, Schedule
from firnline.model.graph import Graph
from firnline.model.retention import Retention
from firnline.plan.advance import advance, check_inputs, check_over, check_target

STAGE = Collection("stage", "stage", ("k",), ("k",), 1, "full", ("a", "b"), "", Location("web.py", 1))
SCHEDULE = Schedule.parse(10, 0, None)
GRAPH = Graph("web", SCHEDULE, (STAGE,), {}, 60, Retention.parse("2 epochs"))


def test_a_new_collection_lacks_everything_from_the_start() -> None:
    assert advance(STAGE, SCHEDULE, None, Epoch(20, 30)).missing == (Epoch(0, 10), Epoch(10, 20), Epoch(20, 30))


def test_a_new_collection_begins_with_what_its_inputs_have_merged_as_one() -> None:
    assert advance(STAGE, SCHEDULE, None, Epoch(30, 40), merged=30).missing == (Epoch(20, 30), Epoch(30, 40))
    assert advance(STAGE, SCHEDULE, None, Epoch(10, 20), merged=30).missing[0] == Epoch(0, 10), "which is refused"


def test_what_the_log_holds_is_not_planned_again() -> None:
    assert advance(STAGE, SCHEDULE, Description(2, 0, 20), Epoch(20, 30)).missing == (Epoch(20, 30),)
    assert advance(STAGE, SCHEDULE, Description(2, 0, 30), Epoch(0, 10)).missing == ()


def test_a_changed_schedule_goes_on_from_where_the_log_ends() -> None:
    finer = Schedule.parse(5, 0, None)
    assert advance(STAGE, finer, Description(0, 0, 20), Epoch(25, 30)).missing == (Epoch(20, 25), Epoch(25, 30))


@pytest.mark.parametrize("target", [Epoch(5, 15), Epoch(0, 20), Epoch(0, 5)])
def test_an_interval_off_the_schedule_is_refused(target: Epoch) -> None:
    with pytest.raises(FirnlineError, match="BAD_EPOCH"):
        check_target(SCHEDULE, target)


def test_an_epoch_that_is_not_over_is_refused() -> None:
    days = Schedule.parse("@daily", "2026-01-01", None)
    first = days.epoch_at(days.start)
    with pytest.raises(FirnlineError, match="EPOCH_NOT_OVER: 2026-01-01 ends at 2026-01-02, and it is 2026-01-01T12:00"):
        check_over(days, first, days.point("2026-01-01T12:00"))
    check_over(days, first, first.upper)
    check_over(SCHEDULE, Epoch(20, 30), 0)


@pytest.mark.parametrize("late", [None, Description(0, 0, 10)])
def test_a_late_input_is_named(late: Description | None) -> None:
    with pytest.raises(FirnlineError, match=r"INPUT_NOT_READY.*'stage' needs 10 of b"):
        check_inputs(GRAPH, STAGE, {"a": Description(0, 0, 50), "b": late}, Epoch(10, 20))


def test_an_input_that_was_consolidated_past_the_epoch_is_refused() -> None:
    with pytest.raises(
        FirnlineError, match=r"EPOCH_COMPACTED: web\.a keeps single epochs only since 30, as keep='2 epochs' says"
    ):
        check_inputs(GRAPH, STAGE, {"a": Description(0, 30, 50), "b": Description(0, 0, 50)}, Epoch(10, 20))
