"""``firnline replicate``: copy what is published to other places."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table
from firnline.cli.pipelines import asked

if TYPE_CHECKING:
    from firnline.runtime.replicate import Replicated


@app.command()
def replicate(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be copied.")] = False,
    renew: Annotated[
        str | None, typer.Option("--renew", metavar="URL", help="First forget what was copied to a place whose content is gone.")
    ] = None,
    json: Json = False,
) -> None:
    """Copy published batches to the pipelines' replicas, and check them there. Needs no JVM, may run beside epochs."""
    from firnline.runtime.project import Project
    from firnline.runtime.replicas import Replicas
    from firnline.runtime.replicate import planned
    from firnline.runtime.replicate import replicate as replicated

    if renew is not None and (pipeline is None or dry_run):
        raise typer.BadParameter("is of use with a pipeline and without --dry-run only", param_hint="--renew")
    project = Project.load()
    with asked(project, pipeline) as graphs:
        if renew is not None:
            Replicas(project, graphs[0]).renew(renew.rstrip("/"))
        act = planned if dry_run else replicated
        found = [act(project, graph) for graph in graphs if graph.replicas]
        if json:
            print_json({each.pipeline: _document(each) for each in found})
        else:
            for each in found:
                _print(each, dry_run)
            if not found:
                console.print("No pipeline has replicas.")
    if any(each.failed for each in found):
        raise typer.Exit(1)


def _document(found: Replicated) -> dict[str, Any]:
    return {
        "copied": [asdict(each) for each in found.copied],
        "failed": [{"subject": each.subject, "error": each.error.as_json()} for each in found.failed],
        "waiting": found.waiting,
        "queued": found.queued,
        "recovery_time": found.recovery_time,
    }


def _print(found: Replicated, dry_run: bool) -> None:
    rows = [
        (
            f"{found.pipeline}.{each.collection}",
            each.lower,
            each.upper,
            each.place,
            *(() if dry_run else (each.files, each.bytes)),
        )
        for each in found.copied
    ]
    if rows:
        columns = ("collection", "from", "to", "place", *(() if dry_run else ("files", "bytes")))
        print_table("would be copied" if dry_run else "copied", columns, rows)
    for each in found.failed:
        console.print(str(each.error), style="red", markup=False)
    left = found.waiting if not dry_run else found.waiting - len({(each.collection, each.lower) for each in found.copied})
    if left > 0:
        why = f": {found.queued} epochs come first" if found.queued else ""
        console.print(f"{found.pipeline}: {left} batches wait, which took {found.recovery_time:.0f} s to compute{why}")
    elif not rows:
        console.print(f"{found.pipeline}: nothing to do, everything is on enough places")
