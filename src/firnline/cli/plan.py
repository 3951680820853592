"""``firnline plan``: what would run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, nothing_due, print_json, print_table


@app.command()
def plan(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    last: Annotated[str | None, typer.Option("--to", help="The last epoch; by default the last one that is due.")] = None,
    json: Json = False,
) -> None:
    """Show what a run would compute, and where the code changed since the newest epoch. Does nothing, needs no JVM."""
    from firnline.runtime.project import Project
    from firnline.runtime.status import steps

    project = Project.load()
    graph = project.graph(pipeline)
    upto = graph.schedule.epoch_at(graph.schedule.point(last)) if last is not None else None
    found = steps(project, graph, upto)
    if json:
        print_json([asdict(step) for step in found])
        return
    rows = [(step.collection, len(step.epochs), _span(step.epochs), step.code) for step in found]
    print_table(f"{pipeline}: what would run", ("collection", "epochs", "which", "code"), rows)
    if not any(step.epochs for step in found):
        console.print(nothing_due(graph.schedule))
    if any(step.code == "changed" for step in found):
        console.print("Published epochs keep the code that made them; the next new epoch uses today's and corrects the state.")
    if any(step.code == "edited" for step in found):
        console.print(
            "Where the code is edited, the next epoch shows whether its plan changed; if not, nothing is computed again."
        )


def _span(labels: tuple[str, ...]) -> str:
    if len(labels) <= 3:
        return ", ".join(labels)
    return f"{labels[0]} ... {labels[-1]}"
