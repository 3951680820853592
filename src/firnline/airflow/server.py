"""Airflow for one project, from nothing, for as long as a ``with`` block lasts.

On exit, on an exception, on Ctrl-C, on SIGTERM, and when this process is killed outright, every process that was started goes
too: components, the workers they fork, the Spark drivers of running tasks. ``warden`` sees to that.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from firnline.airflow import warden
from firnline.airflow.api import Api, is_serving_tasks
from firnline.airflow.home import CONNECTION, USER, Home
from firnline.engine.server import Engine, supervisor_command
from firnline.errors import FirnlineError
from firnline.settings import Settings

AIRFLOW = (sys.executable, "-m", "airflow")
PRELOADED = (sys.executable, "-m", "firnline.airflow.preloaded")
COMPONENTS = {
    "api-server": ["api-server", "--apps", "core"],
    "task-server": ["api-server", "--apps", "execution", "--port", "{task_port}"],
    "scheduler": ["scheduler", "--skip-serve-logs"],  # task logs are files of this machine; its log server has a fixed port
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
"""People and tasks have a server each. Airflow writes the audit log of people's calls on the event loop. In the same process, a
task's call that holds SQLite's write lock could not commit meanwhile, as that needs the loop: all would wait until a timeout.
"""

SERVERS = ("api-server", "task-server")

USUAL_PORT = 8080
"""Where people expect Airflow."""

_MIGRATION_SECONDS = 300
_START_SECONDS = 180
_SETTLED_SECONDS = 30


class Component:
    """One command under a warden, with its output in a file."""

    def __init__(self, name: str, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.command = command
        self.log = log
        self._started = time.monotonic()
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", warden.__file__, str(log), *command],
            stdin=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def code(self) -> int | None:
        """The exit code, once it ended."""
        return self._warden.poll()

    def is_settled(self) -> bool:
        """Whether it has run for a while, so that an end now comes from what it met and not from what it is."""
        return time.monotonic() - self._started > _SETTLED_SECONDS

    def wait(self, seconds: float) -> int | None:
        """The exit code, or nothing when it still runs after that time."""
        try:
            return self._warden.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def ask_to_stop(self) -> None:
        """Begin to end it and all that came out of it."""
        assert self._warden.stdin is not None
        self._warden.stdin.close()

    def stop(self) -> None:
        """End it and all that came out of it."""
        self.ask_to_stop()
        if self.wait(warden.GRACE + 5) is None:
            self._warden.kill()
            self._warden.wait()
        warden.end_family(self._warden.pid, 0)  # nobody is left, unless the warden itself was killed

    def last_lines(self) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Server:
    """A running Airflow. Use it as a context manager.

    Args:
        settings: The project's settings.
        port: The port of the web page and API on the loopback address; any free one by default.
        triggerer: Whether to start one. No task of ours is deferred, but Airflow's home page misses it.
        engine: Whether to start the project's engine beside it, for its tasks, where ``is_engine_fit`` and none runs already.
        tell: Called with a sentence when it starts and when it begins to end.
    """

    def __init__(
        self,
        settings: Settings,
        port: int | None = None,
        *,
        triggerer: bool = False,
        engine: bool = False,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        is_warm = engine and is_engine_fit(settings, os.environ)
        self.home = Home(settings, is_warm=is_warm)
        self._engine = Engine(settings) if is_warm else None
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._task_port = _free_port()
        self.user = USER
        self._tell = tell
        self._workers = [name for name in COMPONENTS if name not in SERVERS and (triggerer or name != "triggerer")]
        self._components: dict[str, Component] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Server:
        try:
            self._stack.enter_context(self.home.owned(self.url))
            if not _is_free(self.port):
                raise FirnlineError("PREREQUISITE", f"port {self.port} is taken", todo="Choose another one with --port.")
            self._stack.enter_context(_handling(_leave, signal.SIGTERM, signal.SIGHUP))  # so that all is ended
            self._tell("Airflow is starting ...")
            self.home.prepare()
            self._start_engine()
            self._stack.callback(self._stop)
            self._stack.callback(self._tell, "Ending Airflow ...")
            self.password = self.home.password()
            self.api = self._stack.enter_context(Api(self.url, self.user, self.password))
            self._migrate()
            self._since = time.time()
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def check(self) -> None:
        """Start a component that died again, as a service manager would; raise when it died soon after its start.

        Airflow's scheduler ends with an error when, for one, somebody deletes a run that it is looking at.
        """
        for component in list(self._components.values()):
            if (code := component.code()) is None:
                continue
            if not component.is_settled():
                raise FirnlineError(
                    "PREREQUISITE",
                    f"Airflow's {component.name} ended with code {code}; the end of {component.log}:\n{component.last_lines()}\n",
                )
            self._start(component.name, component.command)

    def wait_until_healthy(self) -> None:
        """Wait until every component says that it works."""
        parts = ["metadatabase", *(name.replace("-", "_") for name in self._workers)]
        self.wait("Airflow to be healthy", lambda: self.api.is_healthy(*parts), _START_SECONDS)

    def wait_until_parsed(self, dag: str, seconds: float = _START_SECONDS) -> None:
        """Wait until the DAG was parsed since the server was started; an import error is raised as an error."""

        def is_parsed() -> bool:
            for file, trace in self.api.import_errors(self._since):
                raise FirnlineError("PIPELINE_UNLOADABLE", f"Airflow cannot load {file}:\n{trace.strip()}\n")
            return self.api.parsed_at(dag) > self._since

        self.wait(f"Airflow to parse the DAG {dag!r}", is_parsed, seconds)

    def wait(self, what: str, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait until something is so; raise when a component dies meanwhile or the time is over."""
        deadline = time.monotonic() + seconds
        while not is_so():
            self.check()
            if time.monotonic() > deadline:
                raise FirnlineError("PREREQUISITE", f"waited {seconds:.0f} s for {what}; logs are in {self.home.logs}")
            time.sleep(0.25)

    def _migrate(self) -> None:
        version = importlib.metadata.version("apache-airflow")
        marker = self.home.path / "migrated"
        if self.home.database is not None and self.home.database.exists() and marker.exists() and marker.read_text() == version:
            return
        self._start("migration", [*AIRFLOW, "db", "migrate"])
        code = self._components["migration"].wait(_MIGRATION_SECONDS)
        if code != 0:
            self.check()
            raise FirnlineError("PREREQUISITE", f"Airflow's database was not ready after {_MIGRATION_SECONDS} s")
        del self._components["migration"]
        marker.write_text(version)

    def _begin(self) -> None:
        for name in SERVERS:
            self._start_anew(name)
        # A task that does not reach its server loses a try.
        self.wait("Airflow's servers to answer", self._is_answering, _START_SECONDS)
        for name in self._workers:
            self._start_anew(name)
        self.wait_until_healthy()

    def _is_answering(self) -> bool:
        return self.api.is_healthy("metadatabase") and is_serving_tasks(self._task_port)

    def _start_anew(self, name: str) -> None:
        self._log(name).unlink(missing_ok=True)
        words = [word.format(task_port=self._task_port) for word in COMPONENTS[name]]
        self._start(name, [*(PRELOADED if name == "scheduler" and self._engine else AIRFLOW), *words])

    def _start(self, name: str, command: list[str]) -> None:
        environment = self.home.environment(self.port, self._task_port)
        self._components[name] = Component(name, command, self._log(name), environment)

    def _start_engine(self) -> None:
        """Its supervisor sees to it from then on; should it give up, tasks start drivers of their own and say why."""
        if self._engine is None or self._engine.state() is not None:
            return
        settings = self._engine.settings
        engine = Component("engine", supervisor_command(settings), self._log("engine"), {**os.environ})
        self._stack.callback(engine.stop)  # after Airflow: tasks that are ended still work on it

    def _log(self, name: str) -> Path:
        return self.home.logs / f"{name}.log"

    def _stop(self) -> None:
        with _handling(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if scheduler := self._components.pop("scheduler", None):
                scheduler.stop()  # first and alone: the tasks it ends report their state to the task-server
            for component in self._components.values():
                component.ask_to_stop()
            for component in self._components.values():
                component.stop()
            self._components.clear()


@contextmanager
def _handling(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def is_engine_fit(settings: Settings, environment: Mapping[str, str]) -> bool:
    """Whether tasks are to share an engine: on this machine, unless somebody says otherwise. On a cluster it would keep cores."""
    return settings.spark_master.startswith("local") and CONNECTION not in environment


def usual_port() -> int:
    """``USUAL_PORT``, or a free one where that is taken."""
    return USUAL_PORT if _is_free(USUAL_PORT) else _free_port()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
