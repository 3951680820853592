"""What has to be computed again because code changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import firnline as fl
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, check
from firnline.plan.recomputing import History, Layer, affected, costs, rewinds, stale_from

OLD, NEW = Fingerprint("old"), Fingerprint("new")


def diamond() -> Graph:
    """a -> b -> d, a -> c -> d, a -> e."""
    made = fl.Pipeline("diamond", schedule=1, start=0)

    @made.source(keys=["id"])
    def a(epoch): ...  # type: ignore[no-untyped-def]

    @made.stage(keys=["id"])
    def b(a): ...  # type: ignore[no-untyped-def]

    @made.stage(keys=["id"])
    def c(a): ...  # type: ignore[no-untyped-def]

    @made.stage(keys=["id"])
    def d(b, c): ...  # type: ignore[no-untyped-def]

    @made.stage(keys=["id"])
    def e(a): ...  # type: ignore[no-untyped-def]

    return check(made, dict.fromkeys("abcde", "code"))


def layers(*made_by: Fingerprint) -> list[Layer]:
    return [Layer(at, at + 1, by, 10 + at, 1.5) for at, by in reversed(list(enumerate(made_by)))]


def test_a_change_reaches_what_comes_of_it_and_nothing_else() -> None:
    histories = {name: History(layers(OLD, OLD, OLD), 4) for name in "abcde"}
    again, stays = costs(diamond(), histories, {"b": 1})
    assert [(each.collection, each.because, each.first, each.last, each.epochs, each.rows, each.seconds) for each in again] == [
        ("b", ("b",), "1", "2", 2, 23, 3.0),
        ("d", ("b",), "1", "2", 2, 23, 3.0),
    ]
    assert {(each.collection, each.epochs, each.rows) for each in stays} == {
        ("a", 3, 33),
        ("b", 1, 10),
        ("c", 3, 33),
        ("d", 1, 10),
        ("e", 3, 33),
    }


def test_two_changes_meet_in_the_earlier_epoch() -> None:
    assert affected(diamond(), {"b": 2, "c": 1}) == {"b": (2, ("b",)), "c": (1, ("c",)), "d": (1, ("b", "c"))}


def test_a_stage_goes_back_with_what_it_comes_of_if_that_goes_back_as_far() -> None:
    assert rewinds(diamond(), {"b": 1, "d": 2}) == [("b", 1)]
    assert rewinds(diamond(), {"d": 1, "b": 2, "c": 0}) == [("b", 2), ("c", 0)]
    assert rewinds(diamond(), {"d": 0, "b": 2}) == [("b", 2), ("d", 0)]


def test_a_log_that_is_behind_costs_what_it_holds() -> None:
    again, _ = costs(diamond(), {"a": History(layers(OLD, OLD), 1), "b": History(layers(OLD), 1)}, {"b": 0})
    assert [(each.collection, each.epochs) for each in again] == [("b", 1)]


@given(st.lists(st.sampled_from([OLD, NEW])), st.integers(0, 10))
def test_what_is_stale_is_the_end_that_today_did_not_make(made_by: list[Fingerprint], since: int) -> None:
    begins = stale_from(layers(*made_by), NEW, since)
    end = len(made_by)
    expected = next((at for at in range(end + 1) if at >= since and all(by == OLD for by in made_by[at:])), end)
    assert (end if begins is None else begins) == expected
