"""The services of docker/compose.yaml without Docker, and how their processes are killed or slowed down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from firnline.errors import FirnlineError

_SIZE = {"WORKER_CORES": "1", "WORKER_MEMORY": "1g"}
_MASTER = "org.apache.spark.deploy.master.Master"
_PATIENCE = 120.0
_STOPPED, _GOING = 1.0, 0.5
"""Seconds of a slow executor's bursts; nobody takes it for dead within so short a silence."""


class Cluster:
    """Running services."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self.environment = dict(line.split("=", 1) for line in (state / "env").read_text().splitlines())
        self.workers = tuple(sorted(path for path in state.glob("spark-worker*") if path.is_dir()))

    @contextmanager
    def used(self) -> Iterator[None]:
        """Inside, its environment is that of this process."""
        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def await_executors(self) -> None:
        """Wait until every worker has one."""
        self._await("an executor on every worker", lambda: all(map(self.executors, self.workers)))

    def executors(self, worker: Path) -> list[int]:
        """The executors of a worker: what runs in its folder."""
        return [pid for pid in _processes() if _folder(pid).is_relative_to(worker / "work")]

    def kill_workers(self, count: int) -> None:
        """Kill workers with their executors, as if their machines were gone; the services start new ones."""
        for worker in self.workers[:count]:
            _signal([*self.executors(worker), *_named(f"{worker}/work", "--work-dir")], signal.SIGKILL)

    def kill_master(self) -> None:
        """Kill the master; the services start it again."""
        _signal(self._masters(), signal.SIGKILL)

    def await_master(self) -> None:
        """Wait until there is one."""
        self._await("a master", lambda: bool(self._masters()))

    @contextmanager
    def slowed(self) -> Iterator[None]:
        """Inside, the executors of one worker stand still most of the time."""
        ended = threading.Event()

        def burst() -> None:
            while not ended.is_set():
                pids = self.executors(self.workers[0])
                _signal(pids, signal.SIGSTOP)
                ended.wait(_STOPPED)
                _signal(pids, signal.SIGCONT)
                ended.wait(_GOING)

        thread = threading.Thread(target=burst)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _masters(self) -> list[int]:
        return _named(f"{self._state}/spark-master/conf", _MASTER)

    def _await(self, what: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not is_there():
            if time.monotonic() > deadline:
                raise FirnlineError("PREREQUISITE", f"the cluster has not {what}", todo=f"Its logs are in {self._state}.")
            time.sleep(0.1)


@contextmanager
def started(checkout: Path) -> Iterator[Cluster]:
    """A cluster of three workers with a core each, which ends with this."""
    with tempfile.TemporaryDirectory(prefix="firnline-cluster-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL refuses to run as root, and another user has to look into it
        script = [sys.executable, str(checkout / "docker" / "without_docker.py"), "--state", folder]
        command = ["setpriv", "--pdeathsig", "TERM", "--", *script]  # it ends with this process, whatever ends that
        with subprocess.Popen(command, env={**os.environ, **_SIZE}, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                said = []
                for line in process.stdout:
                    said.append(line)
                    if line.startswith("ready"):
                        break
                else:
                    todo = "See that 'make cluster' works."
                    raise FirnlineError("PREREQUISITE", f"the cluster did not start: {''.join(said)}", todo=todo)
                yield Cluster(Path(folder))
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


def _signal(pids: Sequence[int], kind: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, kind)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _named(*words: str) -> list[int]:
    """The processes on whose command line all of these words are."""
    found = []
    for pid in _processes():
        with suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
            if all(word in line for word in words) and pid != os.getpid():
                found.append(pid)
    return found


def _folder(pid: int) -> Path:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:  # it has ended
        return Path("/")
