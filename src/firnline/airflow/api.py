"""A client of Airflow's REST API (v2): milliseconds a call. Airflow's command line takes seconds and meets a locked database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal

import httpx

from firnline.airflow.home import CONNECT_ARGS
from firnline.errors import FirnlineError

Reprocess = Literal["none", "failed", "completed"]

_TRIES = 20
_PAUSE = 0.5
_TIMEOUT = 2 * CONNECT_ARGS["timeout"]
"""Longer than Airflow itself waits for a locked SQLite: its answer then says so, and the call is made again."""

FINISHED = frozenset({"success", "failed"})


@dataclass(frozen=True, slots=True)
class Run:
    """A DAG run; ``lower`` and ``upper`` bound its data interval, where it has one."""

    id: str
    state: str
    kind: str
    lower: datetime | None
    upper: datetime | None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task instance; ``seconds`` is the duration of its latest try."""

    id: str
    state: str
    attempt: int
    start: datetime | None
    end: datetime | None
    seconds: float | None


class Api:
    """Talks to one Airflow as one user. Use it as a context manager."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT, trust_env=False)

    def __enter__(self) -> Api:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def is_healthy(self, *parts: str) -> bool:
        """Whether these parts all say that they work: ``metadatabase``, ``scheduler``, ``dag_processor``, ``triggerer``."""
        try:
            answer = self._client.get("/api/v2/monitor/health")
        except httpx.TransportError:
            return False
        told = answer.json() if answer.status_code == 200 else {}
        return all((told.get(part) or {}).get("status") == "healthy" for part in parts)

    def import_errors(self, since: float) -> Iterator[tuple[str, str]]:
        """File and traceback of every DAG file that Airflow could not load after ``since`` (seconds since 1970)."""
        for error in self._pages("importErrors", "import_errors"):
            moment = _moment(error["timestamp"])
            if moment and moment.timestamp() > since:
                yield error["filename"], error["stack_trace"]

    def parsed_at(self, dag: str) -> float:
        """When the DAG was last parsed, in seconds since 1970; 0 when it never was."""
        answer = self._call("GET", f"dags/{dag}", missing={})
        moment = _moment(answer.get("last_parsed_time"))
        return moment.timestamp() if moment else 0.0

    def next_date(self, dag: str) -> datetime | None:
        """Where the interval starts that the scheduler will run next; nothing when it has come to the end."""
        return _moment(self._call("GET", f"dags/{dag}/details")["next_dagrun_logical_date"])

    def dags(self) -> tuple[str, ...]:
        """The ids of all DAGs."""
        return tuple(dag["dag_id"] for dag in self._pages("dags", "dags"))

    def unpause(self, dag: str) -> None:
        """Let the scheduler create and run the DAG's runs."""
        self._call("PATCH", f"dags/{dag}", json={"is_paused": False})

    def has_runs(self, dag: str) -> bool:
        """Whether the DAG has ever run."""
        return bool(self._call("GET", f"dags/{dag}/dagRuns", params={"limit": 1})["dag_runs"])

    def pause(self, dag: str) -> None:
        """Keep the scheduler from creating and running the DAG's runs."""
        self._call("PATCH", f"dags/{dag}", json={"is_paused": True})

    def runs(self, dag: str) -> tuple[Run, ...]:
        """All runs of the DAG, by data interval."""
        entries = (_run(entry) for entry in self._pages(f"dags/{dag}/dagRuns", "dag_runs"))
        return tuple(sorted(entries, key=lambda run: (run.lower.timestamp() if run.lower else 0.0, run.id)))

    def run(self, dag: str, run: str) -> Run:
        """One run."""
        return _run(self._call("GET", f"dags/{dag}/dagRuns/{run}"))

    def tasks(self, dag: str, run: str) -> tuple[Task, ...]:
        """The task instances of a run."""
        return tuple(
            Task(
                id=entry["task_id"],
                state=entry["state"] or "waiting",
                attempt=entry["try_number"],
                start=_moment(entry["start_date"]),
                end=_moment(entry["end_date"]),
                seconds=entry["duration"],
            )
            for entry in self._pages(f"dags/{dag}/dagRuns/{run}/taskInstances", "task_instances")
        )

    def returned(self, dag: str, run: str, task: str) -> str | None:
        """What the task returned, if anything."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        value = self._call("GET", path, missing={"value": None})["value"]
        return None if value is None else str(value).strip('"')

    def log(self, dag: str, run: str, task: str, attempt: int) -> tuple[str, ...]:
        """The log of one try of a task, line by line; an exception's type, message and causes are lines, too."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{attempt}"
        answer = self._call("GET", path, params={"full_content": "true"}, missing={"content": []})
        return tuple(line for entry in answer["content"] for line in _lines(entry))

    def trigger(
        self,
        dag: str,
        logical_date: datetime | None,
        interval: tuple[datetime, datetime] | None = None,
        run: str | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> str:
        """Start a run by hand. Airflow gives it the interval that *ends* at the logical date, unless one is named."""
        body: dict[str, Any] = {"logical_date": logical_date.isoformat() if logical_date else None, "dag_run_id": run}
        if conf:
            body["conf"] = dict(conf)
        if interval:
            body |= {"data_interval_start": interval[0].isoformat(), "data_interval_end": interval[1].isoformat()}
        return str(self._call("POST", f"dags/{dag}/dagRuns", json=body)["dag_run_id"])

    def backfill(
        self,
        dag: str,
        first: datetime,
        last: datetime,
        *,
        backwards: bool = False,
        max_active_runs: int = 1,
        reprocess: Reprocess = "none",
        conf: Mapping[str, Any] | None = None,
    ) -> int:
        """Run the intervals that start between ``first`` and ``last``, both included."""
        body = {
            "dag_id": dag,
            "from_date": first.isoformat(),
            "to_date": last.isoformat(),
            "run_backwards": backwards,
            "max_active_runs": max_active_runs,
            "reprocess_behavior": reprocess,
            "dag_run_conf": dict(conf or {}),
        }
        return int(self._call("POST", "backfills", json=body)["id"])

    def is_backfilled(self, backfill: int) -> bool:
        """Whether all runs of the backfill have ended."""
        return self._call("GET", f"backfills/{backfill}")["completed_at"] is not None

    def clear(self, dag: str, run: str, tasks: tuple[str, ...] = ()) -> None:
        """Let tasks of a run (all by default) run again."""
        body = {"dry_run": False, "dag_run_id": run, "only_failed": False, "reset_dag_runs": True}
        if tasks:
            body["task_ids"] = list(tasks)
        self._call("POST", f"dags/{dag}/clearTaskInstances", json=body)

    def fail(self, dag: str, run: str, task: str) -> None:
        """Mark a task as failed; a running one is ended."""
        self._call("PATCH", f"dags/{dag}/dagRuns/{run}/taskInstances/{task}", json={"new_state": "failed"})

    def forget(self, dag: str, run: str) -> None:
        """Delete Airflow's record of a run. The log keeps what it did."""
        self._call("DELETE", f"dags/{dag}/dagRuns/{run}")

    def _pages(self, path: str, field: str) -> Iterator[dict[str, Any]]:
        offset, total = 0, 1
        while offset < total:
            answer = self._call("GET", path, params={"limit": 100, "offset": offset})
            entries = answer[field]
            yield from entries
            total = answer["total_entries"] if entries else 0
            offset += len(entries)

    def _call(self, method: str, path: str, *, missing: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        for _ in range(_TRIES):
            if "Authorization" not in self._client.headers:
                self._authenticate()
            answer = self._client.request(method, f"/api/v2/{path}", **options)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                del self._client.headers["Authorization"]
            elif _is_locked(answer):
                time.sleep(_PAUSE)
            else:
                break
        if answer.status_code == httpx.codes.NOT_FOUND and missing is not None:
            return missing
        if answer.is_error:
            raise FirnlineError(
                "PREREQUISITE",
                f"Airflow answered {answer.status_code} to {method} {path}: {answer.text[:500]}",
                todo="Airflow's own logs say more.",
            )
        document: dict[str, Any] = answer.json() if answer.content else {}
        return document

    def _authenticate(self) -> None:
        answer = self._client.post("/auth/token", json=self._login)
        answer.raise_for_status()
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"


def is_serving_tasks(port: int) -> bool:
    """Whether the server that tasks talk to answers at that port."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/execution/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _is_locked(answer: httpx.Response) -> bool:
    """Whether SQLite was locked for too long. Airflow has undone the call then; most of its calls only say "Database error"."""
    is_undone = answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "Database error" in answer.text
    return is_undone or answer.status_code == httpx.codes.SERVICE_UNAVAILABLE


def _run(entry: dict[str, Any]) -> Run:
    return Run(
        id=entry["dag_run_id"],
        state=entry["state"],
        kind=entry["run_type"],
        lower=_moment(entry["data_interval_start"]),
        upper=_moment(entry["data_interval_end"]),
        start=_moment(entry["start_date"]),
        end=_moment(entry["end_date"]),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _lines(entry: str | dict[str, Any]) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
        return
    yield str(entry.get("event", ""))
    for error in entry.get("error_detail") or ():
        yield f"{error.get('exc_type')}: {error.get('exc_value')}"
