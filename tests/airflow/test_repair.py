"""The DAG that repairs: it is parsed without an engine, and its task finds and mends what is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.runtime.project import Project
from firnline.runtime.verify import verify
from tests.airflow.test_parsing import PARSE, run
from tests.project import ROOT
from tests.verifying import local, taken
from tests.web_logs import copies

TASK = """
import runpy
dag = runpy.run_path({file!r})["dag"]
print(dag.get_task("repair").execute({{}}))
"""


@pytest.fixture
def web(tmp_path: Path) -> Project:
    made = copies(tmp_path / "project")()
    folder = made.settings.root / "dags"
    folder.mkdir()
    (folder / "firnline_repair.py").write_text((ROOT / "dags" / "firnline_repair.py").read_text())
    return made


def test_parsing_imports_no_engine(web: Project, environment: dict[str, str], tmp_path: Path) -> None:
    found = run(PARSE, web.settings.root / "dags" / "firnline_repair.py", environment, tmp_path / "home")
    assert found["engines"] == []
    assert found["edges"] == {"repair": []}


def test_the_task_repairs_what_is_lost(web: Project, environment: dict[str, str], tmp_path: Path) -> None:
    (manifest,) = taken(web, "web", "seen").revisions[1].manifests or ()
    local(manifest.file.path).unlink()
    script = TASK.format(file=str(web.settings.root / "dags" / "firnline_repair.py"))
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **environment, "AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout.splitlines()[-1])
    assert said == ["repaired", "whole"]
    assert verify(web).problems == ()
