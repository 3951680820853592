"""What spark-submit is told for each kind of master: the provider's own hook makes the command. Nothing is submitted."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from firnline.airflow.connection import Cold, check_provider, where
from firnline.airflow.operator import AdvanceOperator
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.project import Project
from tests.project import compiled, make_project

KUBERNETES = "k8s://https://kubernetes.example:6443"
SETTINGS = """
    catalog_uri = "postgresql+psycopg://me:hidden@db/lake"
    [spark_conf]
    "spark.kubernetes.container.image" = "example/firnline:1"
    "spark.yarn.maxAppAttempts" = "1"
    "spark.sql.autoBroadcastJoinThreshold" = "1"
"""
WEB = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"])
    def visits(epoch): ...
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a submission leaves in the environment goes again."""
    for name in ("PATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "FIRNLINE_ROOT"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path, SETTINGS, web=WEB)


@pytest.fixture
def plain(tmp_path: Path) -> Project:
    """One whose warehouse is there."""
    return compiled(make_project(tmp_path, web=WEB), "web")


def submitted(project: Project, monkeypatch: pytest.MonkeyPatch, host: str, **extra: Any) -> tuple[list[str], dict[str, str]]:
    """The command, and the settings in it."""
    connection = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    operator = AdvanceOperator(task_id="visits", root=str(project.settings.root), pipeline="web", collection="visits")
    # The provider only asks whether it could reach Kubernetes, through a package that is not installed here.
    monkeypatch.setattr("airflow.providers.apache.spark.hooks.spark_submit.kube_client", object(), raising=False)
    place = operator._where(project.settings)
    assert isinstance(place, Cold)
    operator._prepare(project.settings, place)
    command = operator._get_hook()._build_spark_submit_command(str(operator.application))
    conf = [word for flag, word in pairwise(command) if flag == "--conf"]
    return command, dict(word.split("=", 1) for word in conf)


def test_a_standalone_cluster_is_told_where_the_driver_runs_and_nothing_else(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, conf = submitted(project, monkeypatch, "spark://master:7077")
    assert command[:3] == ["spark-submit", "--master", "spark://master:7077"]
    assert "--deploy-mode" not in command
    assert not [key for key in conf if "Env" in key]


@pytest.mark.parametrize("master", ["yarn", KUBERNETES])
def test_a_driver_in_the_task_gets_its_environment_from_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    command, conf = submitted(project, monkeypatch, master)
    assert command[2] == master
    assert not [key for key in conf if "Env" in key]
    assert os.environ["FIRNLINE_ROOT"] == str(project.settings.root)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_yarn_starts_the_driver_with_what_it_needs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    command, conf = submitted(project, monkeypatch, "yarn", **{"deploy-mode": "cluster", "queue": "etl"})
    assert command[command.index("--deploy-mode") + 1] == "cluster"
    assert command[command.index("--queue") + 1] == "etl"
    assert conf["spark.yarn.appMasterEnv.FIRNLINE_ROOT"] == str(project.settings.root)
    assert conf["spark.yarn.appMasterEnv.FIRNLINE_PROFILE"] == "local"
    assert conf["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] == sys.executable
    assert "spark.yarn.appMasterEnv.PATH" not in conf, "another machine has its own"
    assert conf["spark.yarn.maxAppAttempts"] == "1"
    assert "spark.sql.autoBroadcastJoinThreshold" not in conf, "the driver sets it itself"
    assert str(project.settings.root / "spark_jobs" / "advance.py") in command


def test_kubernetes_starts_the_driver_from_the_image(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    command, conf = submitted(project, monkeypatch, KUBERNETES, **{"deploy-mode": "cluster", "namespace": "spark"})
    assert conf["spark.kubernetes.container.image"] == "example/firnline:1"
    assert conf["spark.kubernetes.namespace"] == "spark"
    assert conf["spark.kubernetes.driverEnv.FIRNLINE_ROOT"] == str(project.settings.root)
    assert f"local://{project.settings.root}/spark_jobs/advance.py" in command


@pytest.mark.parametrize("mode", ["client", "cluster"])
@pytest.mark.parametrize("master", ["yarn", KUBERNETES])
def test_no_secret_is_on_the_command_line(project: Project, monkeypatch: pytest.MonkeyPatch, master: str, mode: str) -> None:
    command, _ = submitted(project, monkeypatch, master, **{"deploy-mode": mode})
    assert not [word for word in command if "hidden" in word]


@pytest.mark.parametrize("master", ["spark://master:7077", "local[2]"])
def test_what_spark_does_not_do_is_refused_before_it_is_tried(
    project: Project, monkeypatch: pytest.MonkeyPatch, master: str
) -> None:
    with pytest.raises(FirnlineError, match="BAD_OPTION: Spark starts no Python driver in deploy mode cluster"):
        submitted(project, monkeypatch, master, **{"deploy-mode": "cluster"})
    with pytest.raises(FirnlineError, match="BAD_OPTION: deploy mode 'remote'"):
        submitted(project, monkeypatch, master, **{"deploy-mode": "remote"})


def test_kubernetes_without_an_image_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FirnlineError, match=r"BAD_SETTING: .*spark.kubernetes.container.image"):
        submitted(make_project(tmp_path, web=WEB), monkeypatch, KUBERNETES)


def test_kubernetes_without_its_provider_is_refused() -> None:
    check_provider(Cold("yarn"))
    with pytest.raises(FirnlineError, match=r"PREREQUISITE: .*apache-airflow-providers-cncf-kubernetes"):
        check_provider(Cold(KUBERNETES))


def test_the_provider_and_we_read_a_uri_alike() -> None:
    from airflow.sdk import Connection

    assert where(Connection.from_uri("spark://master:7077", conn_id="c"), "local[*]") == Cold("master")
    assert where(Connection.from_uri("k8s://kubernetes:6443?deploy-mode=cluster", conn_id="c"), "") == Cold(
        "k8s://kubernetes", "cluster"
    )


NOTED = """\
from pathlib import Path
from firnline.runtime.project import Project
from firnline.tables.failures import Failure
failure = Failure("visits", 0, 1, "a", "MISSING_FILE", "MISSING_FILE: visits at 0: none", True, "2999-01-01T00:00:00+00:00")
Project.load(Path({root!r})).failures("web").note(failure)
raise SystemExit(1)
"""


REPORTED = """\
import json, pathlib, sys
report = {{"outcome": "computed", "error": None}}
pathlib.Path(sys.argv[sys.argv.index("--report") + 1]).write_text(json.dumps(report))
"""


def ready(project: Project, monkeypatch: pytest.MonkeyPatch, place: Cold, script: str) -> AdvanceOperator:
    """A task whose spark-submit is a script."""
    root = project.settings.root
    binary = root / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.write_text(f"#!{sys.executable}\n{script.format(root=str(root))}")
    binary.chmod(0o755)
    connection = {"conn_type": "spark", "host": place.master, "extra": {"deploy-mode": place.deploy_mode}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    operator = AdvanceOperator(task_id="visits", root=str(root), pipeline="web", collection="visits")
    operator._prepare(project.settings, place)
    path = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    if place.deploy_mode == "client":
        operator.env_vars = {**(operator.env_vars or {}), "PATH": path}
    return operator


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "the log of visits does not hold the epoch"),
        (NOTED, "MISSING_FILE: visits at 0: none"),
        ("raise SystemExit(1)", "Cannot execute"),
    ],
)
def test_the_outcome_of_a_driver_elsewhere_is_what_logs_and_failures_say(
    plain: Project, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    operator = ready(plain, monkeypatch, Cold("yarn", "cluster"), script)
    with pytest.raises(AirflowException, match=told) as caught:
        operator._submit_elsewhere({}, plain, ["visits"], Epoch(0, 1), None)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_driver_that_yarn_is_asked_about_fails_like_another(plain: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = ready(plain, monkeypatch, Cold("yarn", "cluster"), NOTED.replace("raise SystemExit(1)", ""))
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": "http://127.0.0.1:1"}
    connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    operator._yarn_track_via_rm_api, operator.durable = True, False
    with pytest.raises(AirflowException, match="MISSING_FILE: visits at 0: none"):
        operator._submit_elsewhere({}, plain, ["visits"], Epoch(0, 1), None)


def test_an_epoch_that_is_not_over_waits(tmp_path: Path) -> None:
    compiled(make_project(tmp_path, web=WEB.replace("schedule=1, start=0", 'schedule="@daily", start="2026-01-01"')), "web")
    operator = AdvanceOperator(task_id="visits", root=str(tmp_path), pipeline="web", collection="visits")
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    context = {"data_interval_start": day, "data_interval_end": day + timedelta(days=1), "params": {}}
    with pytest.raises(AirflowException, match=f"visits at {day.date()}: EPOCH_NOT_OVER") as caught:
        operator.execute(context)
    assert not isinstance(caught.value, AirflowFailException), "a retry may find it over"


def test_the_outcome_of_a_driver_in_the_task_is_its_report(plain: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = ready(plain, monkeypatch, Cold("spark://master:7077"), REPORTED)
    assert operator._submit({}, "visits at 0", None) == "computed"
