"""Someone clones the project into an empty folder, with an empty home: the README's two commands set everything up."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_the_readmes_commands_set_themselves_up_in_a_fresh_clone(tmp_path: Path) -> None:
    commands = re.findall(r"^make (demo|up)\b", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(commands) == {"demo", "up"}, "the README's two commands"
    clone, home = tmp_path / "firnline", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    path = os.pathsep.join(
        entry for entry in os.environ["PATH"].split(os.pathsep) if str(ROOT) not in entry and ".venv" not in entry
    )
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "SPARK_HOME", "AIRFLOW_HOME", "PYSPARK_PYTHON")
    environment = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("FIRNLINE_")}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "PATH": path}
    for target in ("demo", "up"):
        dry = subprocess.run(
            ["make", "-n", target], cwd=clone, env=environment, capture_output=True, text=True, check=True
        ).stdout
        assert "doctor --mend" in dry, "the command begins with the set-up"
    done = subprocess.run(["make", "setup"], cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = subprocess.run(
        [".venv/bin/firnline", "doctor", "--json"], cwd=clone, env=environment, capture_output=True, text=True
    ).stdout
    assert json.loads(report)["ok"], report
    plan = subprocess.run(
        [".venv/bin/firnline", "plan", "amplab", "--json"], cwd=clone, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert {len(step["epochs"]) for step in json.loads(plan)[0]["run"]} == {3}
    again = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True).stdout
    assert again == "", "setting up leaves no file that git would see"
