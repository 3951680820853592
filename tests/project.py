"""Throw-away projects for tests: a folder with settings, a pipeline module and, if Spark is needed, the real jars."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

from firnline.runtime.project import Project
from firnline.settings import FILE, Settings

ROOT = Path(__file__).parent.parent


def make_project(root: Path, settings: str = "", **pipelines: str) -> Project:
    """A project in an empty folder, with pipelines given as source text."""
    folder = root / "include" / "pipelines"
    folder.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(textwrap.dedent(settings))
    for name, source in pipelines.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
    (root / ".firnline").mkdir(exist_ok=True)
    jars = root / ".firnline" / "jars"
    if not jars.exists():
        jars.symlink_to(Settings.load(ROOT).jars)
    return Project.load(root)


def copy_amplab(root: Path) -> Project:
    """The AMPLab pipeline with its landing files and DAG, in a folder of its own."""
    for folder in ("include", "dags", "spark_jobs", "plugins"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return make_project(root, (ROOT / FILE).read_text())
