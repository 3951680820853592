"""A real Kafka broker for the tests: one node, from Maven's packages, on free ports of the loopback."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

VERSION = "3.9.1"
_SECONDS = 120


def _packages(cache: Path) -> Path:
    """The broker's jars, resolved once with the Ivy inside PySpark."""
    folder = cache / f"broker-{VERSION}"
    if not folder.exists():
        ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
        draft = cache / f"draft-{os.getpid()}"
        what = ["-dependency", "org.apache.kafka", "kafka_2.13", VERSION, "-types", "jar", "bundle", "-warn"]
        where = ["-cache", str(cache / "ivy"), "-retrieve", f"{draft}/[artifact]-[revision].[ext]"]
        subprocess.run(["java", "-cp", str(ivy), "org.apache.ivy.Main", *what, *where], check=True, timeout=600)
        draft.rename(folder)
    return folder


def _free_ports(number: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@contextmanager
def broker(cache: Path, folder: Path) -> Iterator[str]:
    """A broker that keeps its records below a folder; where it listens."""
    client, controller = _free_ports(2)
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "num.partitions": 2,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = ["setpriv", "--pdeathsig", "KILL", "java", "-Xmx256m", "-cp", f"{_packages(cache)}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file)], check=True, timeout=_SECONDS)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*java, "kafka.Kafka", str(file)], stdout=log, stderr=log, start_new_session=True)
    try:
        _await(server, client, folder / "log")
        yield f"127.0.0.1:{client}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"Kafka did not start:\n{log.read_text()}", pytrace=False)
