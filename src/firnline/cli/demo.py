"""``firnline demo``: a pipeline's epochs through Airflow, from nothing to results, with one command."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Cold, Json, console, print_json, print_table
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.airflow.following import Step
    from firnline.model.epoch import Epoch
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project

_ROWS = 10
_SAID = {"running": "running", "success": "done", "failed": "failed", "up_for_retry": "failed, to be tried again"}


@app.command()
def demo(
    pipeline: Annotated[str | None, typer.Argument(help="The pipeline; by default the project's only or first one.")] = None,
    cold: Cold = False,
    json: Json = False,
) -> None:
    """Run a pipeline's epochs through Airflow, show what they made, and leave no process behind.

    Starts an Airflow of the project's own, lets it run every epoch that is due, one DAG run per epoch, and stops it. What the log
    already holds is not computed again; when it holds everything, Airflow is not started at all.
    """
    from firnline.runtime.advance import complete
    from firnline.runtime.project import Project

    began = time.monotonic()
    project = Project.load()
    graph = project.graph(pipeline or _first(project))
    epochs = _due(project, graph)
    missing = [epoch for epoch in epochs if not _is_held(project, graph, epoch)]
    steps: tuple[Step, ...] = ()
    if missing:
        steps = _run(project, graph, epochs, missing, cold=cold, json=json)
    else:
        complete(project, graph, epochs[-1])
        _say(
            json, f"The log already holds {_count(epochs, 'epoch')} of {graph.name}: nothing to recompute, so Airflow stays off."
        )
    _report(project, graph, steps, len(epochs) - len(missing), time.monotonic() - began, json)


def _first(project: Project) -> str:
    names = project.pipelines()
    if not names:
        raise FirnlineError("NO_SUCH_PIPELINE", "this project has no pipelines")
    return names[0]


def _due(project: Project, graph: Graph) -> list[Epoch]:
    from firnline.runtime.status import due

    schedule = graph.schedule
    epochs = list(schedule.epochs(schedule.start, due(project, graph))) if schedule.timed else []
    if not epochs:
        why = "has integer epochs, which Airflow cannot schedule" if not schedule.timed else "has no epoch that is due"
        raise FirnlineError("BAD_SCHEDULE", f"the pipeline {graph.name!r} {why}", todo="Try 'firnline run' instead.")
    return epochs


def _is_held(project: Project, graph: Graph, epoch: Epoch) -> bool:
    from firnline.runtime.advance import is_kept

    return all(is_kept(project, graph, collection.name, epoch) for collection in graph.collections)


def _run(
    project: Project, graph: Graph, epochs: Sequence[Epoch], missing: Sequence[Epoch], *, cold: bool, json: bool
) -> tuple[Step, ...]:
    from firnline.airflow.following import follow, request
    from firnline.airflow.server import Server

    if len(missing) < len(epochs):
        _say(json, f"The log already holds {_count(epochs[: len(epochs) - len(missing)], 'epoch')} of {graph.name}.")
    steps: tuple[Step, ...] = ()
    with _progress(json) as tell, Server(project.settings, engine=not cold, tell=tell) as server:
        tell(f"Airflow runs at {server.url}, waiting for the DAG {graph.name!r}")
        server.wait_until_parsed(graph.name)
        request(server, graph, missing)
        for steps in follow(server, graph, missing):
            tell("", steps)
    return steps


@contextmanager
def _progress(json: bool) -> Iterator[Any]:
    """A function that tells how far things are: a line for every change, and on a terminal a last line that moves."""
    if json:
        yield lambda *_: None
        return
    told: dict[tuple[str, str], str] = {}

    def tell(sentence: str, steps: Sequence[Step] = ()) -> None:
        for step in steps:
            key, line = (step.epoch, step.task), _line(step)
            if line and told.get(key) != line and (step.state != "running" or not console.is_terminal):
                console.print(line, markup=False)
            told[key] = line
        running = [f"{step.epoch} {step.task}" for step in steps if step.state == "running"]
        if console.is_terminal:
            status.update(sentence or ", ".join(running) or "waiting for the scheduler")
        elif sentence:
            console.print(sentence, markup=False)

    with console.status("") as status:
        yield tell


def _line(step: Step) -> str:
    state = step.outcome or _SAID.get(step.state, "")
    if not state:
        return ""
    taken = f" in {step.seconds:5.1f} s" if step.state == "success" and step.seconds is not None else ""
    return f"{step.epoch}  {step.task:<24} {state}{taken}"


def _report(project: Project, graph: Graph, steps: Sequence[Step], held: int, seconds: float, json: bool) -> None:
    from firnline.runtime import show
    from firnline.runtime.status import status

    last = graph.collections[-1].name
    columns, rows = show.rows(project, graph, last, limit=_ROWS)
    changes = [asdict(change) for change in show.summary(project, graph)]
    malformed = {line.collection: line.malformed for line in status(project, graph).collections if line.malformed}
    if json:
        document = {
            "pipeline": graph.name,
            "seconds": round(seconds, 1),
            "epochs_held_before": held,
            "tasks": [asdict(step) for step in steps],
            "changes": changes,
            "malformed": malformed,
            "collection": last,
            "rows": [dict(zip(columns, row, strict=True)) for row in rows],
        }
        print_json(document)
        return
    print_table(f"{graph.name}.{last}", columns, rows)
    names = ("epoch", "collection", "inserted", "removed")
    print_table("What each epoch changed", names, [[change[name] for name in names] for change in changes])
    for collection, count in malformed.items():
        console.print(
            f"{count} malformed records of {collection} are set aside: firnline show {graph.name}.{collection}__quarantine"
        )
    console.print(f"Done in {seconds:.0f} s; every process that was started has ended. Where to look next:")
    console.print(f"  firnline status {graph.name}                       where each collection stands")
    console.print(f"  firnline show {graph.name}.{last} --changes    what epochs inserted and removed")
    console.print("  make up                                     the same in Airflow's web page")
    console.print("  docs/tutorial.md                            a pipeline of your own")


def _say(json: bool, sentence: str) -> None:
    if not json:
        console.print(sentence)


def _count(things: Sequence[Any], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
