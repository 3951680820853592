"""What a newcomer does after ``firnline init``: the new project's own tests pass, on real Spark, and those of the tutorial.

The environment and the jars are the present ones, so that this takes a minute; ``make`` is told that the environment is ready.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from firnline.settings import Settings

ROOT = Path(__file__).parents[2]
INHERITED = ("FIRNLINE", "MAKE", "MFLAGS", "PYTEST", "PYTHON", "SPARK", "PYSPARK", "AIRFLOW")


def command(folder: Path, *words: str) -> str:
    """Run a command as from a fresh shell; what it printed, if it went well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=500)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, said
    return said


def follow_the_tutorial(shop: Path) -> None:
    """Do what its chapters on a stage and on its tests say."""
    chapters = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").split("\n## ")
    code = {
        chapter.partition("\n")[0]: re.findall(r"^```(?:python|yaml)\n(.*?)^```$", chapter, re.M | re.S) for chapter in chapters
    }
    [stage], [tests, cases] = code["6. Add a stage"], code["7. Test it"]
    with (shop / "include" / "pipelines" / "sales.py").open("a", encoding="utf-8") as pipeline:
        pipeline.write(f"\n\n{stage}")
    (shop / "tests" / "test_items.py").write_text(tests, encoding="utf-8")
    (shop / "tests" / "test_items.yaml").write_text(cases, encoding="utf-8")


@pytest.mark.spark
def test_the_tests_of_a_new_project_pass(tmp_path: Path) -> None:
    command(tmp_path, str(Path(sys.executable).parent / "firnline"), "init", "shop")
    shop = tmp_path / "shop"
    (shop / ".venv").symlink_to(sys.prefix)
    (shop / ".firnline").mkdir()
    (shop / ".firnline" / "jars").symlink_to(Settings.load(ROOT).jars)
    follow_the_tutorial(shop)
    assert "10 passed" in command(shop, "make", "--old-file=.venv/.ready", "test")
    assert not list((shop / ".firnline").glob("*.db")), "a test must not touch the project's own tables"


def test_the_wheel_makes_the_same_project_as_the_checkout(tmp_path: Path) -> None:
    command(ROOT, sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    installed = tmp_path / "installed"
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(installed)
    made = {}
    for name, origin in (("wheel", installed), ("checkout", ROOT / "src")):
        (tmp_path / name).mkdir()
        start = f"import sys; sys.path.insert(0, {str(origin)!r}); from firnline.cli import main; main()"
        command(tmp_path / name, sys.executable, "-c", start, "init", "shop")
        shop = tmp_path / name / "shop"
        made[name] = {path.relative_to(shop): path.read_text() for path in shop.rglob("*") if path.is_file()}
    assert made["wheel"].keys() == made["checkout"].keys()
    assert "FIRNLINE ?= firnline==" in made["wheel"][Path("Makefile")]
    differing = {path.name for path, text in made["wheel"].items() if text != made["checkout"][path]}
    assert differing <= {"Makefile", "README.md"}
