"""``firnline show``: the rows of a collection, or what epochs changed in it."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.collection import found
from firnline.cli.output import Json, console, errors, print_json, print_table


@app.command()
def show(
    collection: Annotated[str, typer.Argument(help="PIPELINE.COLLECTION, or COLLECTION where one pipeline has it.")],
    as_of: Annotated[str | None, typer.Option(help="The epoch; the newest complete one by default.")] = None,
    changes: Annotated[bool, typer.Option("--changes", help="Show what epochs inserted (+) and removed (-).")] = False,
    limit: Annotated[int, typer.Option(help="At most this many rows; 0 for all.", min=0)] = 20,
    json: Json = False,
) -> None:
    """Show the rows of a collection after an epoch, whole epochs only. Needs no JVM."""
    from firnline.model.names import QUARANTINE
    from firnline.runtime import show as reading
    from firnline.runtime.gaps import completeness, sentence
    from firnline.runtime.project import Project

    project = Project.load()
    graph, name = found(project, collection)
    read = reading.changes if changes else reading.rows
    columns, rows = read(project, graph, name, as_of, (limit + 1) if limit else None)
    shown = rows[:limit] if limit else rows
    name_of = f"{graph.name}.{name}"
    whole = None if name.endswith(QUARANTINE) else completeness(name_of, as_of=as_of, project=project)
    if whole is not None and not whole.is_whole:
        for each in whole.missing:
            errors.print(f"{name_of} is {whole} complete; missing: {sentence(each)}", style="yellow", markup=False)
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in shown])
        return
    print_table(name_of + (f" as of {as_of}" if as_of else ""), columns, shown)
    if len(shown) < len(rows):
        console.print(f"The first {limit} rows; --limit 0 shows all.")
