"""``firnline ledger``: the index of the logs."""

from __future__ import annotations

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json
from firnline.cli.pipelines import asked

ledger = typer.Typer(help="The ledger: an index of the logs, which can always be made anew.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")


@ledger.callback()
def _group() -> None:
    """Make ``ledger`` a group, however many commands it has."""


@ledger.command()
def rebuild(json: Json = False) -> None:
    """Make the ledger anew from the logs alone."""
    from firnline.runtime.index import rebuild as make_anew
    from firnline.runtime.project import Project

    project = Project.load()
    with asked(project, None) as graphs:
        for graph in graphs:
            make_anew(project, graph)
        names = [graph.name for graph in graphs]
        if json:
            print_json({"rebuilt": names})
        else:
            console.print(f"rebuilt from the logs: {', '.join(names) or 'no pipelines'}", soft_wrap=True)
