"""Calls to Airflow, answered by a small server that says what Airflow says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from firnline.airflow import api
from firnline.airflow.api import Api, is_serving_tasks
from firnline.errors import FirnlineError

Answer = tuple[int, dict[str, Any]]

LOCKED: Answer = (500, {"detail": {"reason": "Database error", "orig_error": "hidden"}})
BACKFILL_LOCKED: Answer = (
    503,
    {"detail": "Database is locked. Backfill creation is not supported on SQLite."},
)
BROKEN: Answer = (500, {"detail": "Internal Server Error"})
DONE: Answer = (200, {"dag_run_id": "again"})


class Airflow(ThreadingHTTPServer):
    """Gives its answers in turn, the last one for ever, to whoever has a token."""

    answers: list[Answer]
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Airflow

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/auth/token":
            return self._say((201, {"access_token": "secret"}))
        self.server.asked.append(self.path)
        answers = self.server.answers
        return self._say(answers.pop(0) if len(answers) > 1 else answers[0])

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            return self._say(self.server.answers[0])
        return self._say((200 if self.path == "/execution/health" else 404, {}))

    def _say(self, answer: Answer) -> None:
        body = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Airflow]:
    monkeypatch.setattr(api, "_PAUSE", 0.0)
    with Airflow(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def trigger(airflow: Airflow) -> str:
    with Api(f"http://127.0.0.1:{airflow.server_port}", "admin", "secret") as client:
        return client.trigger("web", None)


@pytest.mark.parametrize("runs", [[], [{"dag_run_id": "one"}]])
def test_a_dag_has_run_or_not(airflow: Airflow, runs: list[dict[str, str]]) -> None:
    airflow.answers = [(200, {"dag_runs": runs, "total_entries": len(runs)})]
    with Api(f"http://127.0.0.1:{airflow.server_port}", "admin", "secret") as client:
        assert client.has_runs("web") is bool(runs)


def test_what_airflow_could_not_write_is_asked_for_again(airflow: Airflow) -> None:
    airflow.answers = [LOCKED, BACKFILL_LOCKED, LOCKED, DONE]
    assert trigger(airflow) == "again"
    assert airflow.asked == ["/api/v2/dags/web/dagRuns"] * 4


def test_a_database_that_stays_locked_is_told_in_the_end(airflow: Airflow) -> None:
    airflow.answers = [LOCKED]
    with pytest.raises(FirnlineError, match=r"Airflow answered 500 to POST dags/web/dagRuns: .*Database error"):
        trigger(airflow)


def test_another_error_of_airflow_is_told_at_once(airflow: Airflow) -> None:
    airflow.answers = [BROKEN, DONE]
    with pytest.raises(FirnlineError, match="Airflow answered 500"):
        trigger(airflow)
    assert len(airflow.asked) == 1


def test_the_server_of_the_tasks_is_there_once_it_answers(airflow: Airflow) -> None:
    assert is_serving_tasks(airflow.server_port)
    assert not is_serving_tasks(1)
