"""The runtime under seeds of bad weather; and that the simulation would notice if a rule were broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from firnline.model.description import Description, Verdict
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.plan import rewinding
from firnline.plan.agreement import Agreement
from firnline.plan.frontier import Frontier
from firnline.plan.rewinding import Rewind
from firnline.plan.safepoint import Label
from firnline.runtime import reuse, rewind
from firnline.runtime.cut import visible_upto
from firnline.runtime.project import Project
from firnline.tables import control
from firnline.tables.control import Control
from firnline.tables.determinants import Determinants
from firnline.tables.metadata import Metadata
from tests.project import ROOT
from tests.simulation import judging
from tests.simulation.__main__ import failure
from tests.simulation.memory import MemoryTables
from tests.simulation.pipeline import GRAPH

SAMPLE = range(100)
FEW = range(1000)
"""A broken rule is noticed by one of them; the first that does ends the look."""


def test_every_epoch_is_there_once_and_right_whatever_happens() -> None:
    assert [found for seed in SAMPLE if (found := failure(seed))] == []


PRINTED = "from tests.simulation.story import Story; story = Story({seed}); story.run(); print(*story.scheduler.trace, sep='\\n')"


def test_a_seed_replays_exactly_in_any_process() -> None:
    traces = []
    for hashes in ("1", "2"):  # by which sets of names are in another order
        command = [sys.executable, "-c", PRINTED.format(seed=1)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PYTHONHASHSEED": hashes}
        traces.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert traces[0] == traces[1]
    assert traces[0].count("\n") > 100


def publish_anyway(self: Description, generation: int, lower: int, upper: int) -> Verdict:
    return Verdict.FREE


def commit_anyway(self: MemoryTables, table: Metadata) -> Metadata:
    return self._tables[table.pipeline, table.name]


def show_everything(self: Control) -> Frontier:
    return Frontier(4, {})


def look_again(self: Determinants, name: str, value: object) -> object:
    self._catalog.write(self._path(name), json.dumps({"name": name, "value": value}).encode())
    return value


LET_GO, JUDGE = Control.let_go, Description.judge


def place_anyway(agreement: Agreement, hold: Hold, floor: int, label: Label) -> None:
    pass


def let_go_anyway(self: Control, choose: Callable[[Agreement], int]) -> int:
    point = choose(self.agreement())
    return LET_GO(self, lambda _: point)


def publish_in_any_generation(self: Description, generation: int, lower: int, upper: int) -> Verdict:
    return JUDGE(self, self.generation, lower, upper)


def rewind_behind_readers(present: Agreement, frontier: Frontier, rewind: Rewind, *_: object) -> Agreement:
    return replace(present, rewinds=(*present.rewinds, rewind))


def follow_nobody(*_: object) -> None:
    pass


def reuse_whatever_was_read(*_: object) -> bool:
    return True


def view_once(
    project: Project, names: Sequence[str], as_of: str | None, view: Callable[[Graph, str, int], object]
) -> list[object]:
    upto = visible_upto(project, GRAPH)
    return [view(GRAPH, name.partition(".")[2], upto) for name in names]


@pytest.mark.parametrize(
    ("target", "name", "broken"),
    [
        (Description, "judge", publish_anyway),
        (MemoryTables, "_unmoved", commit_anyway),
        (Control, "frontier", show_everything),
        (Determinants, "log", look_again),
        (control, "check_placed", place_anyway),
        (Control, "let_go", let_go_anyway),
        (Description, "judge", publish_in_any_generation),
        (rewinding, "_decided", rewind_behind_readers),
        (rewind, "_follow", follow_nobody),
        (reuse, "is_same_input", reuse_whatever_was_read),
        (judging, "consistent", view_once),
    ],
)
def test_a_broken_rule_is_noticed(
    monkeypatch: pytest.MonkeyPatch, target: object, name: str, broken: Callable[..., object]
) -> None:
    monkeypatch.setattr(target, name, broken)
    assert any(failure(seed) for seed in FEW)
