"""``firnline checks``: what the checks of pipelines said last."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table
from firnline.cli.pipelines import asked

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project


@app.command()
def checks(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    docs: Annotated[
        bool, typer.Option("--docs", help="Render the last result of each check, and all that failed, as GX data docs.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the checks of every collection and what they said last. Needs no JVM."""
    from firnline.runtime.project import Project

    project = Project.load()
    with asked(project, pipeline) as graphs:
        _tell(project, graphs, docs, json)


def _tell(project: Project, graphs: list[Graph], docs: bool, json: bool) -> None:
    found = {graph.name: _lines(project, graph) for graph in graphs}
    page = _rendered(project, graphs) if docs else None
    if json:
        print_json({"pipelines": found, "docs": page})
        return
    for name, lines in found.items():
        if lines:
            columns = ("collection", "check", "on", "blocking", "last asked", "rows", "said")
            print_table(name, columns, [_row(line) for line in lines])
    if not any(found.values()):
        console.print("No collection has checks: name suites of include/expectations in checks=[...].", markup=False)
    if page:
        console.print(f"Rendered: {page}", markup=False)


def _lines(project: Project, graph: Graph) -> list[dict[str, Any]]:
    from firnline.runtime.overview import check_lines

    lines = []
    for line in check_lines(project, graph):
        last = None if line.last is None else {**asdict(line.last), "epoch": line.epoch}
        named = {"collection": line.collection, "suite": line.suite, "on": line.on, "blocking": line.blocking}
        lines.append({**named, "last": last})
    return lines


def _row(line: dict[str, Any]) -> tuple[Any, ...]:
    last = line["last"]
    asked = (line["collection"], line["suite"], line["on"], "yes" if line["blocking"] else "no")
    if last is None:
        return (*asked, None, None, "not asked yet")
    said = f"{last['expectations']} expectations met" if last["success"] else "; ".join(last["failed"])
    return (*asked, last["epoch"], last["rows"], said)


def _rendered(project: Project, graphs: list[Graph]) -> str:
    from firnline.quality import gx
    from firnline.runtime.forgetting import PAGES

    documents = []
    for graph in graphs:
        results = project.check_results(graph.name)
        wanted = {(each.collection, each.suite, each.on, each.lower): each for each in (*results.last(), *results.failed())}
        documents += results.documents(wanted.values())
    return str(gx.render(documents, project.settings.work / PAGES))
