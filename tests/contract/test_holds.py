"""Holds and letting go on every implementation of the port: of both, one comes first, and the other one knows it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from firnline.errors import FirnlineError
from firnline.model.gap import Gap, Span
from firnline.model.hold import Hold
from firnline.plan.agreement import Agreement
from firnline.plan.changing import Approval
from firnline.plan.frontier import Frontier
from firnline.tables.catalog import Catalog
from firnline.tables.control import Control
from firnline.tables.port import Tables
from firnline.world import replaced
from tests.happening import At

FRONTIER = Frontier(50, {"visits": 0})


def held(name: str, at: int) -> Callable[[Agreement], Hold]:
    return lambda _: Hold("branch", name, at, "ana", "2026-01-01T00:00:00+00:00", None, "ask ana")


def least(agreement: Agreement) -> int:
    """A safe point: the least of the frontier and of all holds."""
    assert agreement.frontier is not None
    return min([agreement.frontier.upper, *(hold.at for hold in agreement.holds)])


@pytest.fixture
def control(tables: Tables) -> Control:
    made = Control(tables, "web")
    made.advance(FRONTIER)
    return made


def fails() -> None:
    raise OSError("the answer is lost")


def test_a_hold_stands_until_it_is_released(control: Control) -> None:
    placed = control.hold(held("what_if", 20), 0)
    assert control.holds() == (placed,)
    assert control.let_go(least) == 20
    assert control.release("what_if") == placed
    assert control.holds() == ()
    assert control.let_go(least) == 50


def test_every_commit_carries_the_others_values_over(control: Control) -> None:
    gap = Gap("g", "visits", (Span(0, 9, (1,)),), 5, "2026-01-01", "web.visits", "gone", {"seen": 10})
    placed = control.hold(held("what_if", 20), 0)
    gaps = control.change(lambda gaps: gaps.opened(gap))
    since = control.let_go(least)
    further = control.advance(Frontier(60, {"visits": 0}))
    assert control.agreement() == Agreement(further, gaps, (placed,), since)
    approval = Approval("seen", "code", "plan", 60, "ana", "2026-01-01")
    control.approve([approval])
    other = control.hold(held("other", 30), 0)
    control.release("what_if")
    assert control.agreement() == Agreement(further, gaps, (other,), since, approvals=(approval,))


def test_a_name_is_one_hold(control: Control) -> None:
    control.hold(held("bi", 20), 0)
    moved = control.hold(held("bi", 30), 0)
    assert control.holds() == (moved,)
    with pytest.raises(FirnlineError, match=r"HOLD_TAKEN.*the branch 'bi' of ana"):
        control.hold(lambda _: Hold("reader", "bi", 30, "ben"), 0)


def test_releasing_what_is_not_there_is_told(control: Control) -> None:
    with pytest.raises(FirnlineError, match=r"NO_SUCH_HOLD.*'web' has no reader, sink, branch or rewind 'bi'"):
        control.release("bi")


def test_what_is_let_go_of_never_comes_back(control: Control) -> None:
    assert [control.let_go(lambda _, point=point: point) for point in (10, 30, 20)] == [10, 30, 30]  # type: ignore[misc]
    before = control._catalog.table("web", "_frontier")
    control.let_go(lambda _: 30)
    assert control._catalog.table("web", "_frontier") == before, "what changes nothing is no commit"


@pytest.mark.parametrize(("recorded", "floor"), [(30, 0), (10, 30)])
def test_no_hold_is_placed_on_what_is_let_go_of(control: Control, recorded: int, floor: int) -> None:
    control.let_go(lambda _: recorded)
    with pytest.raises(FirnlineError, match=r"EPOCH_COMPACTED.*the branch 'late' cannot hold e29.*only since e30"):
        control.hold(held("late", 29), floor, lambda point: f"e{point}")
    assert control.hold(held("in_time", 30), floor).at == 30
    assert [hold.name for hold in control.holds()] == ["in_time"]


def test_a_hold_that_comes_while_the_safe_point_is_judged_is_heard(control: Control) -> None:
    with replaced(At("safepoint.judged", lambda: control.hold(held("just_in_time", 20), 0))):
        assert control.let_go(least) == 20
    assert [hold.name for hold in control.holds()] == ["just_in_time"]


def test_a_hold_that_is_judged_while_epochs_are_let_go_of_is_refused(control: Control) -> None:
    with (
        replaced(At("safepoint.judged", lambda: control.let_go(least))),
        pytest.raises(FirnlineError, match=r"EPOCH_COMPACTED.*since 50"),
    ):
        control.hold(held("too_late", 20), 0)
    assert control.holds() == ()
    assert control.agreement().since == 50


@pytest.mark.parametrize("point", ["safepoint.judged", "safepoint.committed"])
def test_an_answer_that_is_lost_is_looked_for(control: Control, point: str) -> None:
    with replaced(At(point, fails)):
        control.hold(held("what_if", 20), 0)
    with replaced(At(point, fails)):
        assert control.let_go(least) == 20
    with replaced(At(point, fails)):
        assert control.release("what_if").at == 20
    approval = Approval("seen", "code", None, 60)
    with replaced(At(point, fails)):
        control.approve([approval])
    assert control.agreement() == Agreement(FRONTIER, since=20, approvals=(approval,))


def test_many_at_once_never_let_go_of_what_is_held(iceberg: Catalog) -> None:
    control = Control(iceberg, "web")
    control.advance(FRONTIER)
    placed: list[Hold] = []
    refused: list[tuple[int, str]] = []

    def place(at: int) -> None:
        try:
            placed.append(Control(iceberg, "web").hold(held(f"branch{at}", at), 0))
        except FirnlineError as error:
            refused.append((at, error.code))

    work: list[Callable[[], object]] = [lambda at=at: place(at) for at in (20, 30, 40)]  # type: ignore[misc]
    work[1:1] = [lambda: Control(iceberg, "web").let_go(lambda agreement: min(35, least(agreement)))] * 2
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agreement = control.agreement()
    assert agreement.since is not None
    assert set(agreement.holds) == set(placed)
    assert all(hold.at >= agreement.since for hold in placed)
    assert all(at < agreement.since and code == "EPOCH_COMPACTED" for at, code in refused)
    assert len(placed) + len(refused) == 3
