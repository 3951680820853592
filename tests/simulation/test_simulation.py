"""The runtime under seeds of bad weather; and that the simulation would notice if a rule were broken."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from firnline.model.description import Description, Verdict
from firnline.model.hold import Hold
from firnline.plan.agreement import Agreement
from firnline.plan.frontier import Frontier
from firnline.plan.safepoint import Label
from firnline.tables import control
from firnline.tables.control import Control
from firnline.tables.determinants import Determinants
from firnline.tables.metadata import Metadata
from tests.simulation.__main__ import failure
from tests.simulation.memory import MemoryTables
from tests.simulation.story import Story

SAMPLE = range(200)
FEW = range(1000)
"""A broken rule is noticed by one of them; the first that does ends the look."""


def test_every_epoch_is_there_once_and_right_whatever_happens() -> None:
    assert [found for seed in SAMPLE if (found := failure(seed))] == []


def test_a_seed_replays_exactly() -> None:
    for seed in range(3):
        one, other = Story(seed), Story(seed)
        one.run()
        other.run()
        assert one.scheduler.trace == other.scheduler.trace
        assert len(one.scheduler.trace) > 100


def publish_anyway(self: Description, generation: int, lower: int, upper: int) -> Verdict:
    return Verdict.FREE


def commit_anyway(self: MemoryTables, table: Metadata) -> Metadata:
    return self._tables[table.pipeline, table.name]


def show_everything(self: Control) -> Frontier:
    return Frontier(4, {})


def look_again(self: Determinants, name: str, value: object) -> object:
    self._catalog.write(self._path(name), json.dumps({"name": name, "value": value}).encode())
    return value


LET_GO = Control.let_go


def place_anyway(agreement: Agreement, hold: Hold, floor: int, label: Label) -> None:
    pass


def let_go_anyway(self: Control, choose: Callable[[Agreement], int]) -> int:
    point = choose(self.agreement())
    return LET_GO(self, lambda _: point)


@pytest.mark.parametrize(
    ("target", "name", "broken"),
    [
        (Description, "judge", publish_anyway),
        (MemoryTables, "_unmoved", commit_anyway),
        (Control, "frontier", show_everything),
        (Determinants, "log", look_again),
        (control, "check_placed", place_anyway),
        (Control, "let_go", let_go_anyway),
    ],
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, target: object, name: str, broken: Callable[..., object]
) -> None:
    monkeypatch.setattr(target, name, broken)
    assert any(failure(seed) for seed in FEW)
