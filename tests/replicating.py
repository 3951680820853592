"""A pipeline whose logs have two places for copies, made without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from firnline.runtime.project import Project
from firnline.runtime.replicate import Replicated, replicate
from tests.verifying import local, taken
from tests.web_logs import PIPELINE, copies


def with_places(root: Path) -> Callable[[], Project]:
    """Makes copies of two logs (``tests.web_logs``), each with two places that hold nothing yet."""
    places = f'replicas=["file://{root}/b", "file://{root}/c"], durability=2'
    made = copies(root / "project", PIPELINE.replace("start=0", f"start=0, {places}"))

    def emptied() -> Project:
        found = made()
        for place in folders(found):
            shutil.rmtree(place, ignore_errors=True)
            place.unlink() if place.is_file() else None
        return found

    return emptied


def no_session() -> NoReturn:
    raise AssertionError("nothing is to be computed")


def folders(project: Project) -> tuple[Path, Path]:
    root = project.settings.root.parent
    return root / "b", root / "c"


def url(project: Project, at: int) -> str:
    return f"file://{folders(project)[at]}"


def run(project: Project, **changes: object) -> Replicated:
    return replicate(project, replace(project.graph("web"), **changes))  # type: ignore[arg-type]


def lose(project: Project, what: str) -> list[Path]:
    """Files of ``seen`` that are not rows."""
    log, table = taken(project, "web", "seen"), project.log("web", "seen").load()
    assert table is not None
    (manifest,) = log.revisions[1].manifests or ()
    sidecar = log.revisions[0].sidecar
    assert sidecar is not None
    several = {
        "manifest": manifest.file.path,
        "list": log.revisions[2].manifest_list.path,
        "sidecar": sidecar.path,
        "metadata": table.version,
    }
    return [local(path) for name, path in several.items() if what in (name, "all")]
