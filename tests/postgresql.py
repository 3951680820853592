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
from itertools import count
from pathlib import Path

import psycopg
import pytest

USER = "firnline"

HASTY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "4GB"}
"""What is lost when the machine fails does not matter here."""


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


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[int]:
    binaries, port = _binaries(), _free_port()
    # Not below pytest's own folder: that one belongs to root alone when root runs the tests.
    folder = Path(tempfile.mkdtemp(prefix="firnline-postgres-"))
    data, log = folder / "data", folder / "log"
    server: subprocess.Popen[bytes] | None = None
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run([*_unprivileged(), *initdb], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", **HASTY}
        command = [str(binaries / "postgres"), "-D", str(data), *(f"--{name}={value}" for name, value in options.items())]
        with log.open("wb") as output:
            server = subprocess.Popen(
                [*_unprivileged(), *command], cwd=folder, stdout=output, stderr=output, start_new_session=True
            )
        _await_server(server, port, log)
        yield port
    finally:
        if server is not None:
            server.send_signal(signal.SIGQUIT)  # at once: it ends its own children, and writes nothing that is thrown away anyway
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
        shutil.rmtree(folder)


_NUMBERS = count()


@pytest.fixture
def postgres_uri(postgres_port: int) -> Callable[[], str]:
    """Makes a new database and gives its URI."""

    def make() -> str:
        name = f"test_{next(_NUMBERS)}"
        with psycopg.connect(host="127.0.0.1", port=postgres_port, user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://{USER}@127.0.0.1:{postgres_port}/{name}"

    return make
