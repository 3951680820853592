"""``firnline approve``: changed code may make epochs."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table


@app.command()
def approve(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    stage: Annotated[list[str] | None, typer.Option("--stage", help="Only this one; may be given several times.")] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="EPOCH", help="Let runs for past epochs from here on make them anew, too.")
    ] = None,
    json: Json = False,
) -> None:
    """Approve today's code of stages that changed: their next epochs are made by it. Computes nothing, needs no JVM."""
    from firnline.runtime.approving import approve as approved
    from firnline.runtime.project import Project
    from firnline.runtime.reader import user

    project = Project.load()
    graph = project.graph(pipeline)
    for name in stage or ():
        graph.collection(name)
    label = graph.schedule.label
    since = None if first is None else graph.schedule.epoch_at(graph.schedule.point(first)).lower
    found = approved(project, graph, user(), stage or (), since)
    if json:
        print_json([{**each.as_json(), "at": label(each.at)} for each in found])
    elif not found:
        console.print("There is nothing to approve: today's code is what made the newest epochs.")
    else:
        print_table(f"{pipeline}: approved", ("collection", "from"), [(each.collection, label(each.at)) for each in found])
        if since is None:
            console.print(f"The next run goes on: firnline run {pipeline}", markup=False)
        else:
            console.print(f"To replay them: a backfill, or firnline rewind {pipeline} --to {label(since)} --replay", markup=False)
