"""``firnline maintain``: keep logs tidy."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table


@app.command()
def maintain(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    json: Json = False,
) -> None:
    """Drop what crashed attempts had staged, once their epochs are published by others. Needs no JVM, may run beside epochs."""
    from firnline.runtime.maintain import maintain as maintained
    from firnline.runtime.maintain import planned
    from firnline.runtime.project import Project

    project = Project.load()
    names = [pipeline] if pipeline else project.pipelines()
    act = planned if dry_run else maintained
    found = {name: act(project, project.graph(name).name) for name in names}
    if json:
        print_json({name: [asdict(each) for each in swept] for name, swept in found.items()})
        return
    rows = [(f"{name}.{each.collection}", each.snapshots) for name, swept in found.items() for each in swept]
    if rows:
        print_table("would be dropped" if dry_run else "dropped", ("collection", "staged snapshots"), rows)
    else:
        console.print("Nothing to do.")
