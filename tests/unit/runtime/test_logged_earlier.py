"""What earlier epochs took: as they were published, whatever an attempt that came too late has logged since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firnline.model.epoch import Epoch
from firnline.runtime.project import Declared
from firnline.runtime.stage_run import StageRun
from tests.project import make_project
from tests.publishing import publish, web

NAME = "files new landing/*"


@pytest.mark.parametrize("first", [{"files": ["a"], "seen": []}, 0])
def test_what_was_published_counts_and_what_was_only_logged_where_nothing_was(tmp_path: Path, first: Any) -> None:
    project, graph = make_project(tmp_path), web()
    publish(project, "visits", 0, determinants={NAME: first})
    for epoch in (0, 1):
        project.determinants("web", "visits", epoch).log(NAME, {"files": [f"late {epoch}"], "seen": []})
    session: Any = None
    run = StageRun(project, Declared(graph, {}, tmp_path), session, graph.collection("visits"), Epoch(2, 3), "attempt")
    assert list(run._logged_earlier(NAME)) == [{"files": ["late 1"], "seen": []}, first]


@pytest.mark.parametrize("epoch", [0, 1])
def test_what_a_published_epoch_took_is_not_forgotten_by_who_fails_afterwards(tmp_path: Path, epoch: int) -> None:
    project, graph = make_project(tmp_path), web()
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("1\n")
    session: Any = None
    run = StageRun(project, Declared(graph, {}, tmp_path), session, graph.collection("visits"), Epoch(epoch, epoch + 1), "zombie")
    given = run.given()
    assert given._outside.new_files("landing/*", lambda: given._matching("landing/*"))
    (name,) = given.determinants
    publish(project, "visits", 0)
    run.failed(given, KeyboardInterrupt())
    assert (project.determinants("web", "visits", epoch).find(name) is not None) is (epoch == 0)
