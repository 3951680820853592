"""Who may see and do what: Airflow's auth manager decides all of it.

Reading a pipeline asks for what reading its DAG asks for, changing it for what editing its DAG asks for. What the page starts as
runs of other DAGs it starts through Airflow's own API, in the user's name.
"""

from __future__ import annotations

from typing import Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from fastapi import HTTPException, Request

Method = Literal["GET", "PUT", "POST"]


def may(user: BaseUser, method: Method, dag: str, entity: DagAccessEntity | None = None) -> bool:
    """Whether a user may do something with a DAG."""
    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)


def may_run(user: BaseUser, dag: str) -> bool:
    """Whether a user may start a run of a DAG."""
    return may(user, "POST", dag, DagAccessEntity.RUN)


def sent_as_json(request: Request) -> None:
    """Refuse what a form of another site could send: a browser asks that site's leave before it sends JSON."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "send JSON")
