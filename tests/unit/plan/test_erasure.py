"""What an erasure reaches, and what forbids it."""

from __future__ import annotations

from typing import Any

import pytest

from firnline import Pipeline
from firnline.errors import FirnlineError
from firnline.model.graph import Graph, check
from firnline.model.hold import Hold
from firnline.plan.erasure import check_complete, check_free, cone, late, sources_of
from tests.publishing import web


def names(graph: Graph, source: str) -> list[str]:
    return [each.name for each in cone(graph, source)]


def test_an_erasure_reaches_all_that_comes_of_a_source_inputs_before_readers() -> None:
    assert names(web(), "visits") == ["visits", "seen", "totals"]
    assert names(web(), "pages") == ["pages", "seen", "totals"]


def test_what_is_computed_is_refused_with_the_sources_it_comes_from() -> None:
    assert sources_of(web(), "totals") == sources_of(web(), "seen")
    with pytest.raises(FirnlineError) as refused:
        cone(web(), "totals")
    assert refused.value.code == "NOT_A_SOURCE"
    assert all(name in refused.value.todo for name in ("web.visits", "web.pages"))


def test_a_stage_that_cannot_be_computed_again_forbids_it_for_what_it_comes_from_only() -> None:
    pipeline = Pipeline("odd", schedule=1, start=0)

    @pipeline.source(keys=["k"])
    def one(epoch: Any) -> Any: ...

    @pipeline.source(keys=["k"])
    def other(epoch: Any) -> Any: ...

    @pipeline.stage(keys=["k"], nondeterministic=True)
    def guessed(one: Any) -> Any: ...

    @pipeline.stage(keys=["k"])
    def known(other: Any) -> Any: ...

    graph = check(pipeline, dict.fromkeys(("one", "other", "guessed", "known"), "f" * 32))
    with pytest.raises(FirnlineError, match=r"ERASURE_BLOCKED.*odd\.guessed"):
        cone(graph, "one")
    assert names(graph, "other") == ["other", "known"]


def test_every_hold_below_the_end_forbids_it_but_retention_replication_and_the_frontier() -> None:
    graph = web()
    stronger = [Hold("frontier", "", 3), Hold("retention", "30 epochs", 0), Hold("replication", "visits", 1)]
    check_free(graph, [*stronger, Hold("reader", "bi", 5), Hold("check", "seen", 5)], 5)
    held = [Hold("reader", "bi", 4, "ana", release="say so"), Hold("gap", "seen", 2, release="firnline repair web")]
    with pytest.raises(FirnlineError) as refused:
        check_free(graph, [*stronger, *held], 5)
    assert refused.value.code == "ERASURE_BLOCKED"
    assert all(text in refused.value.what for text in ("'bi' at 4", "say so", "'seen' at 2", "firnline repair web"))


@pytest.mark.parametrize(
    ("uppers", "frontier", "expected"),
    [
        ({"visits": 5, "seen": 5}, 5, ()),
        ({"visits": 6, "seen": 5}, 5, ("seen",)),
        ({"visits": 5, "seen": 5}, 4, ("visits", "seen")),
    ],
)
def test_an_epoch_that_is_under_way_is_seen(uppers: dict[str, int], frontier: int, expected: tuple[str, ...]) -> None:
    assert late(uppers, frontier) == expected
    if expected:
        with pytest.raises(FirnlineError, match="ERASURE_BLOCKED"):
            check_complete(web(), uppers, frontier)
    else:
        check_complete(web(), uppers, frontier)
