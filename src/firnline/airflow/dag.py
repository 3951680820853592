"""A pipeline as a DAG: one run per epoch, one task per collection, one that makes the epoch visible, then one per sink.

The DAG's data intervals are exactly the schedule's epochs in [start, end). Parsing reads the compiled graph; neither PySpark nor
the user's stages are imported.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, DeltaDataIntervalTimetable, Param

from firnline.airflow.alerting import deadline_of
from firnline.airflow.assets import assets_of
from firnline.airflow.documenting import described, first_sentence, of_collection
from firnline.airflow.housekeeping import BranchOperator, MaintenanceOperator, RepairOperator, ReplicateOperator
from firnline.airflow.names import MAINTENANCE, REPAIR, REPLICATE, epoch_task
from firnline.airflow.operator import AdvanceOperator, CompleteOperator, FrontierSensor, SinkOperator
from firnline.airflow.retrying import ByCode
from firnline.errors import FirnlineError
from firnline.model.epoch import Schedule, to_datetime
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.runtime.explained import recalled
from firnline.runtime.project import Project
from firnline.settings import Settings

RETRIES = {
    "retries": 5,
    "retry_delay": timedelta(seconds=5),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=1),
    "retry_policy": ByCode(),
}
"""Only what may be gone soon is tried again: an input that is late, a lost race, a machine or an Airflow that was killed."""

FORCE = Param(
    False,
    type="boolean",
    title="Force",
    description="Replay the run's epoch even if code and inputs are what the log was made with.",
)
RUNS = 2
"""Epochs under way: a collection begins the next one while those that come of it are still at this one."""
ONE_BY_ONE = {"max_active_tis_per_dag": 1}
"""Two tasks of a collection at once would compute the same epochs: the later one brings the earlier ones along."""
_INSTANT = timedelta(microseconds=1)


def pipeline_dag(name: str, **defaults: Any) -> DAG:
    """The DAG of the pipeline of that name, in the project that holds the calling file.

    Args:
        name: The pipeline's name.
        defaults: What all tasks take, in Airflow's words: ``pool``, ``queue``, ``retries``, ``on_failure_callback``, ``conf``.
    """
    file = sys._getframe(1).f_code.co_filename
    project = Project.load(Path(file).parent)
    dag = graph_dag(project.settings, project.graph(name), **defaults)
    dag.fileloc = file
    return dag


def branch_dag(name: str) -> DAG:
    """The DAG that runs a branch of the pipeline of that name, in the project that holds the calling file."""
    file = sys._getframe(1).f_code.co_filename
    branch = Param(
        type="string", minLength=1, title="Branch", description="The branch's name, as 'firnline branch list' shows it."
    )
    dag = DAG(
        f"{name}__branch",
        schedule=None,
        start_date=to_datetime(0),
        max_active_runs=1,
        is_paused_upon_creation=False,
        default_args={"owner": "firnline", **RETRIES},
        description=f"Runs a branch of {name}; what its code did not change is taken, not computed.",
        params={"branch": branch},
        tags={"firnline"},
    )
    BranchOperator(task_id="run", root=str(Project.load(Path(file).parent).settings.root), pipeline=name, dag=dag)
    dag.fileloc = file
    return dag


def repair_dag(schedule: str = "@daily") -> DAG:
    """A DAG that compares all logs of the project that holds the calling file with storage, and repairs them."""
    file = sys._getframe(1).f_code.co_filename
    dag, root = _housekeeping(REPAIR, schedule, file, "Compares all logs with storage, and makes again what is lost.")
    what = "PIPELINE or PIPELINE.COLLECTION; everything by default."
    dag.params["collection"] = Param(None, type=["null", "string"], title="Collection", description=what)
    RepairOperator(task_id="repair", root=root, dag=dag)
    return dag


def maintenance_dag(schedule: str = "@hourly", minutes: float = 30.0) -> DAG:
    """A DAG that keeps all logs of the project that holds the calling file small, within so many minutes each time."""
    file = sys._getframe(1).f_code.co_filename
    dag, root = _housekeeping(MAINTENANCE, schedule, file, "Merges layers behind the safe point, and removes what nothing needs.")
    MaintenanceOperator(task_id="maintain", root=root, minutes=minutes, dag=dag)
    return dag


def replicate_dag(schedule: str = "*/5 * * * *") -> DAG:
    """A DAG that copies what all pipelines of the project that holds the calling file published to their replicas."""
    file = sys._getframe(1).f_code.co_filename
    dag, root = _housekeeping(REPLICATE, schedule, file, "Copies what is published to replicas, beside the epochs.")
    ReplicateOperator(task_id="replicate", root=root, dag=dag)
    return dag


def _housekeeping(name: str, schedule: str, file: str, description: str) -> tuple[DAG, str]:
    """A DAG without a task for all pipelines of the project that holds a file, and the project's folder."""
    dag = DAG(
        name,
        schedule=schedule,
        start_date=to_datetime(0),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=True,
        default_args={"owner": "firnline", **RETRIES},
        description=description,
        tags={"firnline"},
    )
    dag.fileloc = file
    return dag, str(Project.load(Path(file).parent).settings.root)


def graph_dag(settings: Settings, graph: Graph, **defaults: Any) -> DAG:
    """The DAG of a compiled graph, with what all tasks take."""
    schedule = graph.schedule
    dag = DAG(
        graph.name,
        schedule=timetable(graph),
        start_date=to_datetime(schedule.start),
        # An interval may start at end_date itself, so that is the last instant before the end.
        end_date=None if schedule.end is None else to_datetime(schedule.end) - _INSTANT,
        catchup=True,
        max_active_runs=1 if graph.tasks == "per-epoch" else RUNS,
        is_paused_upon_creation=True,
        default_args={"owner": "firnline", **RETRIES, **ONE_BY_ONE, **defaults},
        description=first_sentence(graph.doc),
        doc_md=described(graph),
        params={"force": FORCE},
        tags={"firnline"},
        deadline=deadline_of(settings, graph),
    )
    where: dict[str, Any] = {"root": str(settings.root), "pipeline": graph.name, "dag": dag}
    others = sorted({name.partition(".")[0] for name in graph.foreign})
    awaited = {name: FrontierSensor(task_id=f"_await_{name}", other=name, **where) for name in others}
    sinks = [SinkOperator(task_id=each.name, sink=each.name, doc_md=each.doc or None, **where) for each in graph.sinks]
    if graph.tasks == "per-epoch":
        whole = AdvanceOperator(task_id=epoch_task(graph), doc_md=described(graph), outlets=assets_of(graph), **where)
        whole.set_upstream([*awaited.values()])
        whole.set_downstream(sinks)
        return dag
    tasks = {
        each.name: AdvanceOperator(
            task_id=each.name,
            collection=each.name,
            doc_md=of_collection(graph, each, recalled(settings, graph, each.name)),
            **where,
        )
        for each in graph.collections
    }
    # No collection's or sink's name begins with an underscore.
    is_taken = any(task_id == "complete" for task_id in (*tasks, *(each.name for each in graph.sinks)))
    complete = CompleteOperator(task_id="_complete" if is_taken else "complete", outlets=assets_of(graph), **where)
    complete.set_downstream(sinks)
    for each in graph.collections:
        tasks[each.name].set_upstream([tasks[name] for name in each.inputs if not is_foreign(name)])
        tasks[each.name].set_upstream([awaited[name.partition(".")[0]] for name in each.inputs if is_foreign(name)])
    read = {name for each in graph.collections for name in each.inputs}
    complete.set_upstream([task for name, task in tasks.items() if name not in read])
    return dag


def timetable(graph: Graph) -> CronDataIntervalTimetable | DeltaDataIntervalTimetable:
    """The timetable whose data intervals are the graph's epochs."""
    schedule: Schedule = graph.schedule
    if not schedule.timed:
        raise FirnlineError(
            "BAD_SCHEDULE",
            f"the pipeline {graph.name!r} has integer epochs, which Airflow cannot schedule",
            todo=f"Run it with 'firnline run {graph.name}', or give it a schedule in time.",
        )
    if isinstance(schedule.rule, str):
        return CronDataIntervalTimetable(schedule.rule, timezone="UTC")
    return DeltaDataIntervalTimetable(timedelta(microseconds=schedule.rule))
