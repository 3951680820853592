"""Sinks in Airflow: tasks after ``complete``; the database is a connection, and its password is in no log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.airflow.test_parsing import PARSE, run
from tests.project import make_project
from tests.sinking import HISTORY, Sinking, made

PIPELINE = """
    import firnline as fl

    shop = fl.Pipeline("shop", schedule="@daily", start="2026-01-01")

    @shop.source(keys=["id"])
    def orders(epoch): ...

    @shop.sink()
    def complete(epoch, orders):
        \"\"\"Tell others | about it.\"\"\"

    @shop.sink()
    def archive(epoch, orders):
        return fl.to_files(orders, "out")
"""
_TASK = """
import sys
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from firnline.airflow.operator import SinkOperator
try:
    print(SinkOperator(task_id="sink", root=sys.argv[1], pipeline="web", sink=sys.argv[2]).execute({}))
except AirflowException as error:
    print(type(error).__name__, error)
"""


def test_every_sink_is_a_task_after_complete(environment: dict[str, str], tmp_path: Path) -> None:
    project = make_project(tmp_path, shop=PIPELINE)
    (tmp_path / "dags").mkdir()
    file = tmp_path / "dags" / "shop.py"
    file.write_text('from firnline.airflow import pipeline_dag\n\ndag = pipeline_dag("shop")\n')
    project.graph("shop")
    found = run(PARSE, file, environment, tmp_path / "home")
    assert found["edges"] == {"orders": [], "_complete": ["orders"], "complete": ["_complete"], "archive": ["_complete"]}
    assert found["engines"] == []
    assert "| `complete` | sink | `orders` | Tell others \\| about it. |" in found["doc"]


def test_a_task_delivers_what_waits_to_a_connection_and_is_red_without_a_word_of_its_password(
    environment: dict[str, str], tmp_path: Path, postgres_uri: Callable[[], str]
) -> None:
    uri = postgres_uri()
    there = conninfo_to_dict(uri)
    connection = {
        "conn_type": "postgres",
        "host": there["host"],
        "port": int(str(there["port"])),
        "login": there["user"],
        "password": "s3cret",
        "schema": there["dbname"],
        "extra": {"application_name": "reports"},
    }
    sinking = Sinking.at(made(tmp_path))
    sinking.follow(*HISTORY[:2])

    def task(sink: str, **more: object) -> str:
        known = {"AIRFLOW_CONN_REPORTS": json.dumps({**connection, **more})} if sink == "table" else {}
        command = [sys.executable, "-c", _TASK, str(tmp_path), sink]
        everything = {**environment, "AIRFLOW_HOME": str(tmp_path / "home"), **known}
        done = subprocess.run(command, cwd=tmp_path, env=everything, capture_output=True, text=True)
        assert "s3cret" not in done.stdout + done.stderr
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    assert task("table", port=1).startswith("AirflowException table: SINK_UNAVAILABLE")
    assert task("table", extra={"odd": "x"}).startswith("AirflowFailException table: SINK_REFUSED")
    assert task("table") == "['1']"
    with psycopg.connect(uri) as database:
        assert database.execute("SELECT count(*) FROM visits").fetchone() == (len(sinking.state(2)),)
    (tmp_path / "broken").touch()
    assert task("tell").startswith("AirflowException tell: SINK_FAILED")
    (tmp_path / "broken").unlink()
    assert task("tell") == "['1']"
