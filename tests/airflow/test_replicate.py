"""The DAG that copies to replicas: it is parsed without an engine, and its task copies, tells and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firnline.runtime.project import Project
from firnline.runtime.replicated import replicated_upto
from tests.airflow.test_parsing import PARSE, run
from tests.project import ROOT
from tests.web_logs import PIPELINE, copies

TASK = """
import runpy
dag = runpy.run_path({file!r})["dag"]
print(dag.get_task("replicate").execute({{}}))
"""


@pytest.fixture
def web(tmp_path: Path) -> Project:
    place = f'start=0, replicas=["file://{tmp_path}/b"]'
    made = copies(tmp_path / "project", PIPELINE.replace("start=0", place))()
    folder = made.settings.root / "dags"
    folder.mkdir()
    (folder / "firnline_replicate.py").write_text((ROOT / "dags" / "firnline_replicate.py").read_text())
    return made


def test_parsing_imports_no_engine(web: Project, environment: dict[str, str], tmp_path: Path) -> None:
    found = run(PARSE, web.settings.root / "dags" / "firnline_replicate.py", environment, tmp_path / "home")
    assert found["engines"] == []
    assert found["edges"] == {"replicate": []}


def test_the_task_copies_what_is_published_and_tells_of_a_place_that_is_out(
    web: Project, environment: dict[str, str], tmp_path: Path
) -> None:
    script = TASK.format(file=str(web.settings.root / "dags" / "firnline_replicate.py"))
    place, said = tmp_path / "b", []
    place.write_text("in the way")
    for is_out in (True, False, False):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **environment, "AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == int(is_out), done.stdout + done.stderr
        if is_out:
            assert "REPLICA_UNAVAILABLE" in done.stdout + done.stderr
            place.unlink()
        else:
            said.append(done.stdout.splitlines()[-1])
    assert said == ["6", "0"]
    assert replicated_upto(web, web.graph("web")) == {"visits": 3, "seen": 3}
