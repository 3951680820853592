"""Rows of a stretch are taken only if they are few, and each is of one of its epochs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from firnline.engine.staging import NOTHING, Gathered
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.runtime.attempt import Apart
from firnline.runtime.stretch import _within

RUNS: list[Any] = [SimpleNamespace(epoch=Epoch(lower, lower + 24)) for lower in (0, 24, 48)]


def gathered(*epochs: int) -> Gathered:
    rows = pa.table({"k": [*epochs], "_epoch": pa.array([*epochs], pa.int64())})
    return Gathered(rows, {(epoch, part): Digest(1, 1, epoch, part) for epoch in epochs for part in (0, 1)})


def test_rows_are_cut_by_their_epoch() -> None:
    found = _within(gathered(0, 24, 48, 24), RUNS)
    assert isinstance(found, Gathered)
    assert [found.of(run.epoch.lower).rows["k"].to_pylist() for run in RUNS] == [[0], [24, 24], [48]]
    assert [sorted(found.of(run.epoch.lower).digests) for run in RUNS] == [[(low, 0), (low, 1)] for low in (0, 24, 48)]
    assert _within(NOTHING, RUNS) is NOTHING
    assert NOTHING.of(0).rows.num_rows == 0


@pytest.mark.parametrize("rows", [gathered(0, 6), gathered(72), None], ids=["another schedule", "a later epoch", "too many"])
def test_rows_of_no_epoch_are_a_reason_to_compute_one_by_one(rows: Gathered | None) -> None:
    assert isinstance(_within(rows, RUNS), Apart)
