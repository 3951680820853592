"""The kinds of task of an epoch. One for e: advance this collection through e. Run twice, late or at once, it harms nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, BaseOperator, BaseSensorOperator
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from firnline.airflow.assets import tell
from firnline.airflow.connection import Cold, Warm, check_provider, where
from firnline.airflow.metrics import emit
from firnline.airflow.task import interruption, loaded, project_of, telling, told
from firnline.airflow.warden import family
from firnline.engine.launch import CLUSTER, submission
from firnline.engine.server import Engine
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch, to_micros
from firnline.plan.advance import check_over
from firnline.plan.rewinding import FORCED
from firnline.settings import Settings
from firnline.world import world

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project

CONNECTION = "spark_default"
PATIENCE = timedelta(days=7)
"""How long an epoch waits for another pipeline."""

_BOUND = "{{{{ {0}.isoformat() if {0} is defined and {0} else '' }}}}"


class _Interrupted(BaseException):
    """This process was told to end. No error: no function of a user's may take it for one of its own."""


class AdvanceOperator(SparkSubmitOperator):
    """Advance a collection, or all, through the run's epoch; without Spark where the log holds it already.

    The connection says where: in a Spark driver of its own (cold), or in a session on an engine that runs already (warm).

    Args:
        root: The project's folder.
        pipeline: The pipeline's name.
        collection: The collection's name; none for all of the pipeline's, in order, which then completes the epoch.
        kwargs: What SparkSubmitOperator takes; ``conf`` is added to what the driver needs anyway.
    """

    def __init__(
        self, *, root: str, pipeline: str, collection: str | None = None, conn_id: str = CONNECTION, **kwargs: Any
    ) -> None:
        bounds = ["--lower", _BOUND.format("data_interval_start"), "--upper", _BOUND.format("data_interval_end")]
        super().__init__(
            application=str(Path(root, "spark_jobs", "advance.py")),
            application_args=[pipeline, *([collection] if collection else ()), *bounds],
            name=f"firnline {pipeline}.{collection or '*'}",
            conn_id=conn_id,
            **kwargs,
        )
        self.root = root
        self.pipeline = pipeline
        self.collection = collection
        self._interrupted = False
        self._is_warm = False

    def execute(self, context: Any) -> str:  # type: ignore[override]  # the provider's returns nothing
        """Do it; the outcome is "kept" or "computed"."""
        what = self.collection or self.pipeline
        with telling(self, what):
            project, graph = loaded(self.root, self.pipeline)
            epoch = epoch_of(graph, context)
        subject = f"{what} at {graph.schedule.label(epoch.lower)}"
        with telling(self, subject):
            outcome = self._outcome(context, project, graph, epoch, subject)
            if self.collection is None:
                _complete(self, project, graph, epoch, context)
        return outcome

    def _outcome(self, context: Any, project: Project, graph: Graph, epoch: Epoch, subject: str) -> str:
        from firnline.runtime.rerun import Rerun

        force = forced(context)
        rerun = Rerun(project, graph, epoch, force)
        names = [self.collection] if self.collection else [each.name for each in graph.collections]
        if all(rerun.is_settled(name) for name in names):
            through = graph.schedule.label(epoch.lower)
            self.log.info("kept: the log already holds %s through %s", self.collection or self.pipeline, through)
            return "kept"
        check_over(graph.schedule, epoch, to_micros(world().now()))
        place = self._where(project.settings)
        if isinstance(place, Warm):
            try:
                return self._advance(project, place, epoch, force)
            except FirnlineError as error:
                if error.code != "ENGINE_UNAVAILABLE" or place.fallback is None:
                    raise
                self.log.warning("%s: instead, a Spark driver of its own starts on %s", error.what, place.fallback)
            place = self._connect(Cold(place.fallback))
        if self._deploy_mode:
            place = replace(place, deploy_mode=self._deploy_mode)
        check_provider(place)
        self._prepare(project.settings, place)
        if place.deploy_mode == CLUSTER:
            return self._submit_elsewhere(context, project, names, epoch, force)
        return self._submit(context, subject, force)

    def get_openlineage_facets_on_start(self) -> Any:
        """What OpenLineage's provider asks for, if it is there: which collections."""
        return self._lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """What it asks for at the end, also of a failure: what the epoch is made from, what it changed, what checks said."""
        return self._lineage(task_instance.get_template_context())

    def _lineage(self, context: Any) -> Any:
        from firnline.airflow.openlineage import Telling

        project, graph = loaded(self.root, self.pipeline)
        names = [self.collection] if self.collection else [each.name for each in graph.collections]
        return Telling(project, graph).makes(names, None if context is None else epoch_of(graph, context))

    def on_kill(self) -> None:
        """End the driver: the JVM and the Python below it. On an engine, end the session, and with it its queries."""
        is_first, self._interrupted = not self._interrupted, True
        if self._is_warm and is_first:
            raise _Interrupted
        process = getattr(self._hook, "_submit_sp", None)
        if process is None or process.poll() is not None:
            return
        below = family(process.pid)  # before its end, as orphans lose their parent
        super().on_kill()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _advance(self, project: Project, place: Warm, epoch: Epoch, force: str | None) -> str:
        """Do it in this process, which is the task's own, in a session on an engine."""
        from firnline.runtime.job import warmly_advanced

        self._is_warm = True
        try:
            if self._interrupted:
                raise _Interrupted
            with nullcontext(place.endpoint) if place.endpoint else Engine(project.settings).used() as endpoint:
                self.log.info("Spark runs on the engine at %s", endpoint)
                return warmly_advanced(project, self.pipeline, self.collection, epoch, endpoint, force)
        except _Interrupted:
            raise interruption(self) from None
        finally:
            self._is_warm = False

    def _prepare(self, settings: Settings, place: Cold) -> None:
        """Tell the provider what a driver there needs; what its operator was given wins."""
        found = submission(settings, Path(self.application), place.master, place.deploy_mode)
        self.application = found.application
        self.conf = {**found.conf, **(self.conf or {})}
        self.env_vars = {**found.driver, **(self.env_vars or {})}
        os.environ.update(found.process)  # this process is the task's own

    def _submit(self, context: Any, subject: str, force: str | None) -> str:
        """Submit a job whose driver runs here, and which reports its outcome in a file."""
        with TemporaryDirectory(prefix="firnline-") as folder:
            report = Path(folder, "report.json")
            more = ["--report", str(report), *(("--force", force) if force else ())]
            self.application_args = [*(self.application_args or ()), *more]
            if self._interrupted:
                raise interruption(self)
            try:
                super().execute(context)
            except AirflowException:
                if self._interrupted:
                    raise interruption(self) from None
                error = _read(report).get("error")
                if not error:
                    raise
                raise told(self, "", _sentence(error), bool(error["retryable"])) from None  # it names collection and epoch
            found = _read(report)
        if not found:
            raise AirflowException(f"{subject}: the Spark driver ended without a report")
        return str(found["outcome"])

    def _submit_elsewhere(self, context: Any, project: Project, names: list[str], epoch: Epoch, force: str | None) -> str:
        """Submit a job whose driver runs elsewhere: the logs say whether it is done, and the noted failures why not."""
        self.application_args = [*(self.application_args or ()), *(("--force", force) if force else ())]
        self.durable = self.durable and self._yarn_track_via_rm_api  # without YARN's own word: a retry goes on from the log
        if self._interrupted:
            raise interruption(self)
        began = datetime.now(UTC).isoformat()
        try:
            super().execute(context)
        except (AirflowException, RuntimeError):  # the latter where YARN itself is asked
            if self._interrupted:
                raise interruption(self) from None
            since = [each for each in project.failures(self.pipeline).open({}) if each.failed_at >= began]
            failed = next((each for each in since if each.collection in names), None)
            if failed is None:
                raise
            raise told(self, "", failed.message, failed.retryable) from None  # it names collection and epoch
        heads = {name: project.log(self.pipeline, name).head() for name in names}
        lacking = [name for name, head in heads.items() if head is None or head.description.upper < epoch.upper]
        if lacking:
            raise AirflowException(f"the Spark driver ended, and the log of {', '.join(lacking)} does not hold the epoch")
        return "computed"

    def _where(self, settings: Settings) -> Cold | Warm:
        """Where Spark runs."""
        try:
            return where(BaseHook.get_connection(self._conn_id), settings.spark_master)
        except AirflowNotFoundException:
            self.log.info("no connection %s: Spark runs on %s", self._conn_id, settings.spark_master)
            return self._connect(Cold(settings.spark_master))

    def _connect(self, place: Cold) -> Cold:
        """Give the hook a connection to a master: where Airflow has none, it would go to YARN without a word."""
        document = json.dumps({"conn_type": "spark", "host": place.master})
        os.environ[f"AIRFLOW_CONN_{self._conn_id.upper()}"] = document  # this process is the task's own
        return place


class CompleteOperator(BaseOperator):
    """Move the pipeline's frontier: from now on readers see the epoch in all collections, or an error says which one lacks it."""

    def __init__(self, *, root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root
        self.pipeline = pipeline

    def execute(self, context: Any) -> None:
        """Do it, without Spark."""
        with telling(self, self.pipeline):
            project, graph = loaded(self.root, self.pipeline)
            epoch = epoch_of(graph, context)
        with telling(self, f"{self.pipeline} at {graph.schedule.label(epoch.lower)}"):
            _complete(self, project, graph, epoch, context)


class SinkOperator(BaseOperator):
    """Let a sink deliver all epochs that are complete, without Spark. The run's epoch is one of them.

    Args:
        root: The project's folder.
        pipeline: The pipeline's name.
        sink: The sink's name.
        kwargs: What every operator takes.
    """

    def __init__(self, *, root: str, pipeline: str, sink: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root
        self.pipeline = pipeline
        self.sink = sink

    def execute(self, context: Any) -> list[str]:
        """Do it; the epochs that were delivered."""
        from firnline.runtime.sink import deliver

        delivered = []
        with telling(self, self.sink):
            project = project_of(self.root)
            for each in deliver(project, project.declared(self.pipeline), self.sink, _connection):
                self.log.info("delivered: %s has %s", self.sink, each.epoch)
                delivered.append(each.epoch)
        return delivered

    def get_openlineage_facets_on_start(self) -> Any:
        """What OpenLineage's provider asks for, if it is there: which collections are delivered."""
        from firnline.airflow.openlineage import Telling

        project, graph = loaded(self.root, self.pipeline)
        return Telling(project, graph).reads(next(each.inputs for each in graph.sinks if each.name == self.sink))


def _connection(name: str) -> dict[str, Any] | None:
    """The parameters of a database that is a connection of Airflow's."""
    try:
        found = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return None
    told = {"host": found.host, "port": found.port, "user": found.login, "password": found.password, "dbname": found.schema}
    return {key: value for key, value in {**told, **found.extra_dejson}.items() if value}


class FrontierSensor(BaseSensorOperator):
    """Wait, without keeping a worker, until another pipeline is complete up to the end of the run's epoch.

    Args:
        root: The project's folder.
        pipeline: The pipeline that waits.
        other: The pipeline that it reads.
        kwargs: What every sensor takes.
    """

    def __init__(self, *, root: str, pipeline: str, other: str, **kwargs: Any) -> None:
        waiting = {"mode": "reschedule", "poke_interval": 30.0, "timeout": PATIENCE.total_seconds()}
        super().__init__(**{**waiting, **kwargs, "max_active_tis_per_dag": None})  # epochs may wait together
        self.root = root
        self.pipeline = pipeline
        self.other = other

    def poke(self, context: Any) -> bool:
        """Whether it is."""
        with telling(self, self.pipeline):
            project, graph = loaded(self.root, self.pipeline)
            epoch = epoch_of(graph, context)
            frontier = project.control(self.other).frontier()
        label = graph.schedule.label
        if frontier is not None and frontier.upper >= epoch.upper:
            return True
        there = "nowhere yet" if frontier is None else f"up to {label(frontier.upper)}"
        needed = f"{label(epoch.lower)} of {self.pipeline} needs it up to {label(epoch.upper)}"
        self.log.info("%s is complete %s; %s", self.other, there, needed)
        return False


def _complete(task: BaseOperator, project: Project, graph: Graph, epoch: Epoch, context: Any) -> None:
    from firnline.runtime.advance import complete

    frontier = complete(project, graph, epoch)
    tell(graph, epoch, frontier, emit(project, graph, epoch), context["outlet_events"])
    task.log.info("complete: all collections of %s hold %s", graph.name, graph.schedule.label(epoch.lower))


def epoch_of(graph: Graph, context: Any) -> Epoch:
    """The epoch that a run's data interval is, or a refusal."""
    start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        raise FirnlineError(
            "BAD_EPOCH",
            "this run has no data interval, so it names no epoch",
            todo="Trigger the DAG with a logical date, or use a backfill.",
        )
    schedule = graph.schedule
    asked = Epoch(schedule.point(start.isoformat()), schedule.point(end.isoformat()))  # pendulum's dates do not divide
    there = schedule.epoch_at(asked.lower)
    if asked != there:
        wrong, right = (f"[{schedule.label(e.lower)}, {schedule.label(e.upper)})" for e in (asked, there))
        raise FirnlineError(
            "BAD_EPOCH", f"the data interval {wrong} is no epoch of {graph.name!r}", todo=f"The epoch there is {right}."
        )
    return asked


def forced(context: Any) -> str | None:
    """What the replay is called that a run's parameter ``force`` asks for: one for all of its tasks and their tries."""
    if not context["params"].get("force"):
        return None
    run = context["dag_run"]
    told = f"{run.dag_id} {run.run_id} {run.clear_number}"
    return f"{FORCED}{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def _read(report: Path) -> dict[str, Any]:
    if not report.exists():
        return {}
    document: dict[str, Any] = json.loads(report.read_text())
    return document


def _sentence(error: dict[str, Any]) -> str:
    place = f" ({error['where']})" if error.get("where") else ""
    return f"{error['code']}: {error['what']}{place}. {error['todo']}"
