"""A project in the work folder of a benchmark: settings, one pipeline's module, the checkout's jars."""

from __future__ import annotations

import os
from pathlib import Path

from firnline.runtime.project import PIPELINES, Project
from firnline.settings import FILE, Settings


def project_in(root: Path, settings: str, name: str, module: str, jars: Path) -> Project:
    """The project, made if it is not there."""
    pipelines = root / PIPELINES
    pipelines.mkdir(parents=True, exist_ok=True)
    (root / FILE).write_text(settings)
    (pipelines / f"{name}.py").write_text(module)
    loaded = Settings.load(root)
    loaded.work.mkdir(exist_ok=True)
    if not os.path.lexists(loaded.jars):
        loaded.jars.symlink_to(jars)
    return Project(loaded)
