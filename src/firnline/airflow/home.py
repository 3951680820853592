"""Airflow's home of one project: secrets made once, configuration by environment, one owner at a time.

Secrets are in two files that only their owner can read (``airflow.cfg``, ``passwords.json``), never in the environment: a Spark
driver inherits the environment of the task that starts it.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firnline.airflow.connection import SCHEME
from firnline.errors import FirnlineError
from firnline.settings import Settings

USER = "admin"
CONNECTION = "AIRFLOW_CONN_SPARK_DEFAULT"
PARALLELISM = min(4, max(2, os.cpu_count() or 2))
"""Tasks at once. A task wants all cores for its Spark: more of them would only make each one later."""

CONNECT_ARGS = {"timeout": 60}
"""Airflow's components share one SQLite file: whoever finds it locked waits, instead of failing after five seconds."""


_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
"""Images for containers set it. Every process would compile Airflow, PySpark and pandas again."""


class Home:
    """The folder ``settings.airflow_home`` and what Airflow finds there."""

    def __init__(self, settings: Settings, *, is_warm: bool = False) -> None:
        self.settings = settings
        self._master = SCHEME if is_warm else settings.spark_master
        self.path = settings.airflow_home
        self.database = None if settings.airflow_uri else self.path / "airflow.db"
        self.logs = self.path / "logs"
        self.passwords = self.path / "passwords.json"

    @contextmanager
    def owned(self, url: str) -> Iterator[None]:
        """Hold the home, for an Airflow at that address; refused while another process holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "server.lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise FirnlineError(
                    "PREREQUISITE",
                    f"Airflow already runs on {self.path} {file.read()}",
                    todo="End that 'firnline up' or 'firnline demo' first, or use its web page.",
                ) from None
            file.truncate(0)
            file.write(f"at {url} (started by process {os.getpid()})")
            file.flush()
            yield

    def prepare(self) -> None:
        """Make what is missing: folders, secrets, one user and its password; more users may be written beside it."""
        self.logs.mkdir(parents=True, exist_ok=True)
        fernet = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        _write_once(
            self.path / "airflow.cfg",
            f"[core]\nfernet_key = {fernet}\nsimple_auth_manager_users = {USER}:admin\n"
            f"[api]\nsecret_key = {secrets.token_urlsafe(64)}\n"
            f"[api_auth]\njwt_secret = {secrets.token_urlsafe(64)}\n",
        )
        _write_once(self.passwords, json.dumps({USER: secrets.token_urlsafe(12)}) + "\n")

    def password(self) -> str:
        """The password of ``USER``."""
        return str(json.loads(self.passwords.read_text())[USER])

    def environment(self, port: int, task_port: int) -> dict[str, str]:
        """What Airflow's components need to know, on top of this process's own environment; tasks call the second port."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW__") and name != _UNCOMPILED
        }
        settings = self._options(port, task_port)
        options = {f"AIRFLOW__{name.replace('.', '__').upper()}": str(value) for name, value in settings.items()}
        master = json.dumps({"conn_type": "spark", "host": self._master})  # a URI with brackets is not parsed
        return {
            CONNECTION: master,
            **inherited,
            **options,
            "AIRFLOW_HOME": str(self.path),
            "FIRNLINE_ROOT": str(self.settings.root),
            "PATH": _joined(Path(sys.executable).parent, "PATH"),
            "PYTHONPATH": _joined(self.settings.root, "PYTHONPATH"),
            "NO_PROXY": ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1,localhost"))),
            "no_proxy": ",".join(filter(None, (os.environ.get("no_proxy"), "127.0.0.1,localhost"))),
            "SCARF_ANALYTICS": "false",
            "DO_NOT_TRACK": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def _options(self, port: int, task_port: int) -> dict[str, object]:
        root, url = self.settings.root, f"http://127.0.0.1:{port}"
        return {
            "core.dags_folder": root / "dags",
            "core.plugins_folder": root / "plugins",
            "core.load_examples": False,
            "core.executor": "LocalExecutor",
            "core.parallelism": PARALLELISM,
            "core.hostname_callable": "socket.gethostname",
            "core.simple_auth_manager_passwords_file": self.passwords,
            "core.execution_api_server_url": f"http://127.0.0.1:{task_port}/execution/",
            "core.min_serialized_dag_update_interval": 3,
            "core.dagbag_import_timeout": 120,
            **self._database(),
            "api.host": os.environ.get("AIRFLOW__API__HOST", "127.0.0.1"),  # a container's loopback is nobody else's
            "api.port": port,
            "api.base_url": url,
            "api.workers": 1,
            "scheduler.scheduler_idle_sleep_time": 0.25,
            "scheduler.task_instance_heartbeat_timeout": 60,
            "workers.min_heartbeat_interval": 2,  # also how long a worker lingers after its task
            "workers.execution_api_timeout": 30,  # the server's first answer takes longer than five seconds on a busy machine
            "dag_processor.min_file_process_interval": 30,  # a DAG file that changed is parsed at the next refresh
            "dag_processor.refresh_interval": 5,
            "dag_processor.parsing_processes": 1,
            "dag_processor.dag_file_processor_timeout": 180,
            "logging.base_log_folder": self.logs,
            "logging.colored_console_log": False,
            "usage_data_collection.enabled": False,
        }

    def _database(self) -> dict[str, object]:
        if self.database is None:
            uri = self.settings.airflow_uri
            return {"database.sql_alchemy_conn": uri, "database.sql_alchemy_conn_async": uri}
        connect_args = f"{__name__}.CONNECT_ARGS"
        return {
            "database.sql_alchemy_conn": f"sqlite:///{self.database}",
            "database.sql_alchemy_connect_args": connect_args,
            "database.sql_alchemy_connect_args_async": connect_args,
        }


def _joined(first: Path, variable: str) -> str:
    return os.pathsep.join(filter(None, (str(first), os.environ.get(variable))))


def _write_once(path: Path, text: str) -> None:
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.rename(path)
