"""Two small histories that have it all: nulls, duplicates, updates, a removed group, a late row, an epoch without a change."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from tests.spark.histories import History

LEFT = History(
    "k int, a string, x int",
    [
        [((1, "p", 10), 1), ((2, "q", None), 2), ((None, "z", 5), 1), ((4, "w", 4), 1)],
        [((1, "p", 10), -1), ((3, "r", 7), 1), ((2, "s", 8), 1), ((4, "w", 4), -1), ((4, "w", 40), 1)],
        [((2, "q", None), -1), ((None, "z", 5), -1)],
    ],
)
RIGHT = History(
    "k int, b string",
    [
        [((1, "b1"), 1), ((2, "b2"), 1)],
        [((3, "b3"), 1), ((2, "b2"), -1), ((2, "b2x"), 2), ((None, "n"), 1)],
        [],
    ],
)
BOTH = {"left": LEFT, "right": RIGHT}


def sampled(cases: Iterable[str], *kept: str) -> list[ParameterSet]:
    """All cases, those that are not kept only at night."""
    return [pytest.param(case, marks=() if case in kept else pytest.mark.nightly) for case in cases]
