"""``firnline explain``: how a stage's change is computed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.tree import Tree

from firnline.cli.app import app
from firnline.cli.collection import found
from firnline.cli.cost import print_cost
from firnline.cli.output import Json, console, print_json, quiet, size_text

if TYPE_CHECKING:
    from firnline.incremental.explaining import Told
    from firnline.runtime.explain import Explanation, Step

_SUBJECTS = {"delta": "delta", "state": "state", "both": "delta and the state"}


@app.command()
def explain(
    stage: Annotated[str, typer.Argument(help="PIPELINE.STAGE, or STAGE where one pipeline has it.")],
    cost: Annotated[bool, typer.Option("--cost", help="What an epoch costs, and how that grows, instead of the plan.")] = False,
    json: Json = False,
) -> None:
    """Explain a stage's plan: how the change of every operator is computed, what it reads, and where columns come from."""
    from firnline.engine.session import opened
    from firnline.runtime.cost import cost as costed
    from firnline.runtime.explain import explain as explained
    from firnline.runtime.project import Project

    project = Project.load()
    graph, name = found(project, stage)
    declared = project.declared(graph.name)
    with quiet(), opened(project.settings, f"explain {stage}") as session:
        explanation = explained(project, declared, session, name)
    if cost:
        found_cost = costed(project, graph, explanation)
        print_json(asdict(found_cost)) if json else print_cost(found_cost)
    elif json:
        print_json(asdict(explanation))
    else:
        _print(explanation)


def _print(explanation: Explanation) -> None:
    how = "from what changed" if explanation.steps else "in full, as the difference to the log"
    console.print(f"[bold]{explanation.stage}[/bold] is computed {how} (refresh={explanation.refresh!r}).")
    console.print(f"It is [bold]{explanation.kind}[/bold]: {explanation.why}.")
    if explanation.refusal:
        where = f" ({explanation.refusal['where']})" if explanation.refusal["where"] else ""
        console.print(f"No rule: {explanation.refusal['code']}: {escape(str(explanation.refusal['what']))}{where}.")
    together = "where they change few rows" if explanation.apart is None else f"never: {explanation.apart}"
    console.print(f"Neighbouring epochs are computed at once {escape(together)}.")
    for note in explanation.notes:
        console.print(f"Note: {escape(note)}")
    for check in explanation.checks:
        then = "blocks the epoch" if check.blocking else "warns"
        console.print(
            f"The check [bold]{escape(check.suite)}[/bold] is asked of the {_SUBJECTS[check.on]}, and {then} if not met."
        )
    for step in explanation.steps:
        console.print(_tree(step, is_last=step is explanation.steps[-1]))
    if explanation.lineage:
        columns = Tree("columns come from")
        for name, origins in explanation.lineage.items():
            columns.add(f"[bold]{escape(name)}[/bold]  {escape(', '.join(origins) or 'constants')}")
        console.print(columns)


def _tree(step: Step, *, is_last: bool) -> Tree:
    what = "the stage" if is_last else "an arrangement, kept from epoch to epoch"
    size = (
        ""
        if is_last or step.stored_bytes is None
        else f", {size_text(step.stored_bytes)} beside {size_text(step.input_bytes)} of input"
    )
    root = Tree(f"[bold]{step.name}[/bold]  {what}{size}")
    _grow(root, step.plan)
    return root


def _grow(tree: Tree, told: Told) -> None:
    lines = [f"[bold]{escape(told.operator)}[/bold]", f"[dim]change:[/dim] {escape(told.change)}"]
    if told.reads:
        lines.append(f"[dim]reads:[/dim]  {escape('; '.join(told.reads))}")
    lines.append(f"[dim]costs:[/dim]  {escape(told.cost)}")
    branch = tree.add("\n".join(lines))
    for each in told.inputs:
        _grow(branch, each)
