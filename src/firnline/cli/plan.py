"""``firnline plan``: what would run, what changed in the code, and what that means for what is in the log."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, nothing_due, print_json, print_table

if TYPE_CHECKING:
    from firnline.plan.recomputing import Cost
    from firnline.runtime.code_plan import CodePlan
    from firnline.runtime.status import Step


_COSTS = ("collection", "epochs", "which", "parts", "rows", "seconds")


@app.command()
def plan(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last epoch; by default the last one that is due.")] = None,
    json: Json = False,
) -> None:
    """Compare the code with the log: what would run, what changed, what that costs. Does nothing, needs no JVM."""
    from firnline.runtime.code_plan import code_plan
    from firnline.runtime.project import Project
    from firnline.runtime.status import steps

    project = Project.load()
    documents = []
    for name in [pipeline] if pipeline else project.pipelines():
        graph = project.graph(name)
        upto = graph.schedule.epoch_at(graph.schedule.point(last)) if last is not None else None
        run, compared = steps(project, graph, upto), code_plan(project, graph)
        documents.append({"pipeline": name, "run": [asdict(step) for step in run], **asdict(compared)})
        if not json:
            _show_run(name, run, nothing_due(graph.schedule))
            _show_changes(compared)
            if compared.changes and graph.on_change == "await_approval":
                console.print(f"It waits for approval: firnline approve {name}", markup=False)
    if json:
        print_json(documents)


def _show_run(pipeline: str, run: list[Step], nothing: str) -> None:
    rows = [(step.collection, len(step.epochs), _span(step.epochs), step.code) for step in run]
    print_table(f"{pipeline}: what would run", ("collection", "epochs", "which", "code"), rows)
    if not any(step.epochs for step in run):
        console.print(nothing)


def _show_changes(found: CodePlan) -> None:
    from firnline.runtime.code_plan import sentence

    if not found.changes:
        return
    print_table(
        f"{found.pipeline}: what changed in the code",
        ("collection", "kind", "what", "since epoch"),
        [(each.collection, ", ".join(each.difference.kinds), sentence(each), each.since) for each in found.changes],
    )
    if found.recomputed:
        seconds = sum(each.seconds for each in found.recomputed)
        title = f"computed again: {seconds:.1f} s, as it took before"
        print_table(title, (*_COSTS, "because of"), [(*_cost(each), ", ".join(each.because)) for each in found.recomputed])
        print_table("reused as it is", _COSTS, map(_cost, found.reused))
    console.print("Published epochs keep the code that made them; the next new epoch uses today's and corrects the state.")


def _cost(cost: Cost) -> tuple[object, ...]:
    which = cost.first if cost.first == cost.last else f"{cost.first} ... {cost.last}"
    return cost.collection, cost.epochs, which, cost.parts, cost.rows, f"{cost.seconds:.1f}"


def _span(labels: tuple[str, ...]) -> str:
    if len(labels) <= 3:
        return ", ".join(labels)
    return f"{labels[0]} ... {labels[-1]}"
