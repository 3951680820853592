"""Throw-away projects for tests: a folder with settings, a pipeline module and, if Spark is needed, the real jars."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from unittest import mock

from firnline.cli import main
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


def compiled(project: Project, *pipelines: str) -> Project:
    """Keep the graphs of a project's pipelines; a process for each, as ``Project.graph`` starts it, would load PySpark anew."""
    with mock.patch.object(sys, "path", [*sys.path]):
        for pipeline in pipelines:
            project.declared(pipeline)
    return project


def firnline(root: Path, *words: str, code: int = 0) -> Any:
    """Run a command in a process of its own; its document, or its text."""
    command = [sys.executable, "-c", "from firnline.cli import main; main()", *words]
    done = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True)
    return _told(words, done.stdout, done.stderr, done.returncode, code)


def command(root: Path, *words: str, code: int = 0) -> Any:
    """Run a command that needs no JVM in this process, which saves loading it; its document, or its text."""
    said, complained, ended = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(root),
        mock.patch.dict(os.environ, environment(), clear=True),
        mock.patch.object(sys, "argv", ["firnline", *words]),
        mock.patch.object(sys, "path", [*sys.path]),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        try:
            main()
        except SystemExit as end:
            ended = end.code if isinstance(end.code, int) else 0
    return _told(words, said.getvalue(), complained.getvalue(), ended, code)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "PYSPARK"))}


def _told(words: tuple[str, ...], said: str, complained: str, ended: int, code: int) -> Any:
    assert ended == code, said + complained
    return json.loads(said) if "--json" in words else said
