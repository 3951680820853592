"""``firnline lineage``: what an epoch of a collection came from, or what came of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from firnline.cli.app import app
from firnline.cli.collection import found
from firnline.cli.output import Json, console, print_json, writing

if TYPE_CHECKING:
    from firnline.runtime.lineage import Edge, Lineage, Node

_MOST_PARTS = 8


@app.command()
def lineage(
    collection: Annotated[str, typer.Argument(help="PIPELINE.COLLECTION, or COLLECTION where one pipeline has it.")],
    epoch: Annotated[str, typer.Option(help="The epoch.")],
    part: Annotated[int | None, typer.Option(help="One part of the collection; all by default.")] = None,
    is_downstream: Annotated[
        bool, typer.Option("--downstream/--upstream", help="What was computed from it, or what it was computed from.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="An SVG file to draw it into.")] = None,
    json: Json = False,
) -> None:
    """Show which publications an epoch of a collection was computed from, or which were computed from it. Needs no JVM."""
    from firnline.runtime.lineage import lineage as lineage_of
    from firnline.runtime.project import Project

    project = Project.load()
    graph, name = found(project, collection)
    told = lineage_of(project, graph, name, epoch, part, "downstream" if is_downstream else "upstream")
    if picture is not None:
        _draw(told, picture)
    if json:
        print_json(asdict(told))
    else:
        console.print(_tree(told))


def summary(node: Node) -> str:
    """A publication's changes in a few words."""
    parts = "" if node.of_parts is None else f" in part {', '.join(map(str, node.of_parts))}"
    return f"{node.rows} changed rows{parts}, weight {node.weight:+d}"


def origin(node: Node) -> str:
    """Who made a publication, and how long it took."""
    return f"attempt {node.attempt[:8]}, code {node.fingerprint[:8]}, {node.seconds:.1f} s"


def reading(edge: Edge) -> str:
    """How a publication read another."""
    return f"{edge.rows} rows, {'part by part' if edge.parts == 'same' else 'all parts'}"


def span(node: Node) -> str:
    """The epochs of a publication."""
    return node.epochs[0] if len(node.epochs) == 1 else f"{node.epochs[0]} ... {node.epochs[-1]}"


def _draw(told: Lineage, file: Path) -> None:
    from firnline.cli.picture import drawn

    with writing(file):
        file.write_text(drawn(told), encoding="utf-8")


def _tree(told: Lineage) -> Tree:
    root = told.nodes[0]
    tree = Tree(_lines(told, root, None))
    _grow(tree, told, root, {root.id})
    return tree


def _grow(tree: Tree, told: Lineage, node: Node, seen: set[str]) -> None:
    for edge, other in told.next_to(node):
        if other.id in seen:
            tree.add(f"[bold]{escape(other.collection)}[/bold] {escape(span(other))}  as above")
            continue
        seen.add(other.id)
        _grow(tree.add(_lines(told, other, edge)), told, other, seen)


def _lines(told: Lineage, node: Node, edge: Edge | None) -> str:
    parts = [f"{each.part}: {each.rows} rows, {each.weight:+d}" for each in node.parts[:_MOST_PARTS]]
    more = [f"{len(node.parts) - _MOST_PARTS} more"] if len(node.parts) > _MOST_PARTS else []
    lines = [
        f"[bold]{escape(node.collection)}[/bold] {escape(span(node))}  {node.kind}, {summary(node)}",
        f"[dim]snapshot {node.snapshot}, generation {node.generation}, {origin(node)}[/dim]",
        f"[dim]digest {node.digest}{'; by part ' if parts else ''}{'; '.join([*parts, *more])}[/dim]",
    ]
    if node.determinants:
        lines.append(f"[dim]determinants {escape(', '.join(node.determinants))}[/dim]")
    if edge is not None:
        read = f"read up to {edge.upper} through snapshot {edge.snapshot}: {reading(edge)}"
        lines.append(
            escape(read if told.direction == "upstream" else f"{read}; later publications that build on it: {node.later}")
        )
    return "\n".join(lines)
