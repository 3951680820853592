"""The page's addresses. Nothing here is open: who is not logged in gets 401, who may not see a DAG gets 403 for its pipeline.

Reading needs no JVM and takes tens of milliseconds. What takes longer is a run of a DAG, which the page starts through Airflow's
own API; so no answer waits for work.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, Literal

from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.api_fastapi.logging.decorators import action_logging
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field

from firnline.airflow.names import REPAIR
from firnline.errors import FirnlineError
from firnline.model.epoch import to_datetime
from firnline.model.graph import Graph
from firnline.runtime.branch import branches as branches_of
from firnline.runtime.branch import create
from firnline.runtime.diff import MAIN, sides
from firnline.runtime.diff import diff as compared
from firnline.runtime.history import told as history
from firnline.runtime.lineage import lineage as lineage_of
from firnline.runtime.overview import EPOCHS, Overview, overview
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.safepoint import release
from firnline.web.access import may, may_run, sent_as_json
from firnline.web.answers import Answers
from firnline.web.documents import (
    diff_document,
    lineage_document,
    pipeline_document,
    pipelines_of,
    storage_document,
    summary_document,
    unloaded_document,
)
from firnline.web.runs import running, tasks_of

STATIC = files("firnline.web") / "static"
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
"""The page loads nothing from elsewhere, and no other site may frame it."""
STATUSES = {"NO_SUCH_PIPELINE": 404, "NO_SUCH_COLLECTION": 404, "NO_SUCH_HOLD": 404, "NO_SUCH_BRANCH": 404}
_WRONG = 400
_NOT_NOW = 503

CanRead = Depends(requires_access_dag("GET"))
CanEdit = Depends(requires_access_dag("PUT"))


class Release(BaseModel):
    """Which hold to let go of."""

    hold: str = Field(min_length=1, max_length=200)


class Back(BaseModel):
    """Where to go back to, with which collection; a dry one only says what would be done."""

    to: str = Field(max_length=40)
    stage: str | None = Field(default=None, max_length=200)
    dry: bool = True


class Fork(BaseModel):
    """A branch, and the first epoch that is its own."""

    name: str = Field(min_length=1, max_length=100)
    start: str = Field(max_length=40)


class Forth(BaseModel):
    """Undo the newest rewind; a dry one only says what would be done."""

    dry: bool = True


def application(project: Project) -> FastAPI:
    """The page of a project."""
    app = FastAPI(title="Firnline", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])
    answers = Answers[tuple[Graph, Overview]]()

    def look(name: str) -> tuple[Graph, Overview]:
        graph = project.graph(name)
        return graph, overview(project, graph)

    @app.exception_handler(FirnlineError)
    def refused(_: Request, error: FirnlineError) -> Response:
        status = STATUSES.get(error.code, _NOT_NOW if error.retryable else _WRONG)
        return Response(json.dumps({"error": error.as_json()}), status, SAFE, "application/json")

    @app.get("/")
    def page() -> Response:
        return _file("index.html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        return _file(name)

    @app.get("/api/pipelines")
    def pipelines(request: Request, user: GetUserDep) -> Response:
        found = []
        for name in project.pipelines():
            if not may(user, "GET", name):
                continue
            try:
                told = answers.ask(name, partial(look, name))
                found.append({"pipeline": name} if told is None else summary_document(told[1]))
            except FirnlineError as error:
                found.append(unloaded_document(name, error))
        return _answer(request, {"pipelines": found})

    @app.get("/api/pipelines/{dag_id}", dependencies=[CanRead])
    def pipeline(
        request: Request,
        user: GetUserDep,
        dag_id: str,
        upto: Annotated[str | None, Query(max_length=40)] = None,
        epochs: Annotated[int, Query(ge=1, le=200)] = EPOCHS,
    ) -> Response:
        if (upto, epochs) == (None, EPOCHS):
            told = answers.ask(dag_id, partial(look, dag_id))
            graph, found = told or look(dag_id)
        else:
            graph = project.graph(dag_id)
            found = overview(project, graph, upto, epochs)
        document = pipeline_document(graph, found, _tasks(graph, found))
        document["may"] = {"edit": may(user, "PUT", dag_id), "repair": may_run(user, REPAIR)}
        document["repairing"] = running([REPAIR]).get(REPAIR)
        return _answer(request, document)

    @app.get("/api/pipelines/{dag_id}/storage", dependencies=[CanRead])
    def storage(request: Request, dag_id: str) -> Response:
        return _answer(request, storage_document(history(project, project.graph(dag_id))))

    @app.get("/api/pipelines/{dag_id}/lineage", dependencies=[CanRead])
    def lineage(
        request: Request,
        user: GetUserDep,
        dag_id: str,
        collection: Annotated[str, Query(max_length=200)],
        epoch: Annotated[str, Query(max_length=40)],
        part: Annotated[int | None, Query(ge=0)] = None,
        direction: Literal["upstream", "downstream"] = "upstream",
    ) -> Response:
        found = lineage_of(project, project.graph(dag_id), collection, epoch, part, direction)
        unseen = frozenset(name for name in pipelines_of(found) if not may(user, "GET", name))
        return _answer(request, lineage_document(found, unseen))

    @app.get("/api/pipelines/{dag_id}/branches", dependencies=[CanRead])
    def branches(request: Request, dag_id: str) -> Response:
        return _answer(request, {"branches": [asdict(each) for each in branches_of(project, project.graph(dag_id))]})

    @app.get("/api/pipelines/{dag_id}/diff", dependencies=[CanRead])
    def diff(request: Request, dag_id: str, branch: Annotated[str, Query(max_length=100)]) -> Response:
        found = compared(*sides(project, project.graph(dag_id), MAIN, branch), rows=None)
        return _answer(request, diff_document(found))

    @app.post("/api/pipelines/{dag_id}/branch", dependencies=[CanEdit, Depends(sent_as_json), Depends(action_logging())])
    def create_branch(request: Request, user: GetUserDep, dag_id: str, asked: Fork) -> Response:
        graph = project.graph(dag_id)
        made = create(project, graph, asked.name, graph.schedule.point(asked.start), None, user.get_name())
        answers.forget(dag_id)
        return _answer(request, {"branch": asked.name, "at": graph.schedule.label(made.at)})

    @app.post("/api/pipelines/{dag_id}/release", dependencies=[CanEdit, Depends(sent_as_json), Depends(action_logging())])
    def release_hold(request: Request, dag_id: str, asked: Release) -> Response:
        project.graph(dag_id)
        released = release(project, dag_id, asked.hold)
        answers.forget(dag_id)
        return _answer(request, {"released": released.as_json()})

    @app.post("/api/pipelines/{dag_id}/rewind", dependencies=[CanEdit, Depends(sent_as_json), Depends(action_logging())])
    def rewind_pipeline(request: Request, user: GetUserDep, dag_id: str, asked: Back) -> Response:
        graph = project.graph(dag_id)
        point = graph.schedule.epoch_at(graph.schedule.point(asked.to)).lower
        report = rewind(project, graph, point, asked.stage, user.get_name(), is_dry=asked.dry)
        answers.forget(dag_id)
        return _answer(request, asdict(report))

    @app.post("/api/pipelines/{dag_id}/undo", dependencies=[CanEdit, Depends(sent_as_json), Depends(action_logging())])
    def undo_rewind(request: Request, user: GetUserDep, dag_id: str, asked: Forth) -> Response:
        report = undo(project, project.graph(dag_id), user.get_name(), is_dry=asked.dry)
        answers.forget(dag_id)
        return _answer(request, asdict(report))

    return app


def _tasks(graph: Graph, found: Overview) -> Any:
    """What Airflow knows of the epochs shown; integer epochs are none of its own."""
    if not graph.schedule.timed or not found.epochs:
        return {}
    lower, upper = graph.schedule.point(found.epochs[0][0]), graph.schedule.point(found.epochs[-1][1])
    return tasks_of(graph.name, to_datetime(lower), to_datetime(upper))


def _file(name: str) -> Response:
    """One of the page's own files: never a path that somebody made up."""
    found = {each.name: each for each in STATIC.iterdir()}.get(name)
    if found is None:
        raise HTTPException(404, "no such file")
    kind = TYPES[name.rpartition(".")[2]]
    return Response(found.read_bytes(), 200, {**SAFE, "Cache-Control": "private, no-cache"}, kind)


def _answer(request: Request, document: Any) -> Response:
    """A document, or that it is as the caller has it already."""
    content = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**SAFE, "ETag": tag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(content, 200, headers, "application/json")
