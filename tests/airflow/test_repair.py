"""The DAG that repairs: it is parsed without an engine, and its task finds and mends what is lost."""

from __future__ import annotations

from pathlib import Path

from firnline.runtime.verify import verify
from tests.airflow.housekeeping import execute
from tests.verifying import local, taken
from tests.web_logs import copies


def test_the_task_repairs_what_is_lost(environment: dict[str, str], tmp_path: Path) -> None:
    web = copies(tmp_path / "project")()
    (manifest,) = taken(web, "web", "seen").revisions[1].manifests or ()
    local(manifest.file.path).unlink()
    assert execute(web, "repair", 2, environment, tmp_path / "home") == ["repaired", "whole"]
    assert verify(web).problems == ()
