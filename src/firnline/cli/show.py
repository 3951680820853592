"""``firnline show``: the rows of a collection, or what epochs changed in it."""

from __future__ import annotations

from typing import Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table
from firnline.errors import FirnlineError


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
    from firnline.runtime.project import Project

    project = Project.load()
    graphs = [project.graph(name) for name in project.pipelines()]
    pipeline, _, name = collection.rpartition(".")
    source = name.removesuffix(QUARANTINE)
    found = [
        graph for graph in graphs if pipeline in ("", graph.name) and any(source == known.name for known in graph.collections)
    ]
    if len(found) != 1:
        what = "several pipelines have" if found else "no pipeline has"
        raise FirnlineError("NO_SUCH_COLLECTION", f"{what} a collection {collection!r}")
    read = reading.changes if changes else reading.rows
    columns, rows = read(project, found[0], name, as_of, (limit + 1) if limit else None)
    shown = rows[:limit] if limit else rows
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in shown])
        return
    print_table(f"{found[0].name}.{name}" + (f" as of {as_of}" if as_of else ""), columns, shown)
    if len(shown) < len(rows):
        console.print(f"The first {limit} rows; --limit 0 shows all.")
