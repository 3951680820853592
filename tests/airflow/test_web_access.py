"""Every address of the page, as anybody who might call it, and with names that nobody should believe."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from firnline.airflow.server import Server
from firnline.model.hold import Hold
from firnline.runtime.project import Project
from firnline.runtime.safepoint import hold
from firnline.web.app import application
from tests.airflow.conftest import ROLES

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1500)]

READ = {"anonymous": 401, "vera": 200, "uma": 200, "admin": 200}
ENDPOINTS: dict[tuple[str, str], tuple[str, Any, dict[str, int]]] = {
    ("GET", "/"): ("", None, READ),
    ("GET", "/static/{name}"): ("static/main.js", None, READ),
    ("GET", "/api/pipelines"): ("api/pipelines", None, READ),
    ("GET", "/api/pipelines/{dag_id}"): ("api/pipelines/race", None, READ),
    ("GET", "/api/pipelines/{dag_id}/storage"): ("api/pipelines/race/storage", None, READ),
    # No epoch of it is there yet, which only those are told who may ask.
    ("GET", "/api/pipelines/{dag_id}/lineage"): (
        "api/pipelines/slow/lineage?collection=readings&epoch=2026-01-01",
        None,
        {"anonymous": 401, "vera": 404, "uma": 404, "admin": 404},
    ),
    ("GET", "/api/pipelines/{dag_id}/branches"): ("api/pipelines/race/branches", None, READ),
    ("GET", "/api/pipelines/{dag_id}/diff"): (
        "api/pipelines/slow/diff?branch=nobody",
        None,
        {"anonymous": 401, "vera": 404, "uma": 404, "admin": 404},
    ),
    ("POST", "/api/pipelines/{dag_id}/branch"): (
        "api/pipelines/slow/branch",
        {"name": "../Other", "start": "2026-01-01"},
        {"anonymous": 401, "vera": 403, "uma": 400, "admin": 400},
    ),
    ("POST", "/api/pipelines/{dag_id}/rewind"): (
        "api/pipelines/slow/rewind",
        {"to": "2026-01-01", "stage": "nobody"},
        {"anonymous": 401, "vera": 403, "uma": 404, "admin": 404},
    ),
    ("POST", "/api/pipelines/{dag_id}/undo"): (
        "api/pipelines/slow/undo",
        {},
        {"anonymous": 401, "vera": 403, "uma": 400, "admin": 400},  # there is nothing to undo
    ),
    ("POST", "/api/pipelines/{dag_id}/release"): (
        "api/pipelines/slow/release",
        {"hold": "nobody's"},
        {"anonymous": 401, "vera": 403, "uma": 404, "admin": 404},
    ),
}
"""By method and route: an address, what is sent, and what each caller gets."""

HOSTILE = (
    "..%2f..%2ffirnline",
    "%2e%2e",
    "race%00",
    "race'%20OR%20'1'='1",
    "race;DROP%20TABLE%20dag",
    "__import__",
    "<script>alert(1)</script>",
    "Ⓡace",
    "race" * 500,
    "~",
)


@pytest.fixture(scope="module")
def callers(server: Server) -> dict[str, httpx.Client]:
    """A client for each role; one has no token."""
    made = {"anonymous": httpx.Client(base_url=f"{server.url}/firnline/", trust_env=False, timeout=120)}
    for name, password in {server.user: server.password, **{name: name for name in ROLES}}.items():
        login = httpx.post(
            f"{server.url}/auth/token", json={"username": name, "password": password}, trust_env=False, timeout=120
        )
        headers = {"Authorization": f"Bearer {login.json()['access_token']}"}
        made[name] = httpx.Client(base_url=f"{server.url}/firnline/", headers=headers, trust_env=False, timeout=120)
    return made


def test_the_table_has_every_address(project: Project) -> None:
    routes = {(method, route.path) for route in application(project).routes for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert routes == set(ENDPOINTS)


@pytest.mark.parametrize(("method", "route"), ENDPOINTS)
def test_each_caller_gets_what_they_may_have(callers: dict[str, httpx.Client], method: str, route: str) -> None:
    path, sent, expected = ENDPOINTS[method, route]
    found = {name: caller.request(method, path, json=sent).status_code for name, caller in callers.items()}
    assert found == expected


def test_a_wrong_token_is_no_token(server: Server) -> None:
    for headers in ({"Authorization": "Bearer x"}, {"Cookie": "_token=x"}, {"Authorization": "Basic YWRtaW46YWRtaW4="}):
        answer = httpx.get(f"{server.url}/firnline/api/pipelines", headers=headers, trust_env=False, timeout=120)
        assert answer.status_code in (401, 403), headers


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_whoever_asks(callers: dict[str, httpx.Client], name: str) -> None:
    for path in (f"api/pipelines/{name}", f"api/pipelines/{name}/storage", f"static/{name}", f"static/..%2f{name}"):
        assert callers["anonymous"].get(path).status_code in (401, 404), path
        assert callers["admin"].get(path).status_code in (400, 404), path
    sent = callers["admin"].post(f"api/pipelines/{name}/release", json={"hold": name})
    assert sent.status_code in (400, 404, 422)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("collection=rankings&epoch=../../etc/passwd", 400),
        ("collection=../rankings&epoch=2026-01-01", 404),
        ("collection=rankings&epoch=1999-01-01", 400),
        ("collection=rankings&epoch=2026-01-01&part=-1", 422),
        ("collection=rankings&epoch=2026-01-01&part=1e9", 422),
        ("collection=rankings&epoch=2026-01-01&direction=sideways", 422),
        (f"collection={'r' * 300}&epoch=2026-01-01", 422),
        ("", 422),
    ],
)
def test_hostile_questions_are_refused(callers: dict[str, httpx.Client], query: str, status: int) -> None:
    assert callers["admin"].get(f"api/pipelines/slow/lineage?{query}").status_code == status


@pytest.mark.parametrize(("query", "status"), [("epochs=0", 422), ("epochs=10000000", 422), ("upto=yesterday", 400)])
def test_a_part_of_the_epochs_has_bounds(callers: dict[str, httpx.Client], query: str, status: int) -> None:
    assert callers["vera"].get(f"api/pipelines/slow?{query}").status_code == status


def test_what_another_site_could_send_is_refused(callers: dict[str, httpx.Client]) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        sent = callers["admin"].post("api/pipelines/slow/release", content='{"hold": "x"}', headers={"Content-Type": kind})
        assert sent.status_code in (415, 422), kind
    for wrong in ("{", "[]", '{"hold": ""}', '{"hold": 1}', json.dumps({"hold": "x" * 201})):
        sent = callers["admin"].post("api/pipelines/slow/release", content=wrong, headers={"Content-Type": "application/json"})
        assert sent.status_code == 422, wrong


def test_a_hold_is_released_by_those_who_may_and_the_audit_log_says_who(
    project: Project, server: Server, callers: dict[str, httpx.Client]
) -> None:
    graph = project.graph("slow")
    hold(project, graph, lambda _, floor: Hold("reader", "dashboard", floor, "ana"))
    document = callers["vera"].get("api/pipelines/slow").json()
    assert document["may"] == {"edit": False, "repair": False}
    assert [(each["name"], each["owner"]) for each in document["safety"]["holds"] if each["is_releasable"]] == [
        ("dashboard", "ana")
    ]
    refused = callers["vera"].post("api/pipelines/slow/release", json={"hold": "dashboard"})
    assert refused.status_code == 403
    assert [each.name for each in project.control("slow").holds()] == ["dashboard"]
    done = callers["uma"].post("api/pipelines/slow/release", json={"hold": "dashboard"})
    assert (done.status_code, done.json()["released"]["owner"]) == (200, "ana")
    assert project.control("slow").holds() == ()
    hold(project, graph, lambda _, floor: Hold("branch", "what_if", floor, "ana", release="drop it"))
    kept = callers["admin"].post("api/pipelines/slow/release", json={"hold": "what_if"})
    assert (kept.status_code, kept.json()["error"]["code"]) == (400, "BRANCH_HOLDS")
    project.control("slow").release("what_if")
    log = callers["admin"].get(f"{server.url}/api/v2/eventLogs?event=release_hold&dag_id=slow").json()["event_logs"]
    assert {each["owner"] for each in log} >= {"uma"}
    assert any(json.loads(each["extra"]).get("hold") == "dashboard" for each in log)


def test_an_unchanged_answer_is_not_sent_again(callers: dict[str, httpx.Client]) -> None:
    first = callers["vera"].get("api/pipelines/amplab")
    again = callers["vera"].get("api/pipelines/amplab", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = callers["uma"].get("api/pipelines/amplab")
    assert other.headers["etag"] != first.headers["etag"]  # what one may do is another's answer


def test_a_viewer_cannot_start_a_repair(server: Server, callers: dict[str, httpx.Client]) -> None:
    sent = {"logical_date": None, "conf": {"collection": "race"}}
    for name, status in {"anonymous": 401, "vera": 403}.items():
        assert callers[name].post(f"{server.url}/api/v2/dags/firnline_repair/dagRuns", json=sent).status_code == status
