"""How much history is kept: so many epochs or so long, checked when a pipeline is loaded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import firnline as fl
from firnline.errors import GraphError
from firnline.model.epoch import Schedule
from firnline.model.graph import Graph, check
from firnline.model.retention import Retention

DAYS = Schedule.parse("@daily", "2026-01-01", "2026-03-01")


def pipeline(schedule: object, start: object, **options: Any) -> fl.Pipeline:
    made = fl.Pipeline("web", schedule=schedule, start=start, **options)
    made.source(keys=["k"])(visits)
    return made


def visits(epoch: Any) -> Any: ...


@pytest.mark.parametrize(
    ("keep", "begins"),
    [
        ("1 epoch", "2026-02-28"),
        ("30 epochs", "2026-01-30"),
        (" 2Epochs ", "2026-02-27"),
        ("100 epochs", "2026-01-01"),
        ("7d", "2026-02-22"),
        ("1h", "2026-02-28"),
        (timedelta(days=1, hours=1), "2026-02-27"),
        ("365d", "2026-01-01"),
    ],
)
def test_history_is_kept_by_whole_epochs(keep: object, begins: str) -> None:
    assert DAYS.label(Retention.parse(keep).point(DAYS, DAYS.point("2026-03-01"))) == begins


def test_months_are_counted_back_by_the_calendar() -> None:
    months = Schedule.parse("@monthly", "2026-01-01", None)
    found = [
        Retention.parse(keep).point(months, months.point("2026-05-01")) for keep in ("1 epoch", "3 epochs", "9 epochs", "40d")
    ]
    assert [months.label(point) for point in found] == ["2026-04-01", "2026-02-01", "2026-01-01", "2026-03-01"]


@pytest.mark.parametrize("keep", ["", "some", "0 epochs", "-3 epochs", "3.5 epochs", 30, None, timedelta(0)])
def test_what_says_nothing_is_refused_with_the_line_of_the_pipeline(keep: object) -> None:
    with pytest.raises(GraphError, match=r"BAD_OPTION: keep: .*'30 epochs' or '7d'") as caught:
        check(pipeline("@daily", "2026-01-01", keep=keep), {})
    assert str(caught.value.where).startswith(__file__)


def test_a_duration_needs_epochs_that_are_times() -> None:
    with pytest.raises(GraphError, match=r"BAD_OPTION: keep: '7d' is a duration, and epochs are integers here"):
        check(pipeline(1, 0, keep="7d"), {})


def test_a_graph_carries_it_and_keeps_thirty_epochs_by_default() -> None:
    assert check(pipeline(1, 0), {}).keep == Retention.parse("30 epochs")
    graph = check(pipeline("@daily", "2026-01-01", keep=timedelta(days=2)), {})
    assert Graph.of_json(graph.as_json()) == graph
    assert str(graph.keep) == "keep='2 days, 0:00:00'"
