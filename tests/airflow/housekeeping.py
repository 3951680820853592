"""The DAGs that look after all pipelines of a project, as a worker has them: a file is parsed, its only task executed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from firnline.runtime.project import Project
from tests.airflow.test_parsing import run
from tests.project import ROOT

TASKS = {"maintenance": "maintain", "repair": "repair", "replicate": "replicate"}

_TASK = """
import json, runpy, sys
from airflow.sdk.exceptions import AirflowException
file, times = sys.argv[1:]
dag = runpy.run_path(file)["dag"]
engines = sorted({name.partition(".")[0] for name in sys.modules} & {"pyspark", "great_expectations", "pyiceberg", "pyarrow"})
outcomes = []
for _ in range(int(times)):
    (task,) = dag.tasks
    try:
        outcomes.append(task.execute({}))
    except AirflowException as error:
        outcomes.append(str(error))
print(json.dumps({"file": dag.fileloc, "task": task.task_id, "engines when parsed": engines, "outcomes": outcomes}))
"""


def execute(project: Project, dag: str, times: int, environment: dict[str, str], home: Path) -> list[Any]:
    """What the task of one of our own DAG files says each time, or the errors it raises, in a copy of the file in a project."""
    file = project.settings.root / "dags" / f"firnline_{dag}.py"
    file.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "dags" / file.name, file)
    found = run(_TASK, file, environment, home, str(times))
    outcomes: list[Any] = found.pop("outcomes")
    assert found == {"file": str(file), "task": TASKS[dag], "engines when parsed": []}
    return outcomes
