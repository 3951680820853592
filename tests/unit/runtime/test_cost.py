"""What an epoch costs is told by the logs alone."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from firnline.cli.cost import print_cost, time_text
from firnline.runtime.cost import cost
from firnline.runtime.explain import Explanation
from firnline.runtime.project import Project
from tests.web_logs import copies, of_today


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copies(tmp_path_factory.mktemp("cost") / "project")()


def explained(*scans: str) -> Explanation:
    return Explanation("seen", "auto", "repeatable", "", (), {}, (), None, (), None, scans)


def test_rows_states_and_seconds_are_those_of_the_logs(web: Project, capsys: pytest.CaptureFixture[str]) -> None:
    found = cost(web, of_today(web), explained("visits"))
    assert [each.seconds for each in found.seen] == [0.5] * 3
    assert [each.state for each in found.seen] == [6, 3, 0], "what visits held before each epoch, the newest first"
    assert (found.shape.rows, found.shape.state, found.shape.parts, found.shape.layers) == (9, 9, 2, 3)
    assert found.shape.interval == 3600
    assert found.prices.seconds(3, 6) == pytest.approx(0.5, rel=1e-3)
    assert json.loads(json.dumps(asdict(found)))["stage"] == "seen"
    print_cost(found)
    told = " ".join(capsys.readouterr().out.split())
    assert "9 rows" in told
    assert "10 TB" in told
    assert "10,000 collections" in told


def test_a_stage_that_reads_no_state_has_none(web: Project) -> None:
    found = cost(web, of_today(web), explained())
    assert (found.shape.state, found.shape.rows) == (0, 9)
    assert {each.state for each in found.seen} == {0}


def test_times_are_told_in_units_of_people() -> None:
    assert [time_text(each) for each in (0.04, 119, 7200, 1e6)] == ["0.0 s", "119.0 s", "2.0 hours", "11.6 days"]
