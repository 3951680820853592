"""Bring epochs through Airflow and watch them. Airflow says what ran; the log says what is missing, and that decides."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from firnline.airflow.api import FINISHED, Api, Run, Task
from firnline.airflow.server import Server
from firnline.errors import FirnlineError, code_in
from firnline.model.epoch import Epoch, to_datetime, to_micros
from firnline.model.graph import Graph

_RAISED = ("AirflowFailException: ", "AirflowException: ")


@dataclass(frozen=True, slots=True)
class Step:
    """A task of an epoch, as it is now."""

    epoch: str
    task: str
    state: str
    seconds: float | None
    attempt: int
    outcome: str | None
    """``computed`` or ``kept``, once a collection's task has succeeded."""


class TaskFailedError(FirnlineError):
    """A task failed for good; the message is what its log says."""

    def __init__(self, epoch: str, task: str, log: Sequence[str]) -> None:
        raised = [line.removeprefix(prefix) for line in log for prefix in _RAISED if line.startswith(prefix)]
        text = raised[0] if raised else "\n".join(log[-15:])
        files = [line for line in log if line.endswith(".log")]
        super().__init__(
            code_in(text) or "STAGE_FAILED",
            f"the task {task!r} of {epoch} failed: {text.strip()}",
            todo=f"The task's log: {files[0]}" if files else None,
        )

    def __str__(self) -> str:
        return f"{self.what}\n{self.todo}"


def request(server: Server, graph: Graph, epochs: Sequence[Epoch]) -> None:
    """See to it that every epoch has a run that will do it: one that ended is cleared, one that was deleted is triggered."""
    api, dag = server.api, graph.name
    runs, coming = _by_epoch(api.runs(dag)), api.next_date(dag)
    for epoch in epochs:
        run = runs.get(epoch)
        if run is not None and run.state in FINISHED:
            api.clear(dag, run.id)
        lower, upper = to_datetime(epoch.lower), to_datetime(epoch.upper)
        if run is None and (coming is None or lower < coming):  # the scheduler never goes back
            api.trigger(dag, lower, (lower, upper))
    api.unpause(dag)


def follow(server: Server, graph: Graph, epochs: Sequence[Epoch], pause: float = 1.0) -> Iterator[tuple[Step, ...]]:
    """What all tasks of the epochs do, again and again, until every epoch has a successful run.

    Raises:
        TaskFailedError: A run failed.
    """
    api, dag, label = server.api, graph.name, graph.schedule.label
    known: dict[Step, str | None] = {}  # outcomes, asked for once
    while True:
        server.check()
        runs = {epoch: run for epoch, run in _by_epoch(api.runs(dag)).items() if epoch in epochs}
        steps: list[Step] = []
        for epoch, run in sorted(runs.items()):
            for task in _ordered(graph, api.tasks(dag, run.id)):
                step = Step(label(epoch.lower), task.id, task.state, task.seconds, task.attempt, None)
                if task.state == "success" and step not in known:
                    known[step] = api.returned(dag, run.id, task.id)
                steps.append(replace(step, outcome=known.get(step)))
        yield tuple(steps)
        for epoch, run in sorted(runs.items()):
            if run.state == "failed":
                raise _failure(api, graph, epoch, run)
        if len(runs) == len(epochs) and all(run.state == "success" for run in runs.values()):
            return
        time.sleep(pause)


def _by_epoch(runs: Sequence[Run]) -> dict[Epoch, Run]:
    return {
        Epoch(to_micros(run.lower), to_micros(run.upper)): run
        for run in runs
        if run.lower and run.upper and run.lower < run.upper
    }


def _ordered(graph: Graph, tasks: Sequence[Task]) -> list[Task]:
    order = {collection.name: place for place, collection in enumerate(graph.collections)}
    return sorted(tasks, key=lambda task: order.get(task.id, len(order)))


def _failure(api: Api, graph: Graph, epoch: Epoch, run: Run) -> FirnlineError:
    label = graph.schedule.label(epoch.lower)
    for task in api.tasks(graph.name, run.id):
        if task.state == "failed":
            return TaskFailedError(label, task.id, api.log(graph.name, run.id, task.id, task.attempt))
    return FirnlineError("STAGE_FAILED", f"the run of {label} failed without a failed task")
