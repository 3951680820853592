"""``python -m firnline.engine.supervisor ROOT``: keep a project's engine alive until SIGTERM.

A server that dies is started again, on another port and with another token: who took its port meanwhile was sent the old one. One
that keeps dying at once is given up. The first SIGTERM drains: nobody new is let in, and the server ends when the last one has
left. The second ends it now. The server does not outlive this process, however it ends.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from firnline.engine.conf import driver_conf, driver_hash
from firnline.engine.launch import driver_environment, launch_conf
from firnline.engine.server import Engine, State, write_private
from firnline.errors import FirnlineError
from firnline.settings import Settings

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # in the environment: a setting would show to every session
_SETTLED_SECONDS = 20.0
_MOST_FAILURES = 3
_PAUSE = 0.1
_PR_SET_PDEATHSIG = 1

# An abandoned query of a client that was killed ends soon, its session later; a server without memory ends, to be started again.
_OWN = {
    "spark.connect.execute.manager.detachedTimeout": "30s",
    "spark.connect.session.manager.defaultSessionTimeout": "10m",
    "spark.scheduler.mode": "FAIR",
}
_OPTIONS = "spark.driver.extraJavaOptions"
_JAVA = "-XX:+ExitOnOutOfMemoryError"


class Supervisor:
    """One engine's keeper."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine = Engine(settings)
        self._asked = 0
        """How often it was told to end."""

    def run(self) -> int:
        """Keep the engine alive; 0 when it was told to end, 1 when it was given up."""
        with self._engine.owned():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._hear)
            self._engine.log.write_bytes(b"")  # emptied, not removed: what started this process appends to it
            made_by, failures, restarts = driver_hash(self._settings), 0, 0
            while not self._asked and failures < _MOST_FAILURES:
                began = time.monotonic()
                place = (_free_port(), secrets.token_urlsafe(32))
                state = State("starting", os.getpid(), *place, restarts=restarts, driver=made_by)
                self._engine.tell(state)
                server = self._launched(state)
                self._watch(server, state)
                failures = 0 if time.monotonic() - began > _SETTLED_SECONDS else failures + 1
                restarts += 1
        return 0 if self._asked else 1

    def _hear(self, *_: object) -> None:
        self._asked += 1

    def _watch(self, server: subprocess.Popen[bytes], state: State) -> None:
        """Return when the server has ended, by itself or because it was told to."""
        try:
            while server.poll() is None and not self._asked:
                if state.phase == "starting" and _answers(state.port):
                    state = replace(state, phase="ready")
                    self._engine.tell(state)
                time.sleep(_PAUSE)
            if self._asked:
                self._engine.tell(replace(state, phase="draining"))
                while self._asked == 1 and server.poll() is None and not self._engine.is_idle():
                    time.sleep(_PAUSE)
        finally:
            with suppress(ProcessLookupError):
                server.terminate()
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def _launched(self, state: State) -> subprocess.Popen[bytes]:
        settings = self._settings
        properties = self._engine.folder / "spark.properties"
        conf = server_conf(settings, state.port)
        write_private(properties, "".join(f"{key} {_escaped(value)}\n" for key, value in conf.items()))
        environment = {**os.environ, **driver_environment(settings, settings.spark_master), _TOKEN: state.token}
        submit = str(Path(environment["SPARK_HOME"], "bin", "spark-submit"))
        with self._engine.log.open("ab") as log:
            return subprocess.Popen(
                [submit, "--properties-file", str(properties), "--class", _CLASS, "spark-internal"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=settings.root,
                preexec_fn=_end_with_parent,
            )


def server_conf(settings: Settings, port: int) -> dict[str, str]:
    """What the server is started with."""
    address = {"spark.connect.grpc.binding.port": str(port), "spark.master": settings.spark_master}
    name = {"spark.app.name": f"firnline engine {settings.root.name}"}
    conf = {**launch_conf(settings), **driver_conf(settings), **_OWN, **address, **name}
    return {**conf, _OPTIONS: f"{conf[_OPTIONS]} {_JAVA}"}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(arguments: list[str]) -> int:
    """Keep the engine of the project in the given folder."""
    try:
        return Supervisor(Settings.load(Path(arguments[0]))).run()
    except FirnlineError as error:
        print(error, file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
