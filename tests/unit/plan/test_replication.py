"""What is copied next: everything when nothing waits, else no more than the recovery time asks for, the oldest first."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from firnline.plan.replication import Batch, Plan, plan, recovery_time, upto

PLACES = ("file:///b", "file:///c", "file:///d")


@st.composite
def several(draw: st.DrawFn) -> list[Batch]:
    """Batches of two collections, some of them copied already, to some places."""
    found = []
    for name, position in (("visits", 0), ("seen", 1)):
        wanted = draw(st.integers(0, 3))
        for lower in range(draw(st.integers(0, 4))):
            held = frozenset(draw(st.sets(st.sampled_from(PLACES))))
            outdated = frozenset(draw(st.sets(st.sampled_from(sorted(held))))) if held else frozenset[str]()
            seconds = draw(st.sampled_from([0.5, 1.0, 8.0]))
            found.append(Batch(name, f"{name}{lower}", 0, lower, lower + 1, seconds, wanted, held, outdated, position))
    return draw(st.permutations(found))


def done(batches: list[Batch], chosen: Plan) -> list[Batch]:
    """The batches after all of a plan's copies are made."""
    more = {
        batch: frozenset(each.place for each in chosen.copies if each.batch is batch)
        for batch in (each.batch for each in chosen.copies)
    }
    return [replace(batch, held=batch.held | more.get(batch, frozenset())) for batch in batches]


@given(several(), st.sets(st.sampled_from(PLACES)))
def test_when_nothing_waits_everything_is_copied_as_far_as_places_answer(batches: list[Batch], up: set[str]) -> None:
    after = done(batches, plan(batches, sorted(up), 0, 10.0))
    for batch in after:
        assert batch.lacks == 0 or set(up) <= batch.held
    assert plan(after, sorted(up), 0, 10.0).copies == ()


@given(several(), st.integers(1, 5), st.sampled_from([1.0, 4.0, 100.0]))
def test_when_epochs_wait_the_recovery_time_stays_below_its_limit_and_no_more_is_copied(
    batches: list[Batch], queued: int, limit: float
) -> None:
    # Where every place that is left lacks a repair, only copying that one helps.
    batches = [replace(batch, outdated=frozenset()) for batch in batches]
    chosen = plan(batches, PLACES, queued, limit)
    assert recovery_time(done(batches, chosen)) < limit
    if recovery_time(batches) < limit:
        assert chosen.copies == ()
    for each in chosen.copies:
        without = [other for other in chosen.copies if (other.batch.lower, other.batch.position) < key(each.batch)]
        assert recovery_time(done(batches, Plan(tuple(without), ()))) >= limit, "the last one was needed, too"


def key(batch: Batch) -> tuple[int, int]:
    return batch.lower, batch.position


@given(several())
def test_the_oldest_are_copied_first_and_never_to_a_place_that_has_them(batches: list[Batch]) -> None:
    chosen = plan(batches, PLACES, 0, 10.0)
    order = [key(each.batch) for each in chosen.copies]
    assert order == sorted(order)
    assert all(each.place not in each.batch.held for each in chosen.copies)
    assert len({(each.batch.attempt, each.place) for each in chosen.copies}) == len(chosen.copies)


@given(several())
def test_everything_before_the_point_is_safe(batches: list[Batch]) -> None:
    visits = [batch for batch in batches if batch.collection == "visits"]
    upper = max((batch.upper for batch in visits), default=0)
    point = upto(visits, 0, upper)
    assert all(batch.lacks == 0 for batch in visits if batch.upper <= point)
    assert point == upper or any(batch.lacks for batch in visits if batch.lower == point)
