"""A task that runs a command, ended from outside: it runs again as the same try."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException

from firnline.airflow.housekeeping import CommandOperator, RepairOperator
from tests.project import make_project

SLOW = """
    import pathlib, time

    pathlib.Path("begun").touch()
    time.sleep(60)
"""


@pytest.mark.parametrize("when", ["before it starts", "in the middle"])
def test_a_command_that_is_interrupted_is_not_taken_for_one_that_failed(tmp_path: Path, when: str) -> None:
    project = make_project(tmp_path, slow=SLOW)
    task = RepairOperator(task_id="repair", root=str(tmp_path))

    def end() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        task.on_kill()

    if when == "before it starts":
        task.on_kill()
    else:
        Thread(target=end, daemon=True).start()
    began = time.monotonic()
    with pytest.raises(AirflowRescheduleException):
        task._ran(project.settings, "plan")
    assert time.monotonic() - began < 30


def test_a_command_that_fails_by_itself_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert not CommandOperator(task_id="any", root=str(tmp_path))._ran(project.settings, "run", "nobody")
