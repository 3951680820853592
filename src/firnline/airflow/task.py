"""What every kind of task does: load its project quietly, and tell a refusal as Airflow's own error.

Every refusal reaches the task's log with its code: a terminal one ends the task (no retry can help), a retryable one lets Airflow
try again. A task that is ended from outside uses up no try.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowRescheduleException

from firnline.errors import FirnlineError
from firnline.runtime.chatter import hush

if TYPE_CHECKING:
    from firnline.model.graph import Graph
    from firnline.runtime.project import Project

PAUSE = timedelta(seconds=10)
"""Before an interrupted task goes on: a scheduler has seen its end by then, and one that is ending does not start it again."""


def project_of(root: str) -> Project:
    """The project in a folder."""
    from firnline.runtime.project import Project

    hush()
    return Project.load(Path(root))


def loaded(root: str, pipeline: str) -> tuple[Project, Graph]:
    """The project in a folder, and one of its pipelines."""
    project = project_of(root)
    return project, project.graph(pipeline)


@contextmanager
def telling(task: BaseOperator, subject: str = "") -> Iterator[None]:
    """Let a refusal inside be Airflow's own error."""
    try:
        yield
    except FirnlineError as error:
        raise told(task, subject, str(error), error.retryable) from None


def interruption(task: BaseOperator) -> AirflowRescheduleException:
    """Lets the task run again as the same try. Where somebody set its state, Airflow keeps that instead."""
    task.log.warning("interrupted: Airflow or somebody ended the driver; when the task runs again, it goes on from the log")
    return AirflowRescheduleException(datetime.now(UTC) + PAUSE)  # type: ignore[no-untyped-call]


def told(task: BaseOperator, subject: str, message: str, retryable: bool) -> AirflowException:
    """The error as Airflow's own, after saying it in the task's log, where a traceback would drown it."""
    text = f"{subject}: {message}" if subject else message
    task.log.error(text)
    return AirflowException(text) if retryable else AirflowFailException(text)
