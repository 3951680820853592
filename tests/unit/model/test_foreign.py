from __future__ import annotations

from typing import Any

import pytest

import firnline as fl
from firnline.errors import GraphError
from firnline.model.graph import Graph, check


def _pipeline(name: str, schedule: object = 1, start: object = 0, **reads: str) -> fl.Pipeline:
    """A pipeline with a source ``rows`` and stages that each read one other collection."""
    made = fl.Pipeline(name, schedule=schedule, start=start)

    def rows(epoch: Any) -> Any: ...

    made.source(keys=["k"])(rows)
    for stage, wanted in reads.items():

        def read(rows: Any, other: Any = fl.collection(wanted)) -> Any: ...

        read.__name__ = stage
        made.stage(keys=["k"])(read)
    return made


def _codes(pipeline: fl.Pipeline, *others: fl.Pipeline) -> list[str]:
    with pytest.raises(GraphError) as caught:
        check(pipeline, {}, others={other.name: other for other in others})
    assert all(str(problem.where).startswith(__file__) for problem in caught.value.problems)
    return [problem.code for problem in caught.value.problems]


def test_what_is_read_of_another_pipeline_is_known_by_its_full_name() -> None:
    graph = check(_pipeline("daily", report="web.rows"), {}, others={"web": _pipeline("web")})
    assert graph.collection("report").inputs == ("rows", "web.rows")
    assert graph.collection("report").parameters == ("rows", "other")
    assert graph.collection("web.rows").keys == ("k",)
    assert [each.name for each in graph.collections] == ["rows", "report"]
    assert Graph.of_json(graph.as_json()) == graph


def test_what_no_pipeline_writes_is_refused() -> None:
    assert _codes(_pipeline("daily", a="web.rows", b="web.nothing", c="nobody.rows"), _pipeline("web")) == ["UNKNOWN_INPUT"] * 2


def test_the_own_pipeline_is_named_by_the_parameter() -> None:
    assert _codes(_pipeline("daily", report="daily.rows")) == ["UNKNOWN_INPUT"]


def test_times_and_integers_do_not_mix() -> None:
    assert _codes(_pipeline("daily", "@daily", "2026-01-01", report="web.rows"), _pipeline("web")) == ["BAD_SCHEDULE"]


def test_pipelines_that_feed_each_other_are_refused() -> None:
    daily, web, third = _pipeline("daily", a="web.b"), _pipeline("web", b="third.c"), _pipeline("third", c="daily.a")
    assert _codes(daily, web, third) == ["CYCLE"]
    assert check(_pipeline("outside", x="web.b"), {}, others={"daily": daily, "web": web, "third": third})


def test_one_collection_is_asked_for_once() -> None:
    made = _pipeline("daily")

    def twice(one: Any = fl.collection("web.rows"), two: Any = fl.collection("web.rows")) -> Any: ...

    made.stage(keys=["k"])(twice)
    assert _codes(made, _pipeline("web")) == ["BAD_OPTION"]
