"""``firnline rescale``: another number of parts for a collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.collection import found_in_main
from firnline.cli.engine import engine
from firnline.cli.output import Json, console, print_json, print_table

if TYPE_CHECKING:
    from firnline.runtime.rescale import Rescale, Rescaled


@app.command()
def rescale(
    collection: Annotated[str, typer.Argument(help="PIPELINE.COLLECTION.")],
    parts: Annotated[
        int | None, typer.Option("--parts", help="How many, a power of two; by default what the code says.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    json: Json = False,
) -> None:
    """Cut a collection's log into another number of parts. It can be read throughout, and no row, epoch or lineage changes."""
    from firnline.runtime.project import Project
    from firnline.runtime.rescale import rescale as rescaled
    from firnline.runtime.rescale import rescales

    project = Project.load()
    graph, name = found_in_main(project, collection)
    planned = rescales(project, graph, name, parts)
    declared = graph.collection(name).parts
    wanted = declared if parts is None else parts
    done: list[Rescaled] = []
    with engine(project, "rescale", json=json) as session:
        for each in () if dry_run else planned:

            def cutting(layers: int, of: int, each: Rescale = each) -> None:
                if not json:
                    console.print(f"{each.pipeline}.{each.collection}: {layers} of {of} layers are cut", markup=False)

            made = rescaled(project, session, each, cutting)
            done += [] if made is None else [made]
    if json:
        print_json(
            {
                "collection": f"{graph.name}.{name}",
                "parts": wanted,
                "declared": declared,
                "planned": [asdict(each) for each in planned],
                "done": [_document(each) for each in done],
            }
        )
        return
    _show(planned, done, is_dry=dry_run)
    if wanted != declared:
        console.print(f"The code says parts={declared}. Set parts={wanted} there: until then its runs are refused.")


def _document(done: Rescaled) -> dict[str, Any]:
    return {**asdict(done.rescale), "files": done.files, "bytes": done.bytes, "kept": done.kept, "seconds": done.seconds}


def _show(planned: list[Rescale], done: list[Rescaled], *, is_dry: bool) -> None:
    if not planned:
        console.print("Nothing to do: it has so many parts already.")
    elif is_dry:
        rows = [_row(each) for each in planned]
        print_table("would be cut anew", ("collection", "parts", "layers", "rows", "bytes"), rows)
    else:
        made = [(*_row(each.rescale)[:4], each.bytes, each.files, f"{each.seconds:.1f}") for each in done]
        print_table("cut anew", ("collection", "parts", "layers", "rows", "bytes", "files", "seconds"), made)


def _row(each: Rescale) -> tuple[str, str, int, int, int]:
    return f"{each.pipeline}.{each.collection}", f"{each.before} to {each.parts}", each.layers, each.rows, each.bytes
