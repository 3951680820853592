"""``firnline branch``: what a pipeline would say if its code were another, beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from firnline.cli.app import app
from firnline.cli.engine import engine
from firnline.cli.output import Json, console, print_json, print_table
from firnline.cli.pipelines import asked
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.advance import Outcome
    from firnline.runtime.project import Project

branch = typer.Typer(help="Branches: what a pipeline would say if its code were another, beside it.", no_args_is_help=True)
app.add_typer(branch, name="branch")

Name = Annotated[str, typer.Argument(help="The branch's name.")]
Of = Annotated[str | None, typer.Option("--pipeline", help="The pipeline; the project's only one by default.")]


@branch.command()
def create(
    name: Name,
    start: Annotated[str, typer.Option("--from", metavar="EPOCH", help="The first epoch that is the branch's own.")],
    code: Annotated[
        str | None, typer.Option(metavar="PATH|GIT-REF", help="Where its code is; the project's own code by default.")
    ] = None,
    pipeline: Of = None,
    json: Json = False,
) -> None:
    """Let a branch begin: it shares all files of epochs before --from, and holds the safe point there. Writes no row."""
    from firnline.runtime import branch as branches
    from firnline.runtime.project import Project

    project = Project.load()
    graph = only(project, pipeline)
    note = branches.create(project, graph, name, graph.schedule.point(start), code)
    if json:
        print_json({**asdict(note), "at": graph.schedule.label(note.at)})
        return
    begins = f"{graph.name}: the branch {name!r} begins at {graph.schedule.label(note.at)}"
    console.print(f"{begins}. Run it: firnline branch run {name}")


@branch.command(name="list")
def list_branches(pipeline: Of = None, json: Json = False) -> None:
    """Show the branches, where they begin and how far they were run. Needs no JVM."""
    from firnline.runtime.branch import branches
    from firnline.runtime.project import Project

    project = Project.load()
    with asked(project, pipeline) as graphs:
        found = [line for graph in graphs for line in branches(project, graph)]
        if json:
            print_json([asdict(line) for line in found])
            return
        rows = [(each.pipeline, each.branch, each.at, each.frontier, each.behind, each.code, each.owner) for each in found]
        print_table("branches", ("pipeline", "branch", "begins at", "complete up to", "epochs behind", "code", "owner"), rows)


@branch.command()
def run(
    name: Name,
    last: Annotated[str | None, typer.Option("--to", help="The last epoch; by default the pipeline's last complete one.")] = None,
    pipeline: Of = None,
    json: Json = False,
) -> None:
    """Run the epochs that a branch lacks, with its code. What its code did not change is taken from the pipeline's log."""
    from firnline.model.names import branch_space
    from firnline.runtime import branch_run
    from firnline.runtime.project import Project

    project = Project.load()
    graph = only(project, pipeline)
    space, schedule = branch_space(graph.name, name), graph.schedule
    upto = None if last is None else schedule.epoch_at(schedule.point(last)).upper
    epochs = branch_run.missing(project, space, upto)
    outcomes: list[Outcome] = []
    with engine(project, f"branch run {name}", json=json) as session:
        for outcome in branch_run.run(project, space, epochs, session):
            outcomes.append(outcome)
            if not json:
                words = "" if outcome.how == "kept" else f"{outcome.rows:>8} rows changed"
                console.print(f"{schedule.label(outcome.epoch.lower)}  {outcome.collection:<24} {outcome.how:<8} {words}")
    if json:
        print_json([{**asdict(each), "epoch": schedule.label(each.epoch.lower)} for each in outcomes])
        return
    counts = {how: sum(each.how == how for each in outcomes) for how in ("computed", "taken")}
    if not epochs:
        console.print("Nothing: the branch has every epoch that the pipeline has.")
    else:
        told = f"{counts['computed']} computed, {counts['taken']} taken from {graph.name!r}"
        console.print(f"{told}. See what differs: firnline diff main {name}")


@branch.command()
def drop(name: Name, pipeline: Of = None, json: Json = False) -> None:
    """Forget a branch. Its files are in the trash, but for those that the pipeline or another branch names."""
    from firnline.runtime import branch as branches
    from firnline.runtime.project import Project

    project = Project.load()
    graph = only(project, pipeline)
    branches.drop(project, graph.name, name)
    if json:
        print_json({"dropped": name, "pipeline": graph.name})
    else:
        console.print(f"{graph.name}: the branch {name!r} is dropped; 'firnline maintain' removes its files.")


def only(project: Project, asked: str | None) -> Graph:
    """The pipeline that was asked for, or the only one there is."""
    names = project.pipelines()
    if asked is None and len(names) != 1:
        raise FirnlineError("NO_SUCH_PIPELINE", f"say which pipeline, with --pipeline: {', '.join(names) or 'there is none'}")
    return project.graph(asked or names[0])
