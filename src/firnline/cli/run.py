"""``firnline run``: the work of the DAG without Airflow, in one Spark session; a sink that fails is told at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from firnline.cli.app import app
from firnline.cli.output import Json, console, errors, nothing_due, print_json, quiet
from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from firnline.model.epoch import Epoch
    from firnline.runtime.advance import Outcome
    from firnline.runtime.project import Declared, Project

_PATIENCE = 0.2
"""Seconds at the end for what is still on its way to the ledger; the next process on the machine carries the rest."""


@app.command()
def run(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    first: Annotated[
        str | None, typer.Option("--from", help="The first epoch to report; missing ones before it are computed too.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="The last epoch; by default the last one that is due.")] = None,
    json: Json = False,
) -> None:
    """Compute epochs on one Spark: what the logs already hold is skipped; of the rest, small epochs are computed at once."""
    from firnline.model.names import parted
    from firnline.runtime.project import Project

    project = Project.load()
    if parted(pipeline)[1] is not None:
        raise FirnlineError("BAD_OPTION", f"{pipeline!r} is a branch", todo="Run it with 'firnline branch run'.")
    declared = project.declared(pipeline)
    epochs = _epochs(project, declared, first, last)
    failed: dict[str, FirnlineError] = {}
    outcomes = run_epochs(project, declared, epochs, json, failed)
    project.flusher.drain(_PATIENCE)
    for error in list(failed.values())[1:]:
        errors.print(str(error), style="red", markup=False)
    if failed:
        raise next(iter(failed.values()))
    schedule = declared.graph.schedule
    document = [{**asdict(outcome), "epoch": schedule.label(outcome.epoch.lower)} for outcome in outcomes]
    if json:
        print_json(document)
        return
    if not epochs:
        console.print(nothing_due(schedule))
        return
    console.print(f"{counts(outcomes)}. See what changed: firnline show {pipeline}.COLLECTION --changes")


def counts(outcomes: list[Outcome]) -> str:
    """How many epochs became what."""
    counted = Counter(outcome.how for outcome in outcomes)
    reused = f"{counted['reused']} reused, " if counted["reused"] else ""
    return f"{counted['computed']} computed, {reused}{counted['kept']} kept"


def _epochs(project: Project, declared: Declared, first: str | None, last: str | None) -> list[Epoch]:
    from firnline.model.epoch import to_micros
    from firnline.plan.advance import check_over
    from firnline.runtime.status import due
    from firnline.world import world

    schedule = declared.graph.schedule
    if last is not None:
        check_over(schedule, schedule.epoch_at(schedule.point(last)), to_micros(world().now()))
    upto = schedule.epoch_at(schedule.point(last)).upper if last is not None else due(project, declared.graph)
    since = schedule.epoch_at(schedule.point(first)).lower if first is not None else schedule.start
    if upto <= since and (first is not None or last is not None):
        span = f"from {first or schedule.label(since)} to {last or schedule.label(upto)}"
        raise FirnlineError("BAD_EPOCH", f"there is no epoch {span}", todo="Let --to name an epoch at or after --from.")
    return list(schedule.epochs(since, upto))


def run_epochs(
    project: Project, declared: Declared, epochs: list[Epoch], json: bool, failed: dict[str, FirnlineError]
) -> list[Outcome]:
    """Compute what is missing of epochs, and complete them, told as it goes on; ``failed`` is given the sinks that did."""
    from firnline.runtime.advance import Outcome, complete, is_kept
    from firnline.runtime.sink import deliver_all

    graph = declared.graph
    outcomes: list[Outcome] = []
    late = 0
    for collection in graph.collections:
        is_whole = all(is_kept(project, graph, collection.name, epoch) for epoch in epochs[-1:])
        head = project.log(graph.name, collection.name).head()
        upper = graph.schedule.start if head is None else head.description.upper
        kept = [epoch for epoch in epochs if is_whole or epoch.upper <= upper]
        outcomes += [Outcome(collection.name, epoch, "kept") for epoch in kept]
        late += len(epochs) - len(kept)

    def deliver() -> None:
        failed.clear()
        failed.update(deliver_all(project, declared))

    if epochs and not late:
        complete(project, graph, epochs[-1])
        deliver()
    if late:
        outcomes += _computed(project, declared, epochs[-1], late, json, deliver)
    order = {collection.name: number for number, collection in enumerate(graph.collections)}
    return sorted(outcomes, key=lambda each: (each.epoch.lower, order[each.collection]))


def _computed(
    project: Project, declared: Declared, last: Epoch, late: int, json: bool, deliver: Callable[[], None]
) -> list[Outcome]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from firnline.engine.warm import at_hand
    from firnline.runtime.overlap import overlapped

    graph = declared.graph
    outcomes: list[Outcome] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with quiet(), Progress(*columns, console=console, disable=json, transient=True) as progress:
        bar = progress.add_task("starting Spark", total=late)
        with at_hand(project.settings, f"firnline run {graph.name}") as (session, place):
            if not json:
                progress.console.print(f"Spark runs on {place}", markup=False)
            for outcome in overlapped(project, declared, session, last, deliver):
                outcomes.append(outcome)
                label = graph.schedule.label(outcome.epoch.lower)
                progress.update(bar, description=f"{label} {outcome.collection}", advance=1)
                if not json:
                    progress.console.print(_line(outcome, label))
    return outcomes


def _line(outcome: Any, label: str) -> str:
    if outcome.how == "kept":
        return f"{label}  {outcome.collection:<24} kept"
    if outcome.how == "reused":
        return f"{label}  {outcome.collection:<24} {outcome.rows:>8} rows as before the rewind"
    aside = f", {outcome.malformed} malformed set aside" if outcome.malformed else ""
    among = f", {outcome.at_once} epochs at once" if outcome.at_once > 1 else ""
    return f"{label}  {outcome.collection:<24} {outcome.rows:>8} rows changed in {outcome.seconds:5.1f} s{among}{aside}"
