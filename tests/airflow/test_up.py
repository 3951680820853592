"""``firnline up`` owns its home, and takes everything with it, also when it is killed outright."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from firnline.airflow.warden import GRACE
from tests.airflow.conftest import processes_of, until
from tests.project import make_project

pytestmark = pytest.mark.airflow

UP = [sys.executable, "-c", "from firnline.cli import main; main()", "up"]


def test_up_serves_until_it_is_killed_and_then_nothing_is_left(environment: dict[str, str], tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "dags").mkdir()
    home = project.settings.airflow_home
    process = subprocess.Popen(UP, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = ""
        while "Ctrl-C" not in told:
            line = process.stdout.readline()
            assert line, f"ended early: {told}"
            told += line
        url = next(word for word in told.split() if word.startswith("http://127.0.0.1:"))
        password = json.loads((home / "passwords.json").read_text())["admin"]
        assert password not in told, "which may be a log"
        assert f"password in {home / 'passwords.json'}" in told

        assert httpx.get(f"{url}/api/v2/dags", trust_env=False).status_code == 401
        login = {"username": "admin", "password": password}
        assert httpx.post(f"{url}/auth/token", json=login, trust_env=False).status_code == 201
        assert httpx.post(f"{url}/auth/token", json={**login, "password": "x"}, trust_env=False).status_code == 401
        assert {(home / name).stat().st_mode & 0o777 for name in ("airflow.cfg", "passwords.json")} == {0o600}

        health = httpx.get(f"{url}/api/v2/monitor/health", trust_env=False).json()
        assert {name: part["status"] for name, part in health.items()} == dict.fromkeys(health, "healthy")
        assert "triggerer" in health

        second = subprocess.run(UP, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert f"PREREQUISITE: Airflow already runs on {home} at {url} (started by process {process.pid})" in second.stderr
        assert second.stdout == ""

        started = processes_of(home)
        assert len(started) >= 10  # five components, each under a warden
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: processes_of(home) == {} and not any(Path(f"/proc/{pid}").exists() for pid in started), GRACE + 10)
