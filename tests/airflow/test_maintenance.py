"""The DAG that maintains: it is parsed without an engine, and its task starts nothing where nothing is to be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from firnline.runtime.project import Project
from tests.airflow.test_parsing import PARSE, run
from tests.project import ROOT
from tests.web_logs import copies

TASK = """
import runpy
dag = runpy.run_path({file!r})["dag"]
print(dag.get_task("maintain").execute({{}}))
"""


def test_it_is_parsed_without_an_engine_and_does_what_is_to_be_done(environment: dict[str, str], tmp_path: Path) -> None:
    web: Project = copies(tmp_path / "project")()
    file = web.settings.root / "dags" / "firnline_maintenance.py"
    file.parent.mkdir()
    file.write_text((ROOT / "dags" / "firnline_maintenance.py").read_text())
    found = run(PARSE, file, environment, tmp_path / "home")
    assert found["engines"] == []
    assert found["edges"] == {"maintain": []}
    assert found["file"] == str(file)

    table = web.catalog.iceberg("web", "seen")
    with table.transaction() as transaction:
        transaction.remove_properties("write.metadata.previous-versions-max")
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", TASK.format(file=str(file))],
            env={**os.environ, **environment, "AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout.splitlines()[-1])
    assert said == ["maintained", "tidy"]
