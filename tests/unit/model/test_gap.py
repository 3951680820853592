"""The gap ledger as a value: what each event changes in it, and who is corrected when."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.gap import Gap, Gaps, Span, spans_of

GAP = Gap("g", "visits", (Span(3, 4, (1,)),), 5, "2026-01-01", "web.visits", "gone", {"seen": 6})
CELLS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 3)))


@given(CELLS, CELLS)
def test_spans_hold_exactly_their_cells_of_those_that_are_known(
    cells: frozenset[tuple[int, int]], more: frozenset[tuple[int, int]]
) -> None:
    gap = replace(GAP, spans=spans_of(cells, cells | more))
    assert {cell for cell in cells | more if cell in gap} == cells


def test_a_thousand_epochs_are_one_span() -> None:
    cells = {(epoch, part) for epoch in range(1000) for part in (0, 7)}
    assert spans_of(cells, cells) == (Span(0, 999, (0, 7)),)


def test_a_reader_is_marked_while_the_gap_opens_and_after() -> None:
    opening = Gaps().opened(GAP)
    mark = opening.mark("seen")
    assert mark is not None
    assert opening.opened(GAP) == opening
    assert opening.corrected("seen", mark, 7) == opening, "rows may still leave: who read before is marked again"
    settled = opening.settled("g")
    assert settled.mark("seen") == "g"
    assert settled.corrected("seen", mark, 7) == settled
    assert settled.settled("g") == settled
    corrected = settled.corrected("seen", "g", 7)
    assert corrected.mark("seen") is None
    assert corrected.gaps == settled.gaps


def test_rows_that_come_back_mark_readers_once_more_and_the_gap_closes_when_all_are_corrected_and_seen() -> None:
    is_open = Gaps().opened(GAP).settled("g").corrected("seen", "g", 7)
    back = is_open.back("g", "b", {"seen": 9}, GAP.spans)
    assert back.mark("seen") == "b"
    assert back.of("visits") == ()
    assert back.back("g", "c", {"seen": 9}, GAP.spans) == back
    corrected = back.corrected("seen", "b", 10)
    assert corrected.without_closed(9).gaps, "nobody sees the correction yet"
    assert corrected.without_closed(10) == Gaps()


def test_a_run_that_began_before_rows_came_back_does_not_take_the_new_mark_away() -> None:
    is_open = Gaps().opened(GAP).settled("g")
    back = is_open.back("g", "b", {"seen": 6}, GAP.spans)
    assert back.corrected("seen", "g", 7) == back


def test_what_does_not_come_back_stays_a_gap() -> None:
    is_open = Gaps().opened(GAP).settled("g")
    left, here = (Span(3, 3, (1,)),), (Span(4, 4, (1,)),)
    found = is_open.back("g", "b", {"seen": 6}, here, left, 2)
    assert [(gap.id, gap.phase, gap.spans, gap.rows) for gap in found.gaps] == [("g", "open", left, 2), ("b", "back", here, 3)]
    assert found.of("visits") == found.gaps[:1]
    assert found.back("g", "b", {"seen": 6}, here, left, 2) == found, "told twice, it happened once"


def test_a_gap_that_nobody_reads_closes_at_once() -> None:
    lonely = replace(GAP, before={})
    assert Gaps().opened(lonely).settled("g").back("g", "b", {}, GAP.spans) == Gaps()


def test_a_stage_makes_its_own_gap_good_with_its_next_epoch() -> None:
    own = replace(GAP, collection="seen", before={"seen": 6, "spent": 6})
    found = Gaps().opened(own).settled("g").corrected("seen", "g", 7)
    (gap,) = found.gaps
    assert gap.made_good == 7
    assert gap.lacks_at(6)
    assert not gap.lacks_at(7)
    assert not gap.touches("spent", 7)
    assert found.without_closed(100).gaps == (gap,), "older epochs still lack the rows"


def test_a_stage_that_goes_back_behind_its_correction_is_corrected_again() -> None:
    own = replace(GAP, collection="seen", before={"seen": 6, "spent": 6})
    good = Gaps().opened(own).settled("g").corrected("seen", "g", 7).corrected("spent", "g", 8)
    found = good.taken_back(("seen", "spent"), 5, "r")
    (gap,) = found.gaps
    assert (gap.made_good, gap.before) == (None, {"seen": 5, "spent": 5}), "old rows may come back only before the next epoch"
    assert found.corrections == {"seen": "r", "spent": "r"}
    assert found.corrected("seen", "g", 7) == found, "a run that began before the rewind takes no mark away"
    assert found.corrected("seen", "r", 6).gaps[0].made_good == 6
    assert good.taken_back(("seen",), 7, "r").gaps[0].made_good == 7, "the correction stays"


def test_readers_are_touched_from_their_first_epoch_after_the_loss_to_their_correction() -> None:
    is_open = Gaps().opened(GAP).settled("g").gaps[0]
    assert [is_open.touches("seen", upto) for upto in (6, 7)] == [False, True]
    back = replace(is_open, phase="back", after={"seen": 9})
    assert [back.touches("seen", upto) for upto in (6, 7, 8, 9)] == [False, True, True, False]
    assert not back.lacks_at(7)
    assert not is_open.touches("new", 3), "the rows are of later epochs"


def test_json_says_all_of_it() -> None:
    found = Gaps().opened(GAP).settled("g")
    assert Gaps.of_json(found.as_json()) == found
