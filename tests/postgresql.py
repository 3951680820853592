"""A real PostgreSQL for the tests: a throw-away server on a free port of the loopback, with one new database per test."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest

USER = "firnline"

HASTY = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "4GB"}
"""What is lost when the machine fails does not matter here; what was committed outlives a server that is killed."""


def _binaries() -> Path:
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    if not found:
        pytest.fail("PostgreSQL's server is missing. Install it: apt-get install postgresql", pytrace=False)
    return max(found, key=lambda folder: folder.parent.name)


def _unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root: then it runs as Debian's user for it. It also ends when this process does."""
    prefix = ["setpriv", "--pdeathsig", "INT"]
    return (
        [*prefix, "--reuid", "postgres", "--regid", "postgres", "--init-groups", "--"] if os.geteuid() == 0 else [*prefix, "--"]
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_server(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user=USER, dbname="postgres", connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text()}", pytrace=False)


@dataclass
class Server:
    """A server with a folder of its own; its data outlive it."""

    folder: Path
    port: int = field(default_factory=_free_port)
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        data, log = self.folder / "data", self.folder / "log"
        if not data.exists():
            options = ["-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
            initdb = [str(_binaries() / "initdb"), "-D", str(data), *options]
            subprocess.run([*_unprivileged(), *initdb], check=True, cwd=self.folder, stdout=subprocess.DEVNULL)
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", **HASTY}
        command = [str(_binaries() / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in settings.items())]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*_unprivileged(), *command], cwd=self.folder, stdout=output, stderr=output, start_new_session=True
            )
        _await_server(self._process, self.port, log)

    def stop(self) -> None:
        """End it at once, with all transactions that are open."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def database(self, name: str) -> str:
        """A new database, by its URI."""
        with psycopg.connect(host="127.0.0.1", port=self.port, user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"


@contextmanager
def running() -> Iterator[Server]:
    """A new server."""
    # Not below pytest's own folder: that one belongs to root alone when root runs the tests.
    server = Server(Path(tempfile.mkdtemp(prefix="firnline-postgres-")))
    try:
        if os.geteuid() == 0:
            shutil.chown(server.folder, "postgres", "postgres")
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_port(postgres_server: Server) -> int:
    return postgres_server.port


_NUMBERS = count()


@pytest.fixture
def postgres_uri(postgres_server: Server) -> Callable[[], str]:
    """Makes a new database and gives its URI."""
    return lambda: postgres_server.database(f"test_{next(_NUMBERS)}")
