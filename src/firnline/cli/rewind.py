"""``firnline rewind``: back to an epoch, and forth again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table
from firnline.cli.run import counts, run_epochs
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.advance import Outcome
    from firnline.runtime.rewind import Report


@app.command()
def rewind(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    to: Annotated[str | None, typer.Option("--to", metavar="EPOCH", help="The first epoch that is taken out.")] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", help="A collection: it and all that comes of it go back; all by default.")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Then compute the epochs again, or reuse them. Needs Spark.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Undo the newest rewind instead.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    json: Json = False,
) -> None:
    """Take epochs back: a stage and all that comes of it hold nothing from an epoch on. At once, undoable, needs no JVM."""
    from firnline.plan.rewinding import scope
    from firnline.runtime.approving import approve
    from firnline.runtime.project import Project
    from firnline.runtime.reader import user
    from firnline.runtime.rewind import rewind as rewound
    from firnline.runtime.rewind import undo as undone

    if undo == (to is not None) or (undo and (stage or replay)):
        raise typer.BadParameter("a rewind needs --to EPOCH, an undo nothing but --undo", param_hint="--to")
    project = Project.load()
    graph = project.graph(pipeline)
    frontier = project.control(pipeline).frontier()
    outcomes: list[Outcome] = []
    if to is None:
        report = undone(project, graph, user(), is_dry=dry_run)
    else:
        point = graph.schedule.epoch_at(graph.schedule.point(to)).lower
        if replay and not dry_run and graph.on_change != "allow":  # who asks for it approves of the code that does it
            approve(project, graph, user(), scope(graph, stage), point)
        report = rewound(project, graph, point, stage, user(), is_dry=dry_run)
        if replay and not dry_run and frontier is not None:
            epochs = list(graph.schedule.epochs(point, frontier.upper))
            failed: dict[str, FirnlineError] = {}
            outcomes = run_epochs(project, project.declared(pipeline), epochs, json, failed)
            for error in failed.values():
                raise error
    if json:
        replayed = [{**asdict(each), "epoch": graph.schedule.label(each.epoch.lower)} for each in outcomes]
        print_json({**asdict(report), "done": not dry_run, "replayed": replayed})
        return
    _show(report, is_dry=dry_run)
    if outcomes:
        console.print(f"Replayed: {counts(outcomes)}.")


def _show(report: Report, *, is_dry: bool) -> None:
    what = f"undo of {report.undoes}" if report.undoes else f"rewind to {report.to}"
    title = f"{report.pipeline}: what the {what} would do" if is_dry else f"{report.pipeline}: {what}"
    rows = [(line.log, line.before, line.after, line.epochs) for line in report.logs]
    print_table(title, ("log", "ended at", "ends at", "epochs"), rows)
    for name in report.beyond:
        console.print(f"{name} of another pipeline has read what is taken out: rewind it too.", style="yellow", markup=False)
    if not is_dry and not report.undoes:
        console.print(f"To compute the epochs again: firnline run {report.pipeline}", markup=False)
        console.print(f"To have them back as they were: firnline rewind {report.pipeline} --undo", markup=False)
