"""What an epoch costs before its first row: six stages over nothing new, through Airflow, in four ways, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.epoch.project import made
from firnline.airflow.api import Api
from firnline.airflow.server import Server
from firnline.engine.session import opened
from firnline.errors import FirnlineError
from firnline.runtime.advance import complete
from firnline.runtime.job import advanced
from firnline.runtime.project import Project

WARM_RUNS, COLD_RUNS = 4, 1
"""Empty epochs of each; of those that are warm, the first one warms up and is not counted."""
OURS = ("warm", "whole", "cold")
KINDS = {
    "kept": "warm, all of it kept: Airflow alone",
    "warm": "warm, a task per collection",
    "whole": "warm, tasks='per-epoch'",
    "cold": "cold, a task per collection",
    "plain": "plain spark-submit per task",
}
_PATIENCE = 900.0


@dataclass(frozen=True, slots=True)
class Run:
    """A DAG run: how long it took, and how much of that was inside of tasks."""

    seconds: float
    in_tasks: float
    tasks: int


@dataclass(frozen=True, slots=True)
class Cell:
    """All counted runs of one way."""

    kind: str
    runs: tuple[Run, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return median(run.seconds for run in self.runs)


def measured(root: Path, checkout: Path, say: Callable[[str], None]) -> list[Cell]:
    """Run all four, each in turn, on one Airflow."""
    project = made(root, checkout, WARM_RUNS, COLD_RUNS)
    say("the first epoch, with rows, outside of Airflow")
    _prepare(project)
    cells = []
    with Server(project.settings, engine=True, tell=say) as server:
        for name in (*OURS, "plain"):
            server.wait_until_parsed(name)
        for name in (*OURS, "plain"):
            empty = WARM_RUNS if name in ("warm", "whole") else COLD_RUNS
            runs = _ran(server, name, empty + (name in OURS), say)
            if name == "warm":
                cells.append(Cell("kept", tuple(runs[:1])))
            cells.append(Cell(name, tuple(runs[-(empty - 1 or 1) :])))
    return cells


def _prepare(project: Project) -> None:
    graphs = [project.graph(name) for name in OURS]
    with opened(project.settings, "bench") as session:
        for graph in graphs:
            epoch = graph.schedule.epoch_at(graph.schedule.start)
            advanced(project, graph.name, None, epoch, lambda _: nullcontext(session))
            complete(project, graph, epoch)


def _ran(server: Server, name: str, expected: int, say: Callable[[str], None]) -> list[Run]:
    """Let the scheduler run all runs of a DAG, in order, and tell what each took; the first of ours is kept."""
    say(f"{KINDS[name]}: {expected} runs")
    api = server.api
    api.unpause(name)

    def is_done() -> bool:
        states = [run.state for run in api.runs(name)]
        if "failed" in states:
            raise FirnlineError("STAGE_FAILED", f"a run of {name!r} failed", todo=f"Its logs are in {server.home.logs}.")
        return states.count("success") == expected

    server.wait(f"{expected} runs of {name!r}", is_done, _PATIENCE)
    api.pause(name)
    return list(_runs(api, name))


def _runs(api: Api, name: str) -> Iterator[Run]:
    for run in api.runs(name):
        tasks = api.tasks(name, run.id)
        assert run.start is not None
        assert run.end is not None
        yield Run((run.end - run.start).total_seconds(), sum(task.seconds or 0.0 for task in tasks), len(tasks))
