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
