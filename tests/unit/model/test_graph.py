from __future__ import annotations

from typing import Any

import pytest

import firnline as fl
from firnline.errors import GraphError
from firnline.model.graph import Graph, check

FINGERPRINTS: dict[str, str] = {}


def problems(pipeline: fl.Pipeline) -> list[str]:
    with pytest.raises(GraphError) as caught:
        check(pipeline, FINGERPRINTS)
    assert all(str(problem.where).startswith(__file__) for problem in caught.value.problems), "each has the user's file and line"
    return [problem.code for problem in caught.value.problems]


def test_collections_are_ordered_by_their_inputs() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.stage(keys=["b"])
    def second(first: Any) -> Any: ...

    @web.stage(keys="c", partition_by=["a"], parts=8)
    def third(first: Any, second: Any) -> Any:
        """What it does."""

    @web.source(keys=["a"])
    def first(epoch: Any) -> Any: ...

    graph = check(web, {"first": "1"})
    assert [collection.name for collection in graph.collections] == ["first", "second", "third"]
    found = graph.collection("third")
    assert (found.inputs, found.keys, found.partition_by, found.doc) == (("first", "second"), ("c",), ("a",), "What it does.")
    assert graph.collection("first").partition_by == ("a",), "partition_by defaults to the keys"
    assert Graph.of_json(graph.as_json()) == graph


def test_everything_wrong_is_reported_at_once() -> None:
    bad = fl.Pipeline("Bad Name", schedule="sometimes", start="2026-01-01")

    @bad.source()
    def no_keys(epoch: Any) -> Any: ...

    @bad.source(keys=["a"], partition_by=["_part"], parts=3)
    def odd_parts(epoch: Any) -> Any: ...

    @bad.stage(keys=["_diff"])
    def reserved(no_keys: Any) -> Any: ...

    @bad.stage(keys=["a"])
    def asks(nobody: Any) -> Any: ...

    @bad.stage(keys=["a"])
    def ping(pong: Any) -> Any: ...

    @bad.stage(keys=["a"])
    def pong(ping: Any) -> Any: ...

    @bad.stage(keys=["a"], refresh="sometimes")  # type: ignore[arg-type]
    def alone() -> Any: ...

    assert sorted(problems(bad)) == sorted(
        [
            "BAD_NAME",
            "BAD_SCHEDULE",
            "MISSING_KEY",
            "RESERVED_COLUMN",
            "BAD_OPTION",
            "RESERVED_COLUMN",
            "UNKNOWN_INPUT",
            "CYCLE",
            "UNKNOWN_INPUT",
            "BAD_OPTION",
        ]
    )


def test_two_writers_of_one_collection_are_refused_with_both_places() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    def declare() -> None:
        @web.source(keys=["a"])
        def visits(epoch: Any) -> Any: ...

    declare()

    @web.source(keys=["a"])
    def visits(epoch: Any) -> Any: ...

    assert problems(web) == ["DUPLICATE_COLLECTION"]


def test_a_collection_with_a_name_of_ours_is_refused() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"])
    def visits__quarantine(epoch: Any) -> Any: ...

    assert problems(web) == ["BAD_NAME"]


def test_the_decorated_function_stays_an_ordinary_function() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.stage(keys=["a"])
    def twice(numbers: Any) -> Any:
        return numbers * 2

    assert twice(21) == 42


def test_checks_are_part_of_the_graph_and_must_name_suites_that_are_there() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"], checks=["sane", fl.check("whole", on="state", blocking=False)])
    def first(epoch: Any) -> Any: ...

    @web.sql("SELECT * FROM first", keys=["a"], checks="sane")
    def second(first: Any) -> Any: ...

    graph = check(web, FINGERPRINTS, ["sane", "whole"])
    found = [(each.suite, each.on, each.blocking) for each in graph.collection("first").checks]
    assert found == [("sane", "delta", True), ("whole", "state", False)]
    assert [each.suite for each in graph.collection("second").checks] == ["sane"]
    assert Graph.of_json(graph.as_json()) == graph
    assert problems(web) == ["UNKNOWN_SUITE"] * 3


def test_checks_that_make_no_sense_are_refused() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")
    odd: Any = fl.check

    @web.source(keys=["a"], checks=[odd("sane", on="past", blocking="no"), odd(7), "sane"])
    def first(epoch: Any) -> Any: ...

    with pytest.raises(GraphError) as caught:
        check(web, FINGERPRINTS, ["sane"])
    assert [problem.code for problem in caught.value.problems] == ["BAD_OPTION"] * 4


def test_contracts_and_handlers_of_losses_are_checked() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"], on_loss="shrug")  # type: ignore[arg-type]
    def first(epoch: Any) -> Any: ...

    @web.on_loss
    def ask(loss: fl.Loss) -> None: ...

    @web.on_loss
    def ask_again(loss: fl.Loss) -> None: ...

    assert problems(web) == ["BAD_OPTION", "BAD_OPTION"]


def test_readers_are_direct_and_descendants_are_all() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"], on_loss="gap")
    def first(epoch: Any) -> Any: ...

    @web.stage(keys=["a"])
    def second(first: Any) -> Any: ...

    @web.stage(keys=["a"])
    def third(second: Any) -> Any: ...

    @web.on_loss
    def ask(loss: fl.Loss) -> None: ...

    graph = check(web, {})
    assert graph.readers("first") == ("second",)
    assert graph.descendants("first") == ("second", "third")
    assert (graph.has_loss_handler, graph.collection("first").on_loss) == (True, "gap")
    assert Graph.of_json(graph.as_json()) == graph
