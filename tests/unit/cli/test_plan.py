"""``firnline plan`` of several pipelines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.project import make_project

SOUND = """
    import firnline as fl

    sound = fl.Pipeline("sound", schedule=1, start=0)

    @sound.source(keys=["id"])
    def visits(epoch): ...
"""


def test_a_pipeline_that_does_not_load_does_not_hide_the_others(tmp_path: Path) -> None:
    make_project(tmp_path, sound=SOUND, broken="import nothing_of_that_name")
    words = [sys.executable, "-c", "from firnline.cli import main; main()", "plan", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    broken, sound = json.loads(done.stdout)
    assert done.returncode == 1
    assert (broken["pipeline"], broken["error"]["code"]) == ("broken", "PIPELINE_UNLOADABLE")
    assert [(step["collection"], step["code"]) for step in sound["run"]] == [("visits", "new")]
    assert (sound["changes"], sound["recomputed"], sound["retired"]) == ([], [], [])
