from __future__ import annotations

import json
from typing import Any

import pytest

import firnline as fl
from firnline.errors import GraphError
from firnline.model.durability import Keeping
from firnline.model.graph import Graph, check
from firnline.model.intake import Dedup, Rows, Snapshot
from firnline.model.retention import Retention

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


def test_two_collections_that_one_place_makes_under_one_name_are_refused() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    def declare(country: str, name: str | None = None) -> None:
        def visits(epoch: Any) -> Any: ...

        visits.__name__ = name or visits.__name__
        web.source(keys=["a"])(visits)

    declare("at", "visits_at")
    declare("de")
    assert [each.name for each in check(web, {}).collections] == ["visits_at", "visits"]
    declare("ch")
    assert problems(web) == ["DUPLICATE_COLLECTION"]


def test_a_parameter_with_a_typing_error_is_told_what_it_may_mean() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"])
    def visits(epoch: Any) -> Any: ...

    @web.stage(keys=["a"])
    def seen(vists: Any) -> Any: ...

    with pytest.raises(GraphError, match="'seen' asks for 'vists', which nothing writes; nearest: 'visits'"):
        check(web, {})


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2026-01-01T06:00", None, r"the next one is 2026-01-02"),
        ("2026-01-01", "2026-01-03T12:00", r"the next one is 2026-01-04"),
        ("2026-01-02", "2026-01-01", r"Choose a later end"),
    ],
)
def test_a_start_or_end_beside_the_schedule_is_told_what_to_write(start: str, end: str | None, told: str) -> None:
    with pytest.raises(GraphError, match=told):
        check(fl.Pipeline("web", schedule="@daily", start=start, end=end), {})


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


def test_replicas_and_durability_are_settled_when_a_pipeline_is_loaded() -> None:
    web = fl.Pipeline("web", schedule=1, start=0, replicas=["file:///mnt/b/", "s3://bucket/x"], durability=2, recovery_time="10m")

    @web.source(keys=["a"], durability=3)
    def first(epoch: Any) -> Any: ...

    @web.stage(keys=["a"])
    def second(first: Any) -> Any: ...

    @web.stage(keys=["a"], level="memory")
    def third(second: Any) -> Any: ...

    @web.sql("SELECT * FROM third", keys=["a"], level="disk", durability=1)
    def fourth(third: Any) -> Any: ...

    graph = check(web, {})
    assert (graph.replicas, graph.recovery_time) == (("file:///mnt/b", "s3://bucket/x"), 600.0)
    kept = [(each.level, each.durability) for each in graph.collections]
    assert kept == [("remote", 3), ("remote", 2), ("memory", 1), ("disk", 1)]
    assert Graph.of_json(graph.as_json()) == graph


def test_the_projects_replicas_are_those_of_pipelines_that_name_none() -> None:
    def graph(**options: Any) -> Graph:
        web = fl.Pipeline("web", schedule=1, start=0, **options)
        web.source(keys=["a"])(visits)
        return check(web, {}, keeping=Keeping("file:///lake", ("file:///mnt/b",)))

    assert (graph().replicas, graph().collections[0].durability) == (("file:///mnt/b",), 2)
    assert (graph(replicas=[]).replicas, graph(replicas=[]).collections[0].level) == ((), "disk")


def visits(epoch: Any) -> Any: ...


def _bad(pipeline: fl.Pipeline, kind: str = "stage", **options: Any) -> list[str]:
    pipeline.source(keys=["a"], **(options if kind == "source" else {}))(visits)

    def second(visits: Any) -> Any: ...

    pipeline.stage(keys=["a"], **(options if kind == "stage" else {}))(second)
    with pytest.raises(GraphError) as caught:
        check(pipeline, {}, keeping=Keeping("file:///lake"))
    assert all(str(problem.where).startswith(__file__) for problem in caught.value.problems)
    assert {problem.code for problem in caught.value.problems} == {"BAD_OPTION"}
    return [problem.what for problem in caught.value.problems]


def _web(**options: Any) -> fl.Pipeline:
    return fl.Pipeline("web", schedule=1, start=0, **options)


B = ["file:///mnt/b"]


@pytest.mark.parametrize(
    ("options", "kind", "of_collection", "words"),
    [
        ({"replicas": "file:///mnt/b"}, "stage", {}, "no list"),
        ({"replicas": ["mnt/b"]}, "stage", {}, "no URL"),
        ({"replicas": ["file://mnt/b"]}, "stage", {}, "no absolute path"),
        ({"replicas": [7]}, "stage", {}, "no URL"),
        ({"replicas": ["file:///mnt/b", "file:///mnt/b/"]}, "stage", {}, "twice"),
        ({"replicas": ["file:///lake/b"]}, "stage", {}, "in one another"),
        ({"replicas": B, "durability": 3}, "stage", {}, "there are 2 places"),
        ({"durability": 2}, "stage", {}, "there is 1 place"),
        ({"replicas": B, "durability": True}, "stage", {}, "not a number"),
        ({"replicas": B, "recovery_time": "soon"}, "stage", {}, "recovery_time"),
        ({"replicas": B}, "stage", {"durability": 0}, "not a number"),
        ({"replicas": B}, "stage", {"level": "tape"}, "level='tape'"),
        ({"replicas": B}, "source", {"level": "memory"}, "the source"),
        ({"replicas": B}, "stage", {"level": "memory", "nondeterministic": True}, "cannot be computed again"),
        ({"replicas": B}, "stage", {"level": "disk", "durability": 2}, "one place"),
        ({}, "stage", {"level": "remote"}, "there is no replica"),
    ],
)
def test_what_cannot_be_kept_so_is_told_when_a_pipeline_is_loaded(
    options: dict[str, Any], kind: str, of_collection: dict[str, Any], words: str
) -> None:
    found = _bad(_web(**options), kind, **of_collection)
    assert len(found) == 1
    assert words in found[0]


def test_a_source_has_one_intake() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(keys=["a"], snapshot=True, shrink=1)
    def dumped(epoch: Any) -> Any: ...

    @web.source(keys=["a"])
    def plain(epoch: Any) -> Any: ...

    @web.source(keys=["a"], dedup=True)
    def once(epoch: Any) -> Any: ...

    @web.source(keys=["a"], dedup=True, dedup_horizon="7d")
    def once_a_week(epoch: Any) -> Any: ...

    graph = check(web, FINGERPRINTS)
    assert graph.collection("dumped").intake == Snapshot(1.0)
    assert (graph.collection("once").intake, graph.collection("once").keys) == (Dedup(("a",)), ("a",))
    forgets = graph.collection("once_a_week")
    assert (forgets.intake, forgets.keys) == (Dedup(("a",), Retention.parse("7d")), ("a", "__SEEN_AT"))
    assert forgets.partition_by == ("a",), "what is delivered again is in the same part"
    assert graph.collection("plain").intake == Rows()
    assert Graph.of_json(json.loads(json.dumps(graph.as_json()))) == graph


@pytest.mark.parametrize(
    "options",
    [
        {"shrink": 0.5},
        {"snapshot": 1},
        {"snapshot": True, "shrink": 2},
        {"shrink": True},
        {"snapshot": True, "dedup": True},
        {"dedup": "yes"},
        {"dedup": True, "keys": []},
        {"dedup": True, "dedup_horizon": "soon"},
        {"dedup": True, "shrink": 0.5},
        {"dedup_horizon": "3 epochs"},
    ],
)
def test_options_of_an_intake_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01")

    @web.source(**{"keys": ["a"], **options})
    def dumped(epoch: Any) -> Any: ...

    assert problems(web) == ["BAD_OPTION"]


def test_freshness_is_a_duration_and_survives_storage() -> None:
    web = fl.Pipeline("web", schedule="@daily", start="2026-01-01", freshness="2h")

    @web.source(keys=["a"])
    def first(epoch: Any) -> Any: ...

    graph = check(web, FINGERPRINTS)
    assert graph.freshness == 7200.0
    assert Graph.of_json(graph.as_json()) == graph


@pytest.mark.parametrize(
    "options",
    [{"schedule": "@daily", "start": "2026-01-01", "freshness": "soon"}, {"schedule": 1, "start": 0, "freshness": "2h"}],
)
def test_a_freshness_without_a_clock_is_refused(options: dict[str, Any]) -> None:
    assert problems(fl.Pipeline("web", **options)) == ["BAD_OPTION"]
