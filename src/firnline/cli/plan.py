"""``firnline plan``: what would run, what changed in the code, and what that means for what is in the log."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, errors, nothing_due, print_json, print_table
from firnline.cli.run import counts, run_epochs
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.plan.recomputing import Cost
    from firnline.runtime.advance import Outcome
    from firnline.runtime.code_plan import CodePlan
    from firnline.runtime.project import Project
    from firnline.runtime.retiring import Retired
    from firnline.runtime.status import Step


_COSTS = ("collection", "epochs", "which", "parts", "rows", "seconds")


@app.command()
def plan(
    pipeline: Annotated[str | None, typer.Argument(help="A pipeline; all of the project's by default.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last epoch; by default the last one that is due.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Approve what changed, rewind what it makes stale, and replay that. Needs Spark.")
    ] = False,
    first: Annotated[
        str | None, typer.Option("--from", metavar="EPOCH", help="With --apply: only from this epoch on; earlier ones stay.")
    ] = None,
    retire: Annotated[
        str | None, typer.Option("--retire", metavar="NAME", help="Let go of the log of a collection that the code has not.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare the code with the log: what would run, what changed, what that costs. Does nothing by itself, needs no JVM."""
    from firnline.runtime.code_plan import code_plan
    from firnline.runtime.project import Project
    from firnline.runtime.status import steps

    if (apply or retire) and pipeline is None:
        raise typer.BadParameter("--apply and --retire need one", param_hint="PIPELINE")
    if first is not None and not apply:
        raise typer.BadParameter("goes with --apply", param_hint="--from")
    project = Project.load()
    if retire is not None and pipeline is not None:
        _retire(project, pipeline, retire, json)
        return
    documents: list[dict[str, Any]] = []
    for name in [pipeline] if pipeline else project.pipelines():
        try:
            graph = project.graph(name)
        except FirnlineError as error:
            if pipeline:
                raise
            documents.append({"pipeline": name, "error": error.as_json()})  # it must not hide the others
            errors.print(f"{name}: {error}", style="red", markup=False, soft_wrap=True)
            continue
        upto = graph.schedule.epoch_at(graph.schedule.point(last)) if last is not None else None
        run, compared = steps(project, graph, upto), code_plan(project, graph)
        documents.append({"pipeline": name, "run": [asdict(step) for step in run], **asdict(compared)})
        if not json:
            _show_run(name, run, nothing_due(graph.schedule))
            _show_changes(compared)
            if not apply:
                _show_approval(graph, compared)
        if apply:
            outcomes = _apply(project, graph, compared, first, json)
            documents[-1]["applied"] = [{**asdict(each), "epoch": graph.schedule.label(each.epoch.lower)} for each in outcomes]
            if not json:
                console.print(f"Replayed: {counts(outcomes)}." if outcomes else "There is nothing to compute again.")
    if json:
        print_json(documents)
    if any("error" in each for each in documents):
        raise typer.Exit(1)


def _apply(project: Project, graph: Graph, found: CodePlan, first: str | None, json: bool) -> list[Outcome]:
    """Let what is stale be computed again, by today's code."""
    from firnline.runtime.code_plan import apply
    from firnline.runtime.reader import user

    failed: dict[str, FirnlineError] = {}
    outcomes = run_epochs(project, project.declared(graph.name), apply(project, graph, found, user(), first), json, failed)
    for error in failed.values():
        raise error
    return outcomes


def _retire(project: Project, pipeline: str, collection: str, json: bool) -> None:
    from firnline.runtime.retiring import retire

    gone = retire(project, project.graph(pipeline), collection)
    if json:
        print_json({"pipeline": pipeline, "retired": gone})
    else:
        console.print(f"Retired: {', '.join(gone)}. Maintenance removes the files after the grace time.", markup=False)


def _show_run(pipeline: str, run: list[Step], nothing: str) -> None:
    rows = [(step.collection, len(step.epochs), _span(step.epochs), step.code) for step in run]
    print_table(f"{pipeline}: what would run", ("collection", "epochs", "which", "code"), rows)
    if not any(step.epochs for step in run):
        console.print(nothing)


def _show_changes(found: CodePlan) -> None:
    from firnline.runtime.code_plan import sentence

    for gone in found.retired:
        console.print(_farewell(gone), markup=False)
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


def _show_approval(graph: Graph, found: CodePlan) -> None:
    """Whether what changed may make the next epoch."""
    waiting = [each.collection for each in found.changes if each.is_waiting]
    if waiting and graph.on_change == "reject":
        console.print(f"The next epoch of {', '.join(waiting)} is refused: on_change='reject'.", markup=False)
    elif waiting:
        console.print(f"{', '.join(waiting)} waits for approval: firnline approve {graph.name}", markup=False)
    elif found.changes and graph.on_change == "await_approval":
        console.print("What changed may make the next epochs.")


def _farewell(gone: Retired) -> str:
    if gone.renamed is not None:
        said = [f"{gone.collection} is called {gone.renamed} now: its log goes on under that name with the next run, or --apply."]
        said.append("Its view goes and comes under the new name; sinks, plain table, holds and approvals go on.")
    else:
        said = [f"{gone.collection} is not in the code any more; its log stays, with {gone.rows} rows up to {gone.upper}."]
    said += [f"{name} reads it, and does not load until it reads another." for name in gone.readers]
    said += [f"The branch {name} has it, and keeps it." for name in gone.branches]
    return " ".join(said)


def _cost(cost: Cost) -> tuple[object, ...]:
    which = cost.first if cost.first == cost.last else f"{cost.first} ... {cost.last}"
    return cost.collection, cost.epochs, which, cost.parts, cost.rows, f"{cost.seconds:.1f}"


def _span(labels: tuple[str, ...]) -> str:
    if len(labels) <= 3:
        return ", ".join(labels)
    return f"{labels[0]} ... {labels[-1]}"
