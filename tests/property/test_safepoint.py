"""The safe point is never beyond a hold in force, never behind what is let go of, and says who holds it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import firnline as fl
from firnline.errors import FirnlineError
from firnline.model.graph import Graph, check
from firnline.model.hold import Hold
from firnline.plan.agreement import Agreement
from firnline.plan.frontier import Frontier
from firnline.plan.safepoint import check_placed, safe_point

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def graph(keep: str) -> Graph:
    web = fl.Pipeline("web", schedule=1, start=0, keep=keep)

    @web.source(keys=["k"])
    def visits(epoch: Any) -> Any: ...

    return check(web, {"visits": "f"})


POINTS = st.integers(0, 20)
STEPS = st.one_of(
    st.tuples(st.just("hold"), st.sampled_from("abc"), POINTS),
    st.tuples(st.just("lease"), st.sampled_from("abc"), POINTS),
    st.tuples(st.just("release"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("advance"), st.just(""), POINTS),
    st.tuples(st.just("let go"), st.just(""), st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 3)),
)


@given(st.integers(1, 5), st.lists(STEPS, max_size=40))
def test_nothing_under_a_hold_is_ever_let_go_of(keep: int, steps: list[tuple[str, str, int]]) -> None:
    web, agreement, now = graph(f"{keep} epochs"), Agreement(), NOW
    for step, name, point in steps:
        before = agreement
        if step in ("hold", "lease"):
            until = (now + timedelta(days=2)).isoformat() if step == "lease" else None
            hold = Hold("reader", name, point, "ana", until=until)
            is_late = point < agreement.kept_since(0)
            try:
                check_placed(agreement, hold, 0, str)
                assert not is_late
                agreement = agreement.with_hold(hold)
            except FirnlineError:
                assert is_late
        elif step == "release":
            agreement = agreement.without_hold(name)
        elif step == "advance":
            upper = max(point, agreement.frontier.upper if agreement.frontier else 0)
            agreement = Agreement(Frontier(upper, {"visits": 0}), agreement.gaps, agreement.holds, agreement.since)
        elif step == "wait":
            now += timedelta(days=point)
        found = safe_point(web, agreement, (), 0, now)
        if step == "let go":
            agreement = Agreement(agreement.frontier, agreement.gaps, agreement.holds, found.at)
        frontier = agreement.frontier.upper if agreement.frontier else 0
        assert found.at >= before.kept_since(0), "it never moves back behind what is let go of"
        assert found.at <= max(frontier - keep, before.kept_since(0))
        in_force = [hold for hold in agreement.holds if not hold.is_expired(now)]
        assert {*found.holds, *found.expired} >= set(agreement.holds)
        assert [hold.at for hold in found.holds] == sorted(hold.at for hold in found.holds)
        assert all(found.at <= hold.at for hold in in_force), "a lease that is in force was never let go of"
        assert str(found.holds[0]) in found.why(str) or found.holds[0].kind == "frontier"
