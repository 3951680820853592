"""The frontier is a consistent cut, whatever order publishes and completions happen in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.description import Description, Verdict
from firnline.plan.frontier import Frontier, cut, is_progress

INPUTS = {"a": (), "b": (), "c": ("a", "b"), "d": ("c",), "e": ("a", "d")}


@given(st.lists(st.tuples(st.sampled_from([*INPUTS, "complete"]), st.integers(1, 4)), max_size=60))
def test_nothing_in_the_cut_depends_on_anything_outside_it(steps: list[tuple[str, int]]) -> None:
    heads: dict[str, Description | None] = {name: Description(0, 0, 0) for name in INPUTS}
    read: dict[tuple[str, int], dict[str, int]] = {}
    frontier: Frontier | None = None
    for step, upper in steps:
        if step == "complete":
            found = cut(heads)
            if found is not None and is_progress(frontier, found):
                assert frontier is None or found.upper > frontier.upper
                frontier = found
        else:
            head = heads[step]
            assert head is not None
            ready = all((source := heads[name]) is not None and source.upper >= upper for name in INPUTS[step])
            if ready and head.judge(0, upper - 1, upper) is Verdict.FREE:
                heads[step] = head.advanced(upper)
                read[step, upper] = dict.fromkeys(INPUTS[step], upper)
        if frontier is None:
            continue
        for name in INPUTS:
            for epoch in range(1, frontier.upper + 1):
                assert (name, epoch) in read, "an epoch below the frontier is in every collection"
                assert all(seen <= frontier.upper for seen in read[name, epoch].values())


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(1, 6)), max_size=40))
def test_published_intervals_never_overlap_and_leave_no_hole(attempts: list[tuple[int, int, int]]) -> None:
    head = Description(0, 0, 0)
    published: list[tuple[int, int]] = []
    for generation, lower, upper in attempts:
        if lower < upper and head.judge(generation, lower, upper) is Verdict.FREE:
            head = head.advanced(upper)
            published.append((lower, upper))
    edges = [0, *(upper for _, upper in published)]
    assert [lower for lower, _ in published] == edges[:-1]
