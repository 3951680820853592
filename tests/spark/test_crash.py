"""A driver that dies in mid-epoch, or a run that is killed: nothing half-visible, and the next run goes on."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from firnline.settings import FILE
from tests.project import ROOT, make_project
from tests.spark.running import java_below, rows, run_command

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


@pytest.mark.parametrize("what", DYING)
def test_after_a_kill_the_next_run_goes_on_from_the_log(tmp_path: Path, what: str) -> None:
    project = make_project(tmp_path, (ROOT / FILE).read_text(), crash=PIPELINE.format(dying=DYING[what]))
    (tmp_path / "die").touch()
    died = run_command(project, "crash", "1")
    if what == "python":
        assert died.returncode == -signal.SIGKILL
    else:
        assert json.loads(died.stdout)["error"]["code"] == "ENGINE_LOST"
    assert project.control("crash").frontier() is None
    again = run_command(project, "crash", "1")
    assert again.returncode == 0, again.stdout + again.stderr
    how = {(entry["collection"], entry["epoch"]): entry["how"] for entry in json.loads(again.stdout)}
    assert how.pop(("numbers", "1")) in ("computed", "kept"), "it may have come so far beside the stage that died"
    assert how == {("numbers", "0"): "kept", ("twice", "0"): "computed", ("twice", "1"): "computed"}
    graph = project.graph("crash")
    assert rows(project, graph, "twice") == [(0, "x"), (2, "x")]
    assert [entry.lower for entry in project.log("crash", "numbers").entries()] == [1, 0]
    time.sleep(1)
    assert not java_below(tmp_path), "no driver is left"
