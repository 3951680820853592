"""Prices come from the past as far as it tells them, and lead to what breaks first."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.plan import costing
from firnline.plan.costing import Prices, Seen, Shape, grown, limits_of_number, limits_of_size, priced

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "sizing.md"
SHAPE = Shape(1000, 10**7, 2 * 10**7, 10**9, 8, 3, 4, 3600.0)


def seen(fixed: float, change: float, state: float, *points: tuple[float, float]) -> list[Seen]:
    return [Seen(changed, rows, fixed + change * changed + state * rows) for changed, rows in points]


def test_three_prices_are_told_apart_where_both_vary() -> None:
    past = seen(2.0, 1e-5, 1e-7, (1e4, 1e6), (2e5, 1e6), (1e4, 4e7), (1e5, 8e7))
    prices = priced(past)
    assert (prices.fixed, prices.change, prices.state) == pytest.approx((2.0, 1e-5, 1e-7))
    assert prices.told == ("fixed", "change", "state")


def test_epochs_that_are_all_alike_tell_no_price_of_rows() -> None:
    prices = priced(seen(2.0, 1e-5, 1e-7, *[(1e4, 1e7)] * 9))
    assert prices.told == ("fixed",)
    assert (prices.change, prices.state) == (costing.CHANGE, costing.STATE)
    assert prices.seconds(1e4, 1e7) == pytest.approx(2.0 + 0.1 + 1.0), "what they took is what they took"


def test_few_rows_tell_nothing_of_many() -> None:
    prices = priced([Seen(rows, rows, 0.5) for rows in (1, 10, 100)])
    assert prices.told == ("fixed",)
    assert (prices.change, prices.state) == (costing.CHANGE, costing.STATE)


def test_a_machine_that_is_faster_than_the_figures_is_believed() -> None:
    prices = priced([Seen(1e6, 1e9, 0.5)] * 3)
    assert prices.seconds(1e6, 1e9) == pytest.approx(0.5)
    assert min(prices.fixed, prices.change, prices.state) >= 0


def test_noise_makes_no_price_negative() -> None:
    prices = priced([Seen(100, 10, 5.0), Seen(1000, 100, 3.0), Seen(10_000, 1000, 2.0), Seen(90_000, 5000, 2.5)])
    assert min(prices.fixed, prices.change, prices.state) >= 0


def test_state_that_is_as_large_as_the_change_is_no_riddle() -> None:
    prices = priced([Seen(rows, rows, 1 + rows / 1e6) for rows in (1e5, 2e5, 4e5)])
    assert prices.seconds(1e6, 1e6) == pytest.approx(2.0)


def test_without_a_past_there_are_figures_only() -> None:
    assert priced([]) == Prices(costing.FIXED, costing.CHANGE, costing.STATE)
    assert priced([], is_full=True) == Prices(costing.FIXED, 0.0, costing.CHANGE)


def test_growth_is_a_straight_line() -> None:
    prices = Prices(1.0, 1e-3, 1e-7)
    by_ten = grown(prices, SHAPE)[1]
    assert (by_ten.factor, by_ten.state, by_ten.change) == (10, pytest.approx(1 + 1 + 10), pytest.approx(1 + 10 + 1))
    assert by_ten.both == pytest.approx(1 + 10 + 10)


def test_what_breaks_first_comes_first_with_what_to_set() -> None:
    limits = limits_of_size(Prices(1.0, 1e-6, 1e-8), SHAPE)  # 1e10 rows more than now: 2e11 rows
    assert [each.load for each in limits] == sorted((each.load for each in limits), reverse=True)
    lost = next(each for each in limits if "lost part" in each.what)
    assert lost.seconds == pytest.approx(2 * 1e-6 * 2e11 / 4)
    assert "parts=128 instead of 4" in lost.todo
    assert lost.seconds * 4 / 128 <= SHAPE.interval


def test_a_stage_that_reads_no_state_scans_none() -> None:
    shape = Shape(1000, 0, 10**7, 10**9, 8, 3, 4, 3600.0)
    reading = next(each for each in limits_of_size(Prices(1.0, 1e-6, 1e-8), shape) if "reading" in each.what)
    assert reading.seconds == 0


def test_many_collections_break_by_number() -> None:
    limits = limits_of_number(Prices(0.9, 0, 0), 3600.0)
    assert [each.load > 1 for each in limits] == [True, True, False]
    assert "3 engines" in limits[0].todo


@pytest.mark.parametrize("figure", ["FIXED", "CHANGE", "STATE", "FILE", "COMMIT", "TASK"])
def test_the_guide_says_where_every_figure_was_measured(figure: str) -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith(f"| `{figure}`")]
    assert len(rows) == 1
    assert f"{getattr(costing, figure):g}" in rows[0]
