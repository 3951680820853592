"""The warm engine of a project: a Spark Connect server on the loopback address that outlives tasks.

At most one runs: its supervisor holds ``lock``. ``state.json``, which only its owner can read, says where it answers and by which
token; both are others when the supervisor starts a dead server again. Who works on it holds ``in-use``, as others may: an engine
that is to stop takes nobody new and waits until nobody holds it. The kernel lets go of what killed processes held.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Literal
from urllib.parse import quote

from firnline.engine.launch import launch_conf
from firnline.errors import FirnlineError
from firnline.settings import Settings

Phase = Literal["starting", "ready", "draining"]

_START_SECONDS = 120.0
_KILL_SECONDS = 15.0
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an engine answers."""

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address for a Spark Connect client; a client trusts a line without TLS to this machine only under this name."""
        host = "localhost" if self.host in ("127.0.0.1", "::1") else self.host
        return f"sc://{host}:{self.port}/" + (f";token={quote(self.token, safe='')}" if self.token else "")

    def __str__(self) -> str:
        return f"sc://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class State:
    """What the supervisor of a running engine says."""

    phase: Phase
    pid: int
    """The supervisor's."""
    port: int
    token: str = field(repr=False)
    since: float = field(default_factory=time.time)
    restarts: int = 0
    driver: str = ""
    """The hash of the settings that it was started with."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""
        return Endpoint("127.0.0.1", self.port, self.token)


class Engine:
    """The engine of a project, whether it runs or not."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.work / "engine"
        self.log = self.folder / "server.log"
        self._state = self.folder / "state.json"

    def state(self) -> State | None:
        """What its supervisor says, or nothing where none runs that is ours to use."""
        try:
            with (self.folder / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            with suppress(FileNotFoundError, PermissionError):  # it has just begun, or is another user's
                return State(**json.loads(self._state.read_text()))
        except (FileNotFoundError, PermissionError):
            pass
        return None

    def start(self, patience: float = _START_SECONDS) -> State:
        """Start it in the background, unless it runs, and wait until it answers."""
        if self.state() is None:
            launch_conf(self.settings)  # refuses what the supervisor could tell its log only
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                supervisor = subprocess.Popen(
                    supervisor_command(self.settings),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )
            return self.wait_until_ready(patience, lambda: supervisor.poll() is None)
        return self.wait_until_ready(patience, lambda: self.state() is not None)

    def wait_until_ready(self, patience: float, is_alive: Callable[[], bool]) -> State:
        """Wait until it answers; an engine that is no more alive, or takes too long, is an error with the end of its log."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            alive = is_alive()
            state = self.state()
            if state is not None and state.phase == "ready":
                return state
            if not alive and state is None:
                break
            time.sleep(_PAUSE)
        what = f"the engine did not start; the end of {self.log}:\n{self.last_lines()}\n"
        raise FirnlineError(
            "ENGINE_UNAVAILABLE", what, todo="Run 'firnline doctor': it says what is missing, and how to mend it."
        )

    def stop(self, patience: float) -> bool:
        """End it once nobody works on it, or after that many seconds; whether one ran."""
        state = self.state()
        if state is None:
            return False
        for wait, number in ((patience, signal.SIGTERM), (_KILL_SECONDS, signal.SIGTERM), (_KILL_SECONDS, signal.SIGKILL)):
            with suppress(ProcessLookupError):
                os.kill(state.pid, number)
            deadline = time.monotonic() + wait
            while time.monotonic() < deadline:
                now = self.state()
                if now is None or now.pid != state.pid:
                    return True
                time.sleep(_PAUSE)
        raise FirnlineError("ENGINE_UNAVAILABLE", f"the engine's process {state.pid} does not end")

    @contextmanager
    def used(self) -> Iterator[Endpoint]:
        """Where it answers, which holds while inside: it drains only afterwards. One that is starting is waited for.

        Raises:
            FirnlineError: ENGINE_UNAVAILABLE, where none runs, or it is ending.
        """
        deadline = time.monotonic() + _START_SECONDS
        while True:
            state = self.state()
            if state is None:
                raise FirnlineError("ENGINE_UNAVAILABLE", "no engine of this project runs")
            if state.phase == "draining":
                raise FirnlineError("ENGINE_UNAVAILABLE", "the engine is draining")
            if state.phase == "ready":
                with self._in_use() as file:
                    if _locked(file, fcntl.LOCK_SH) and (again := self.state()) is not None and again.phase != "draining":
                        yield state.endpoint
                        return
            if time.monotonic() > deadline:
                raise FirnlineError("ENGINE_UNAVAILABLE", f"the engine did not answer in {_START_SECONDS:.0f} s")
            time.sleep(_PAUSE)

    @contextmanager
    def _in_use(self) -> Iterator[IO[str]]:
        with (self.folder / "in-use").open("a") as file:
            yield file

    # For its supervisor.

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Be its only supervisor."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as lock:
            for _ in range(20):  # whoever asks for its state holds the lock for a moment
                if _locked(lock, fcntl.LOCK_EX):
                    break
                time.sleep(_PAUSE)
            else:
                raise FirnlineError("ENGINE_UNAVAILABLE", "an engine of this project runs already")
            self._state.unlink(missing_ok=True)  # of one that was killed
            try:
                yield
            finally:
                self._state.unlink(missing_ok=True)

    def tell(self, state: State) -> None:
        """Let others know."""
        write_private(self._state, json.dumps(asdict(state)))

    def is_idle(self) -> bool:
        """Whether nobody works on it."""
        with self._in_use() as file:
            return _locked(file, fcntl.LOCK_EX)

    def last_lines(self) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:]) if self.log.exists() else ""


def supervisor_command(settings: Settings) -> list[str]:
    """What runs an engine in the foreground until SIGTERM."""
    return [sys.executable, "-m", "firnline.engine.supervisor", str(settings.root)]


def write_private(path: Path, text: str) -> None:
    """Replace a file by one that only its owner can read."""
    draft = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def _locked(file: IO[str], how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
