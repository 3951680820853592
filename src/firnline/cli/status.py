"""``firnline status``: where pipelines stand."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, errors, print_json, print_table
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.status import PipelineStatus


@app.command()
def status(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    json: Json = False,
) -> None:
    """Show the frontier and, per collection, epochs done and failed, warnings, malformed records, completeness. Needs no JVM."""
    from firnline.runtime.project import Project
    from firnline.runtime.status import status as status_of

    project = Project.load()
    names = [pipeline] if pipeline else project.pipelines()
    found: list[PipelineStatus] = []
    broken: dict[str, FirnlineError] = {}
    for name in names:
        try:
            found.append(status_of(project, project.graph(name)))
        except FirnlineError as error:
            if len(names) == 1:
                raise
            broken[name] = error  # one pipeline that does not load must not hide the others
    if json:
        unloaded = [{"pipeline": name, "error": problem.as_json()} for name, problem in broken.items()]
        print_json([*(asdict(entry) for entry in found), *unloaded])
    else:
        _print(found)
        for name, problem in broken.items():
            errors.print(f"{name}: {problem}", style="red", markup=False)
    if broken:
        raise typer.Exit(1)
    if not names and not json:
        console.print("This project has no pipelines: put one into include/pipelines/NAME.py.")


def _print(found: list[PipelineStatus]) -> None:
    for entry in found:
        frontier = f"complete up to {entry.frontier}" if entry.frontier else "no epoch is complete yet"
        print_table(
            f"{entry.pipeline}: {frontier}, safe point {entry.safe_point}",
            ("collection", "kind", "upper", "done", "failed", "warned", "missing", "malformed", "complete", "code"),
            [
                (
                    line.collection,
                    line.kind,
                    line.upper,
                    line.done,
                    len(line.failed),
                    len(line.warned),
                    line.missing,
                    line.malformed,
                    line.completeness,
                    line.code,
                )
                for line in entry.collections
            ],
        )
        if entry.sinks:
            lines = [(each.sink, each.upper, each.waiting, len(each.failed)) for each in entry.sinks]
            print_table("sinks", ("sink", "delivered up to", "waiting", "failed"), lines)
        if entry.late_by:
            due = f"{timedelta(seconds=entry.freshness or 0.0)} after their end"
            errors.print(
                f"late: epochs are due {due}; {entry.pipeline} is late by {timedelta(seconds=round(entry.late_by))}",
                style="red",
                markup=False,
            )
        for rewound in entry.rewinds:
            errors.print(f"rewound: {rewound}", style="yellow", markup=False)
        for sink in entry.sinks:
            for failure in sink.failed:
                errors.print(f"failed: the sink {sink.sink} at {failure}", style="red", markup=False)
        for line in entry.collections:
            for failure in line.failed:
                errors.print(f"failed: {line.collection} at {failure}", style="red", markup=False)
            for warning in line.warned:
                errors.print(f"warned: {line.collection} at {warning}", style="yellow", markup=False)
            for lack in line.lacking:
                errors.print(f"gap: {line.collection} is {line.completeness}: {lack}", style="yellow", markup=False)
