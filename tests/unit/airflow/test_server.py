"""What the server starts, in which order, and what it tells; its components are recorded, not run."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from firnline.airflow import server
from firnline.airflow.api import Api
from firnline.airflow.home import Home
from firnline.airflow.server import Server, is_engine_fit
from firnline.errors import FirnlineError
from firnline.settings import Settings


class Recorded:
    """A component that works at once."""

    def __init__(self, name: str, command: list[str], log: Path, environment: dict[str, str], events: list[str]) -> None:
        self.name = name
        self.events = events
        events.append(f"start {name}")

    def code(self) -> int | None:
        return None

    def wait(self, seconds: float) -> int:
        return 0

    def ask_to_stop(self) -> None:
        pass

    def stop(self) -> None:
        self.events.append(f"stop {self.name}")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "firnline.toml").write_text("")
    return Settings.load(tmp_path)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def is_healthy(api: Api, *parts: str) -> bool:
        found.append(f"ask {' '.join(parts)}")
        return found.count(found[-1]) > 1  # not at the first time

    def is_serving_tasks(port: int) -> bool:
        found.append("ask task-server")
        return found.count(found[-1]) > 1

    monkeypatch.setattr(server, "Component", lambda *arguments: Recorded(*arguments, found))
    monkeypatch.setattr(Api, "is_healthy", is_healthy)
    monkeypatch.setattr(server, "is_serving_tasks", is_serving_tasks)
    return found


def test_nothing_that_runs_tasks_starts_before_the_servers_answer(settings: Settings, events: list[str]) -> None:
    with Server(settings, tell=events.append):
        pass
    assert events == [
        "Airflow is starting ...",
        "start migration",
        "start api-server",
        "start task-server",
        "ask metadatabase",
        *["ask metadatabase", "ask task-server"] * 2,
        "start scheduler",
        "start dag-processor",
        *["ask metadatabase scheduler dag_processor"] * 2,
        "Ending Airflow ...",
        "stop scheduler",
        "stop api-server",
        "stop task-server",
        "stop dag-processor",
    ]


def test_with_a_triggerer_airflow_is_healthy_once_that_is(settings: Settings, events: list[str]) -> None:
    with Server(settings, triggerer=True):
        assert events[-1] == "ask metadatabase scheduler dag_processor triggerer"


def test_a_second_server_is_refused_with_the_address_of_the_first_before_it_tells_anything(
    settings: Settings, events: list[str]
) -> None:
    refusal = pytest.raises(FirnlineError, match=r"already runs on .* at http://127\.0\.0\.1:8080 \(started by process \d+\)")
    with Home(settings).owned("http://127.0.0.1:8080"), refusal:
        Server(settings, tell=events.append).__enter__()
    assert events == []


def test_secrets_are_long_enough_for_sha512(settings: Settings) -> None:
    home = Home(settings)
    home.path.mkdir(parents=True)
    home.prepare()
    config = configparser.RawConfigParser()
    config.read(home.path / "airflow.cfg")
    assert len(config["api"]["secret_key"]) >= 64
    assert len(config["api_auth"]["jwt_secret"]) >= 64


def test_an_engine_is_for_this_machine_and_where_nobody_says_otherwise(settings: Settings) -> None:
    assert is_engine_fit(settings, {})
    assert not is_engine_fit(settings, {"AIRFLOW_CONN_SPARK_DEFAULT": "{}"})
    assert not is_engine_fit(settings.model_copy(update={"spark_master": "spark://there:7077"}), {})


def test_the_engine_is_ended_after_airflow(settings: Settings, events: list[str]) -> None:
    with Server(settings, engine=True):
        events.clear()
    assert events[0] == "stop scheduler"
    assert events[-1] == "stop engine"
