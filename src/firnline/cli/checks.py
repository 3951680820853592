"""``firnline checks``: what the checks of pipelines said last."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, print_json, print_table

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
    graphs = [project.graph(name) for name in ([pipeline] if pipeline else project.pipelines())]
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
    """A line for each check and what it is asked of, with its last result if it has one."""
    last = {(each.collection, each.suite, each.on): each for each in project.check_results(graph.name).last()}
    lines = []
    for collection in graph.collections:
        for check in collection.checks:
            for on in check.subjects:
                result = last.get((collection.name, check.suite, on))
                known = None if result is None else {**asdict(result), "epoch": graph.schedule.label(result.lower)}
                named = {"collection": collection.name, "suite": check.suite, "on": on, "blocking": check.blocking}
                lines.append({**named, "last": known})
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

    documents = []
    for graph in graphs:
        results = project.check_results(graph.name)
        wanted = {(each.collection, each.suite, each.on, each.lower): each for each in (*results.last(), *results.failed())}
        documents += results.documents(wanted.values())
    return str(gx.render(documents, project.settings.work / "data_docs"))
