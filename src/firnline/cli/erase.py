"""``firnline erase``: rows of a source are forgotten, everywhere."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table, quiet, size_text
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.runtime.erase import Erased, Planned, Report


@app.command()
def erase(
    collection: Annotated[str, typer.Argument(help="The source: PIPELINE.COLLECTION, or COLLECTION where that is clear.")],
    where: Annotated[str, typer.Option(help="A condition on its columns, in Spark's SQL: rows for which it is true go.")],
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Also drop all malformed records of the source.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove rows of a source for good, with all that came of them, and prove it. Epochs before now cannot be read any more."""
    from firnline.cli.collection import found_in_main
    from firnline.engine.session import opened
    from firnline.plan.erasure import cone
    from firnline.runtime.erase import erase as erased
    from firnline.runtime.erase import planned
    from firnline.runtime.project import Project

    project = Project.load()
    graph, source = found_in_main(project, collection)
    cone(graph, source)
    if not (dry_run or yes or (sys.stdin.isatty() and not json)):
        raise FirnlineError("NOT_CONFIRMED", f"rows of {graph.name}.{source} would be gone for good")
    with ExitStack() as stack:
        if not json:
            console.print("starting Spark")
        stack.enter_context(quiet())
        session = stack.enter_context(opened(project.settings, "firnline erase"))
        if dry_run or not yes:
            plan = planned(project, session, graph, source, where, quarantine=quarantine)
            _show_plan(plan, quarantine, json)
        if dry_run:
            return
        if not yes:
            typer.confirm("Erase them for good?", abort=True)
        report = erased(project, session, graph, source, where, quarantine=quarantine)
    _show(report, json)
    raise typer.Exit(0 if report.proof.is_complete else 1)


def _show_plan(plan: Planned, quarantine: bool, json: bool) -> None:
    if json:
        print_json(asdict(plan))
        return
    name = f"{plan.pipeline}.{plan.source}"
    print_table(f"rows of {name} that would be erased", ("epoch", "rows"), list(plan.matching.items()))
    _print_logs("would be made anew, or dropped", plan.logs)
    console.print(f"Single epochs before {plan.upto} could not be read any more.", markup=False)
    for other in plan.beyond:
        console.print(f"{other} comes of it in another pipeline, and would keep what it has.", style="red", markup=False)
    if plan.quarantined and not quarantine:
        _print_quarantined(name, plan.quarantined)


def _show(report: Report, json: bool) -> None:
    proof = report.proof
    if json:
        print_json({**asdict(report), "is_complete": proof.is_complete})
        return
    _print_logs("erased", report.logs)
    more = f"{report.notes_removed} notes about epochs and {report.copies_removed} copies at other places are gone"
    console.print(f"{more}; single epochs before {report.upto} cannot be read any more", markup=False)
    if report.quarantined:
        _print_quarantined(f"{report.pipeline}.{report.source}", report.quarantined)
    looked = f"{proof.files} files are all named by their logs, {proof.rows} rows of the source were asked"
    compared = f"{len(proof.compared)} logs compared with an evaluation from scratch, {proof.searched} files searched"
    console.print(f"proof: {looked}, {compared}", markup=False)
    for left in proof.left:
        console.print(f"left: {left.where}: {left.what}", style="red", markup=False)
    console.print("nothing remains" if proof.is_complete else f"{len(proof.left)} things may remain")


def _print_logs(title: str, logs: tuple[Erased, ...]) -> None:
    rows = [
        (
            each.collection,
            each.how,
            each.rows_before,
            each.rows_erased,
            each.files_written,
            size_text(each.bytes_written),
            each.files_removed,
            size_text(each.bytes_removed),
            each.snapshots_dropped,
        )
        for each in logs
    ]
    columns = ("log", "how", "rows", "erased", "files written", "bytes", "files removed", "bytes removed", "snapshots dropped")
    print_table(title, columns, rows)


def _print_quarantined(name: str, count: int) -> None:
    console.print(f"{count} malformed records of {name} are kept as they came; --quarantine drops them all", markup=False)
