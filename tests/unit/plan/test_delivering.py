"""What a sink delivers next follows from its hold and the frontier alone."""

from dataclasses import replace

from firnline.errors import Location
from firnline.model.epoch import Epoch, Schedule
from firnline.model.sink import Sink
from firnline.plan.delivering import Delivery, begun, delivered, next_delivery
from firnline.plan.frontier import Frontier

TENS = Schedule.parse(10, 0, None)
SINK = Sink("report", ("epoch", "visits"), "", Location("web.py", 1))
BEGUN = begun("web", SINK, Frontier(30, {"visits": 0}), "2026-01-01T00:00:00+00:00")


def at(upper: int, generation: int = 0) -> Frontier:
    return Frontier(upper, {"visits": generation, "pages": 0})


def test_a_new_sink_delivers_all_there_is_as_the_newest_epoch_also_if_others_follow():
    first = Delivery(Epoch(20, 30), {"visits": 0}, {"visits": 0})
    assert next_delivery(TENS, SINK, BEGUN, at(30)) == next_delivery(TENS, SINK, BEGUN, at(50)) == first
    assert (BEGUN.at, BEGUN.until, BEGUN.kind) == (30, None, "sink"), "it holds the state that it begins with, for good"


def test_then_every_epoch_by_itself_until_none_is_left():
    there, found = BEGUN, []
    while (each := next_delivery(TENS, SINK, there, at(60))) is not None:
        found.append((each.lowers["visits"], each.epoch.upper))
        there = delivered(there, each)
    assert found == [(0, 30), (30, 40), (40, 50), (50, 60)]
    assert (there.at, there.delivered) == (60, {"visits": 0})


def test_one_that_comes_late_moves_nothing_back():
    late = Delivery(Epoch(20, 30), {"visits": 0}, {"visits": 0})
    there = replace(BEGUN, at=50, delivered={"visits": 0})
    assert delivered(there, late) == there


def test_a_collection_that_a_sink_takes_from_now_on_is_delivered_from_the_start():
    wider = replace(SINK, parameters=("epoch", "visits", "pages"))
    there = replace(BEGUN, delivered={"visits": 0})
    assert next_delivery(TENS, wider, there, Frontier(50, {"visits": 0})) is None, "pages is in no complete epoch yet"
    assert next_delivery(TENS, wider, there, at(50)) == Delivery(
        Epoch(30, 40), {"visits": 30, "pages": 0}, {"visits": 0, "pages": 0}
    )
