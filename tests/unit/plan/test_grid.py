from __future__ import annotations

import pytest

from firnline.model.epoch import Epoch
from firnline.plan.grid import Held, Known, condition_of, state_of

DAY = Epoch(5, 6)


@pytest.mark.parametrize(
    ("known", "state"),
    [
        (Known(), "missing"),
        (Known(failed={5: "no"}), "failed"),
        (Known(failed={4: "no"}), "missing"),
        (Known((Held(5, 6),)), "computed"),
        (Known((Held(5, 6),), failed={5: "an older attempt"}), "computed"),
        (Known((Held(4, 6),)), "computed"),  # a catch-up: several epochs in one snapshot, each told apart
        (Known((Held(4, 6),), since=6), "merged"),
        (Known((Held(5, 6),), since=6), "computed"),  # let go of, but by itself yet
        (Known((Held(5, 6),), repaired=frozenset({5})), "repaired"),
        (Known((Held(5, 6),), repaired=frozenset({4})), "computed"),
        (Known((Held(5, 6, is_stale=True),), repaired=frozenset({5})), "stale"),
        (Known((Held(5, 6, is_stale=True),), lacking=frozenset({5})), "gap"),
        (Known((Held(0, 5), Held(6, 9))), "missing"),
    ],
)
def test_the_state_of_an_epoch_is_what_says_most(known: Known, state: str) -> None:
    assert state_of(DAY, known) == state


@pytest.mark.parametrize(
    ("failed", "lacking", "missing", "code", "condition"),
    [
        (1, 1, 1, "changed", "failed"),
        (0, 1, 1, "changed", "gap"),
        (0, 0, 1, "changed", "behind"),
        (0, 0, 0, "edited", "changed"),
        (0, 0, 0, "same", "whole"),
        (0, 0, 0, "new", "whole"),
    ],
)
def test_the_condition_of_a_collection_is_its_worst(failed: int, lacking: int, missing: int, code: str, condition: str) -> None:
    assert condition_of(failed=failed, lacking=lacking, missing=missing, code=code) == condition
