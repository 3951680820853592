"""A driver that dies in mid-epoch, or a run that is killed: nothing half-visible, and the next run goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firnline.runtime.project import Project
from firnline.settings import FILE
from tests.project import ROOT, make_project
from tests.spark.running import rows

PIPELINE = """
    import os, signal
    import firnline as fl

    crash = fl.Pipeline("crash", schedule=1, start=0)

    @crash.source(keys=["k"])
    def numbers(epoch):
        return epoch.spark.createDataFrame([(epoch.lower, "x")], "k bigint, v string")

    @crash.stage(keys=["k"])
    def twice(numbers):
        if os.path.exists("die"):
            os.rename("die", "died")
            {dying}
        return numbers.selectExpr("k * 2 AS k", "v")
"""
DYING = {
    "python": "os.kill(os.getpid(), signal.SIGKILL)",
    "jvm": "import subprocess; subprocess.run(['pkill', '-9', '-P', str(os.getpid()), 'java'], check=True)",
}


def run(project: Project) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "PYSPARK"))}
    command = [sys.executable, "-c", "from firnline.cli import main; main()", "run", "crash", "--to", "1", "--json"]
    return subprocess.run(command, cwd=project.settings.root, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("what", DYING)
def test_after_a_kill_the_next_run_goes_on_from_the_log(tmp_path: Path, what: str) -> None:
    project = make_project(tmp_path, (ROOT / FILE).read_text(), crash=PIPELINE.format(dying=DYING[what]))
    (tmp_path / "die").touch()
    died = run(project)
    if what == "python":
        assert died.returncode == -signal.SIGKILL
    else:
        assert json.loads(died.stdout)["error"]["code"] == "ENGINE_LOST"
    assert project.control("crash").frontier() is None
    again = run(project)
    assert again.returncode == 0, again.stdout + again.stderr
    kept = [(entry["collection"], entry["epoch"], entry["how"]) for entry in json.loads(again.stdout)]
    assert kept == [
        ("numbers", "0", "kept"),
        ("twice", "0", "computed"),
        ("numbers", "1", "computed"),
        ("twice", "1", "computed"),
    ]
    graph = project.graph("crash")
    assert rows(project, graph, "twice") == [(0, "x"), (2, "x")]
    assert [entry.lower for entry in project.log("crash", "numbers").entries()] == [1, 0]
    time.sleep(1)
    assert not _java_below(tmp_path), "no driver is left"


def _java_below(root: Path) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args", "ww"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "java" in line and str(root) in line]
