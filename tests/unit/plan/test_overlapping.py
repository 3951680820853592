"""Collections beside one another: whatever takes how long, epochs come in order, after their inputs', and none is left out."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from firnline.plan.overlapping import ready
from tests.publishing import web

LAST = 6


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_delays_lead_to_the_same_end_and_nothing_runs_before_its_inputs(delays: random.Random, at_once: int) -> None:
    graph = web()
    reached = {each.name: delays.randrange(2) if each.kind == "source" else 0 for each in graph.collections}
    under_way: dict[str, int] = {}
    steps = 0
    while found := {**ready(graph, reached, under_way, LAST), **under_way}:
        for name, upto in found.items():
            if name not in under_way and len(under_way) < at_once:
                under_way[name] = upto
        name = delays.choice(sorted(under_way))
        reached[name] += 1  # it publishes one epoch, and tells so
        inputs = graph.collection(name).inputs
        assert all(reached[each] >= reached[name] for each in inputs), "an epoch needs its inputs'"
        if reached[name] == under_way[name]:
            del under_way[name]
        steps += 1
    assert set(reached.values()) == {LAST}
    assert steps <= LAST * len(reached)


def test_a_stage_runs_beside_its_inputs_next_epoch() -> None:
    found = ready(web(), {"visits": 2, "pages": 2, "seen": 1, "totals": 1}, {"visits"}, LAST)
    assert found == {"seen": 2, "pages": LAST}, "totals waits for seen, visits is under way"


def test_what_is_furthest_behind_is_first() -> None:
    found = ready(web(), {"visits": 3, "pages": 4, "seen": 2, "totals": 1}, (), LAST)
    assert list(found.items()) == [("totals", 2), ("seen", 3), ("visits", LAST), ("pages", LAST)]


def test_a_point_that_is_reached_by_all_leaves_nothing() -> None:
    assert ready(web(), dict.fromkeys(("visits", "pages", "seen", "totals"), 3), (), 3) == {}
