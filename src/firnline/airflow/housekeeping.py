"""The kinds of task beside the epochs, for logs, branches and copies. Run twice, late or at once, it harms nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from airflow.sdk import BaseOperator

from firnline.airflow.task import interruption, loaded, project_of, telling, told
from firnline.airflow.warden import family
from firnline.engine.launch import driver_environment
from firnline.errors import FirnlineError
from firnline.settings import Settings


class CommandOperator(BaseOperator):
    """A command of ``firnline`` for all pipelines of a project, in a process of its own, which may start a driver.

    Args:
        root: The project's folder.
        kwargs: What every operator takes.
    """

    def __init__(self, *, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root
        self._process: subprocess.Popen[str] | None = None
        self._interrupted = False

    def on_kill(self) -> None:
        """End the command and the driver below it; when the task runs again, it goes on from the logs."""
        self._interrupted = True
        if self._process is not None and self._process.poll() is None:
            for pid in (*family(self._process.pid), self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _ran(self, settings: Settings, *words: str) -> bool:
        """Run it, its output in the task's log; whether it ended well."""
        command = [sys.executable, "-c", "from firnline.cli import main; main()", *words]
        environment = {**os.environ, **driver_environment(settings, settings.spark_master)}
        self._process = subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if self._interrupted:
            self.on_kill()  # which came before there was a process
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.info(line.rstrip())
        is_well = self._process.wait() == 0
        if self._interrupted and not is_well:
            raise interruption(self)
        return is_well


class RepairOperator(CommandOperator):
    """Compare all logs of a project with storage, and make again what is lost; Spark runs only if rows are to be computed.

    A run's configuration may name one thing to look at: ``{"collection": "PIPELINE"}`` or ``"PIPELINE.COLLECTION"``.
    """

    def execute(self, context: Any) -> str:
        """Do it; the outcome is "whole" or "repaired"."""
        from firnline.runtime.repair import planned

        run = context.get("dag_run")
        asked = None if run is None or not run.conf else run.conf.get("collection")
        with telling(self):
            project = project_of(self.root)
            plan = planned(project, asked if asked is None else str(asked))
        for refusal in plan.refusals:
            self.log.error("%s.%s stays as it is: %s", refusal.pipeline, refusal.collection, refusal.what)
        if not plan.steps and not plan.refusals:
            self.log.info("all logs are whole")
            return "whole"
        if not self._ran(project.settings, "repair", *(() if asked is None else ("--", str(asked)))):
            raise told(self, "", "something is still damaged; the lines above say what and why", False)
        return "repaired"


class MaintenanceOperator(CommandOperator):
    """Keep all logs of a project small, in short steps within a budget; Spark runs only if layers are to be merged.

    Args:
        root: The project's folder.
        minutes: No step begins later than so many minutes after the first.
        kwargs: What every operator takes.
    """

    def __init__(self, *, root: str, minutes: float, **kwargs: Any) -> None:
        super().__init__(root=root, **kwargs)
        self.minutes = minutes

    def execute(self, context: Any) -> str:
        """Do it; the outcome is "tidy" or "maintained"."""
        from firnline.runtime.maintain import grace_of, is_tidy

        with telling(self):
            project = project_of(self.root)
            graphs, broken = project.graphs()
            untidy = [graph.name for graph in graphs if not is_tidy(project, graph, grace_of(project))]
        if untidy:
            # Asked about all pipelines, the command fails for those that do not load.
            asked = [[name] for name in untidy] if broken else [[]]
            words = ("--minutes", str(self.minutes))
            failed = [names for names in asked if not self._ran(project.settings, "maintain", *names, *words)]
            if failed:
                raise told(self, "", "something could not be done; the lines above say what and why", True)
        else:
            self.log.info("nothing to do")
        if broken:
            raise told(self, "", _unloaded(broken), False)
        return "maintained" if untidy else "tidy"


class BranchOperator(CommandOperator):
    """Run a branch of a pipeline, which the run's parameter names; Spark runs only if something is to be computed.

    A run with a logical date brings it through the epoch around that, if the pipeline has it; one without, through all there is.

    Args:
        root: The project's folder.
        pipeline: The pipeline's name.
        kwargs: What every operator takes.
    """

    def __init__(self, *, root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(root=root, **kwargs)
        self.pipeline = pipeline

    def execute(self, context: Any) -> str:
        """Do it; the outcome is "kept" or "run"."""
        from firnline.model.names import branch_space
        from firnline.runtime.branch_run import missing

        branch = str(context["params"]["branch"])
        with telling(self, branch):
            project, graph = loaded(self.root, self.pipeline)
            epochs = missing(project, branch_space(self.pipeline, branch))
        date = context.get("logical_date")
        last = None if date is None else graph.schedule.point(date.isoformat())
        wanted = [epoch for epoch in epochs if last is None or epoch.lower <= last]
        if not wanted:
            self.log.info("kept: the branch already holds what is asked for")
            return "kept"
        words = ("--pipeline", self.pipeline, "--to", graph.schedule.label(wanted[-1].lower))
        if not self._ran(project.settings, "branch", "run", branch, *words):
            raise told(self, branch, "the branch could not be run; the lines above say why", False)
        return "run"


class ReplicateOperator(BaseOperator):
    """Copy what all pipelines of a project published to their replicas, without Spark.

    Args:
        root: The project's folder.
        kwargs: What every operator takes.
    """

    def __init__(self, *, root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root

    def execute(self, context: Any) -> int:
        """Do it; the number of batches that were copied."""
        from firnline.runtime.replicate import Copied, replicate

        def copying(each: Copied) -> None:
            self.log.info("%s of [%s, %s) is at %s", each.collection, each.lower, each.upper, each.place)

        copied, failed = 0, []
        with telling(self):
            project = project_of(self.root)
            graphs, broken = project.graphs()
            for graph in graphs:
                if graph.replicas:
                    found = replicate(project, graph, copying)
                    copied += len(found.copied)
                    failed += [each.error for each in found.failed]
                    self.log.info("%s: %s batches wait, %s epochs are due", graph.name, found.waiting, found.queued)
        if failed:
            raise told(self, "", "; ".join(map(str, failed)), all(error.retryable for error in failed))
        if broken:
            raise told(self, "", _unloaded(broken), False)
        return copied


def _unloaded(broken: Mapping[str, FirnlineError]) -> str:
    return "; ".join(f"{name} was left out: {problem}" for name, problem in broken.items())
