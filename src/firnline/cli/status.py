"""``firnline status``: where pipelines stand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, errors, print_json, print_table


@app.command()
def status(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    json: Json = False,
) -> None:
    """Show the frontier and, per collection, the epochs done, failed and missing, and malformed records. Needs no JVM."""
    from firnline.runtime.project import Project
    from firnline.runtime.status import status as status_of

    project = Project.load()
    found = [status_of(project, project.graph(name)) for name in ([pipeline] if pipeline else project.pipelines())]
    if json:
        print_json([asdict(entry) for entry in found])
        return
    for entry in found:
        frontier = f"complete up to {entry.frontier}" if entry.frontier else "no epoch is complete yet"
        print_table(
            f"{entry.pipeline}: {frontier}",
            ("collection", "kind", "upper", "done", "failed", "missing", "malformed", "code"),
            [
                (line.collection, line.kind, line.upper, line.done, len(line.failed), line.missing, line.malformed, line.code)
                for line in entry.collections
            ],
        )
        for line in entry.collections:
            for failure in line.failed:
                errors.print(f"failed: {line.collection} at {failure}", style="red", markup=False)
    if not found:
        console.print("This project has no pipelines: put one into include/pipelines/NAME.py.")
