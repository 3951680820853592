"""What Airflow knows of a pipeline's epochs: the run of each, its tasks' states, and whether they found something to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import select

Key = tuple[str, datetime]
"""A task, and where the data interval of its run begins."""


@dataclass(frozen=True, slots=True)
class Task:
    """The newest run's task for an epoch of a collection."""

    run: str
    state: str | None
    outcome: str | None
    """What it returned: ``kept`` or ``computed``."""


def tasks_of(dag: str, lower: datetime, upper: datetime) -> Mapping[Key, Task]:
    """The tasks of a DAG's runs whose data intervals begin in [lower, upper)."""
    between = (DagRun.dag_id == dag, DagRun.data_interval_start >= lower, DagRun.data_interval_start < upper)
    tasks = select(TaskInstance.task_id, DagRun.data_interval_start, TaskInstance.run_id, TaskInstance.state).join(
        DagRun, (DagRun.dag_id == TaskInstance.dag_id) & (DagRun.run_id == TaskInstance.run_id)
    )
    returned = select(XComModel.task_id, XComModel.run_id, XComModel.value).join(DagRun, DagRun.id == XComModel.dag_run_id)
    with create_session() as session:
        found = session.execute(tasks.where(*between).order_by(DagRun.run_after)).all()
        values = session.execute(returned.where(*between, XComModel.key == "return_value")).all()
    outcomes = {(task, run): _word(value) for task, run, value in values}
    return {
        (task, start): Task(run, None if state is None else str(state), outcomes.get((task, run)))
        for task, start, run, state in found
        if start is not None
    }


def running(dags: Iterable[str]) -> Mapping[str, str]:
    """Of these DAGs, those with a run that has not ended, and its id."""
    live = select(DagRun.dag_id, DagRun.run_id).where(DagRun.dag_id.in_(list(dags)), DagRun.state.in_(["queued", "running"]))
    with create_session() as session:
        return {each.dag_id: each.run_id for each in session.execute(live)}


def _word(value: object) -> str | None:
    """A returned word, as XCom stores it: JSON, or what the database's driver has read from that."""
    return value.strip('"') if isinstance(value, str) else None
