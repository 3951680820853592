"""A pipeline at a glance, on real logs without a JVM: every number is counted again here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gap, Span
from firnline.runtime.overview import Overview, overview
from firnline.runtime.project import Project
from firnline.tables.failures import Failure
from tests.project import compiled, make_project
from tests.web_logs import PIPELINE, copies, of_today, publish


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copies(tmp_path_factory.mktemp("overview") / "project")()


@pytest.fixture
def changed(tmp_path: Path) -> Project:
    return copies(tmp_path / "project")()


def states(found: Overview) -> dict[str, list[str]]:
    return {line.name: [cell.state for cell in line.cells] for line in found.collections}


def test_what_logs_hold_is_told_with_its_rows(fresh: Project) -> None:
    found = overview(fresh, of_today(fresh))
    assert (found.status.frontier, found.lag, found.epochs) == ("3", 0, (("0", "1"), ("1", "2"), ("2", "3")))
    assert states(found) == {"visits": ["computed"] * 3, "seen": ["computed"] * 3}
    assert [line.condition for line in found.collections] == ["whole", "whole"]
    for line in found.collections:
        assert [(cell.rows, cell.seconds) for cell in line.cells] == [(3, 0.5)] * 3  # part p has p + 1 rows
        assert line.stored is not None
        assert (line.stored.rows, line.stored.weight, line.stored.amplification) == (9, 9, 1.0)
        assert line.stored.layers == (("2", "3", 3), ("1", "2", 3), ("0", "1", 3))
    json.dumps(asdict(found), allow_nan=False)


def test_epochs_of_other_code_than_todays_are_stale(changed: Project) -> None:
    for collection, plan in (("visits", "p"), ("seen", "other")):
        publish(changed, collection, 3, made_by=Fingerprint("0" * 32, plan))
    found = overview(changed, of_today(changed, "0" * 32))
    assert states(found) == {"visits": ["computed"] * 4, "seen": ["stale"] * 3 + ["computed"]}  # a new text, the same plan
    assert [line.condition for line in found.collections] == ["whole", "whole"]


def test_a_part_of_the_epochs_is_shown(fresh: Project) -> None:
    graph = of_today(fresh)
    assert overview(fresh, graph, upto="2", count=1).epochs == (("1", "2"),)
    assert overview(fresh, graph, count=2).has_earlier
    assert not overview(fresh, graph, count=3).has_earlier
    assert overview(fresh, graph, upto="0").epochs == ()
    with pytest.raises(FirnlineError, match="BAD_OPTION"):
        overview(fresh, graph, count=0)
    with pytest.raises(FirnlineError, match="BAD_EPOCH"):
        overview(fresh, graph, upto="../etc")


def test_epochs_that_failed_or_are_behind_are_told(changed: Project) -> None:
    graph = of_today(changed)
    changed.failures("web").note(Failure("seen", 3, 4, "a", "STAGE_FAILED", "no", False, "2026-01-01T00:00:00+00:00"))
    found = overview(changed, graph, upto="4")
    assert states(found) == {"visits": ["computed"] * 3 + ["missing"], "seen": ["computed"] * 3 + ["failed"]}
    assert found.collections[1].cells[3].note == "STAGE_FAILED: no"
    assert found.collections[1].condition == "failed"


def test_a_gap_is_told_of_its_own_epochs_and_of_what_was_computed_without_them(changed: Project) -> None:
    gap = Gap("g", "visits", (Span(1, 1, (0,)),), 1, "2026-01-01", "web.visits", "lost", {"seen": 2}, phase="open")
    changed.control("web").change(lambda gaps: gaps.opened(gap))
    found = overview(changed, of_today(changed))
    assert states(found) == {"visits": ["computed", "gap", "computed"], "seen": ["computed", "computed", "gap"]}
    assert {line.condition for line in found.collections} == {"gap"}


def test_a_project_before_its_first_epoch(tmp_path: Path) -> None:
    project = compiled(make_project(tmp_path, web=PIPELINE), "web")
    found = overview(project, project.graph("web"))
    assert (found.epochs, found.status.frontier, found.lag) == ((), None, 0)
    assert [line.stored for line in found.collections] == [None, None]
