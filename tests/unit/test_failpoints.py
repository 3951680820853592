"""Faults are armed by a text, refused if they cannot happen, happen once, and cost nothing while there are none."""

import re
import time
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.failpoints import KINDS, POINTS, VARIABLE, Armed
from firnline.world import World

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "faults.md"


def test_nothing_is_armed_by_nothing():
    assert Armed.of("") == Armed.of(" , ") == Armed()


def test_several_points_are_armed_at_once():
    armed = Armed.of("publish.committed=kill, stage.written=delay@3")
    assert armed.kinds == {"publish.committed": "kill", "stage.written": "delay"}
    assert armed.passes == {"publish.committed": 0, "stage.written": 2}


@pytest.mark.parametrize(
    "text",
    [
        "nowhere=kill",
        "stage.written=explode",
        "stage.written=lost",  # nothing is committed there that could be lost
        "publish.committed=raise",
        "stage.written",
        "stage.written=kill@soon",
        "=kill",
    ],
)
def test_a_fault_that_cannot_happen_is_refused(text):
    with pytest.raises(FirnlineError, match="BAD_SETTING") as caught:
        Armed.of(f"advance.planned=kill,{text}")
    assert VARIABLE in caught.value.what
    assert repr(text) in caught.value.what


def test_a_fault_happens_once():
    armed = Armed.of("stage.written=raise")
    armed.reach("stage.audited")
    with pytest.raises(OSError, match=r"failpoint stage\.written"):
        armed.reach("stage.written")
    armed.reach("stage.written")


def test_passes_are_let_go_by():
    armed = Armed.of("stage.written=raise@2")
    armed.reach("stage.written")
    with pytest.raises(OSError, match="failpoint"):
        armed.reach("stage.written")


def test_the_variable_arms_a_new_world(monkeypatch):
    monkeypatch.setenv(VARIABLE, "publish.committed=lost")
    with pytest.raises(OSError, match=r"publish\.committed"):
        World().reach("publish.committed")
    monkeypatch.delenv(VARIABLE)
    World().reach("publish.committed")


def test_unarmed_points_cost_nothing(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    world = World()
    began = time.process_time()
    for _ in range(100_000):
        world.reach("stage.written")
    assert time.process_time() - began < 1, "ten microseconds each would be far too much already"


def test_every_point_that_is_reached_is_in_the_table_and_the_other_way_round():
    sources = (Path(__file__).parents[2] / "src" / "firnline").rglob("*.py")
    written = {point for path in sources for point in re.findall(r'\.reach\(f?"([^"]+)"\)', path.read_text())}
    reached = {point.replace("{kind}", kind) for point in written for kind in ("repair", "merge", "rescale")}
    assert reached == set(POINTS)


def test_the_page_lists_exactly_the_points_and_kinds():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    points = [f"| `{name}` | {where} | {', '.join(f'`{kind}`' for kind in kinds)} |" for name, (where, kinds) in POINTS.items()]
    assert rows == [*(f"| `{kind}` | {what} |" for kind, what in KINDS.items()), *points]
