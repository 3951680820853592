"""What a sink delivers next follows from its hold and the frontier alone."""

from dataclasses import replace
from typing import Any

from firnline import Pipeline
from firnline.errors import Location
from firnline.model.description import Description
from firnline.model.epoch import Epoch, Schedule
from firnline.model.graph import Graph, check
from firnline.model.hold import Hold
from firnline.model.sink import Sink
from firnline.plan.agreement import Agreement
from firnline.plan.delivering import Delivery, begun, delivered, next_delivery
from firnline.plan.frontier import Frontier
from firnline.plan.rewinding import Rewind
from firnline.plan.rewinding import rewound as plan_rewind
from firnline.plan.seeing import Void


def _graph() -> Graph:
    web = Pipeline("web", schedule=10, start=0)

    @web.source(keys=["k"])
    def visits(epoch: Any) -> Any: ...

    @web.source(keys=["k"])
    def pages(epoch: Any) -> Any: ...

    return check(web, {"visits": "f", "pages": "f"})


GRAPH = _graph()
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


def test_under_another_schedule_it_goes_on_where_it_stands_under_a_name_that_it_never_had():
    there = replace(BEGUN, at=30, delivered={"visits": 0})
    forties = Schedule.parse(40, 0, None)
    assert next_delivery(forties, SINK, there, at(40)) == Delivery(Epoch(30, 40), {"visits": 30}, {"visits": 0})
    assert next_delivery(forties, SINK, there, at(35)) is None


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


def rewound(hold: Hold, to: int) -> tuple[Hold, Frontier]:
    """A hold after ``visits`` went back to a point from 60."""
    agreement = Agreement(at(60), holds=(hold,))
    began = Rewind("back", to, to, {}, stages=("visits",))
    decided = plan_rewind(GRAPH, agreement, began, {"visits": Description(0, 0, 60)}, 0)
    found, frontier = decided.held(hold.name), decided.frontier
    assert found is not None
    assert frontier is not None
    return found, frontier


def test_a_sink_goes_back_with_a_rewind_and_takes_back_what_went_back():
    both = replace(SINK, parameters=("epoch", "visits", "pages"))
    there, frontier = rewound(replace(BEGUN, at=60, delivered={"visits": 0, "pages": 0}), 30)
    assert (there.at, there.delivered, there.line) == (30, {"visits": 0, "pages": 0}, 1)
    assert next_delivery(TENS, both, there, frontier) is None, "nothing is there again yet"
    again = next_delivery(TENS, both, there, at(40, 1))
    void = {"visits": (Void(0, 30, 60),)}
    perhaps = ((0, Epoch(60, 70)),)
    assert again == Delivery(Epoch(30, 40), {"visits": 30, "pages": 40}, {"visits": 1, "pages": 0}, 1, void, perhaps)
    after = delivered(there, again)
    assert next_delivery(TENS, both, after, at(50, 1)) == Delivery(
        Epoch(40, 50), {"visits": 40, "pages": 50}, {"visits": 1, "pages": 0}, 1
    ), "it is taken back once, and pages were delivered up to 60"


def test_what_a_zombie_delivered_before_a_rewind_is_void():
    before = replace(BEGUN, at=50, delivered={"visits": 0})
    late = next_delivery(TENS, SINK, before, at(60))
    assert late is not None
    there, _ = rewound(before, 30)
    again = next_delivery(TENS, SINK, delivered(there, late), at(40, 1))
    assert again is not None
    assert again.void == {"visits": (Void(0, 30, 60),)}


def test_a_rewind_before_the_first_delivery_or_above_the_position_loses_nothing():
    there, frontier = rewound(BEGUN, 0)
    assert next_delivery(TENS, SINK, there, frontier) is None
    perhaps = ((0, Epoch(20, 30)),)
    assert next_delivery(TENS, SINK, there, at(10, 1)) == Delivery(Epoch(0, 10), {"visits": 0}, {"visits": 1}, 1, {}, perhaps)
    behind = replace(BEGUN, at=30, delivered={"visits": 0})
    assert rewound(behind, 40)[0] == behind
