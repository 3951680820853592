"""The services of compose.yaml without Docker: the same commands, environment, order and health checks, on this machine.

Every host is the loopback address and every port a free one. Secrets are made once, in files that only their owner can read. When
all services are healthy, ``STATE/env`` says how to reach them; Ctrl-C or SIGTERM ends every process that was started. A service
that ends by itself is started again, as ``restart: unless-stopped`` has it.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
COMPOSE = HERE / "compose.yaml"
HOST = "127.0.0.1"
PORTS = ("POSTGRESQL_PORT", "OBJECT_STORE_PORT", "SPARK_PORT")
HOSTS = ("SPARK_HOST", "OBJECT_STORE_HOST")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_PATIENCE = 120.0


@dataclass
class Service:
    """One process of a service."""

    name: str
    command: list[str]
    environment: dict[str, str]
    check: list[str] | None
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start it, in a process group of its own that ends with this process."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command],
                cwd=HERE.parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def await_health(self) -> None:
        """Wait until its health check passes."""
        deadline = time.monotonic() + _PATIENCE
        while (
            self.check and subprocess.run(self.check, cwd=HERE.parent, env=self.environment, stderr=subprocess.DEVNULL).returncode
        ):
            if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.2)

    def stop(self) -> None:
        """End it and what it started."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def services(state: Path, given: dict[str, str]) -> Iterator[Service]:
    """The services of the file, each after those that it depends on."""
    document = interpolated(yaml.safe_load(COMPOSE.read_text()), given)
    waiting: dict[str, Any] = {name: one for name, one in document["services"].items() if "profiles" not in one}
    while waiting:
        name = next(name for name, one in waiting.items() if not set(one.get("depends_on", ())) & waiting.keys())
        one = waiting.pop(name)
        check = one.get("healthcheck", {}).get("test", [None])[1:]
        for number in range(int(one.get("deploy", {}).get("replicas", 1))):
            own = state / (name if number == 0 else f"{name}-{number + 1}")
            own.mkdir(parents=True, exist_ok=True)
            environment = {**given, "HOST": HOST, **one.get("environment", {}), "STATE": str(own)}
            yield Service(own.name, one["command"], environment, check or None, own.with_suffix(".log"))


def interpolated(value: Any, given: dict[str, str]) -> Any:
    """What compose makes of ``${NAME:-default}``."""
    if isinstance(value, dict):
        return {key: interpolated(one, given) for key, one in value.items()}
    if isinstance(value, list):
        return [interpolated(one, given) for one in value]
    return _VARIABLE.sub(lambda found: given.get(found[1]) or found[2] or "", value) if isinstance(value, str) else value


def secret_files(folder: Path) -> dict[str, str]:
    """The secrets that the file names, made where there are none yet."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in yaml.safe_load(COMPOSE.read_text())["secrets"]:
        try:
            with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
        except FileExistsError:
            continue
    return {path.name: path.read_text() for path in folder.iterdir()}


def free_ports() -> dict[str, str]:
    """A free port for each service that listens, or the one that the environment names."""
    with ExitStack() as stack:
        probes = {name: stack.enter_context(closing(socket.socket())) for name in PORTS}
        for probe in probes.values():
            probe.bind((HOST, 0))
        return {name: os.environ.get(name) or str(probe.getsockname()[1]) for name, probe in probes.items()}


def client(state: Path, given: dict[str, str], secret: dict[str, str]) -> dict[str, str]:
    """What a command needs in its environment to use the cluster."""

    def database(role: str) -> str:
        return f"postgresql+psycopg://{role}:{secret[role]}@{HOST}:{given['POSTGRESQL_PORT']}/{role}"

    return {
        "FIRNLINE_PROFILE": "cluster",
        "FIRNLINE_CATALOG_URI": database("firnline"),
        "FIRNLINE_LEDGER_URI": database("firnline"),
        "FIRNLINE_AIRFLOW_URI": database("airflow"),
        "FIRNLINE_WAREHOUSE": f"s3://{given.get('BUCKET') or 'firnline'}/warehouse",
        "FIRNLINE_SPARK_MASTER": f"spark://{HOST}:{given['SPARK_PORT']}",
        "SPARK_CONF_DIR": str(state / "spark-master" / "conf"),
        "AWS_ACCESS_KEY_ID": "firnline",
        "AWS_SECRET_ACCESS_KEY": secret["s3"],
        "AWS_ENDPOINT_URL": f"http://{HOST}:{given['OBJECT_STORE_PORT']}",
        "AWS_REGION": "us-east-1",
    }


def main() -> None:
    """Start the services, say how to use them, keep them running."""
    parser = argparse.ArgumentParser(description="Start the services of compose.yaml without Docker, until Ctrl-C.")
    parser.add_argument("--state", type=Path, default=Path(".firnline", "cluster"), help="where data, secrets and logs are")
    state = parser.parse_args().state.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    secret = secret_files(state / "secrets")
    path = os.pathsep.join((str(Path(sys.executable).parent), str(HERE.parent / ".firnline" / "bin"), os.environ["PATH"]))
    given = {**os.environ, **free_ports(), **dict.fromkeys(HOSTS, HOST), "SECRETS": str(state / "secrets"), "PATH": path}
    given |= {"PYSPARK_PYTHON": sys.executable}
    started: list[Service] = []
    try:
        for service in services(state, given):
            print(f"· {service.name}", flush=True)
            started.append(service)
            service.start()
            service.await_health()
        with os.fdopen(os.open(state / "env", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"{name}={value}\n" for name, value in client(state, given, secret).items())
        print(f"ready. In another terminal: set -a; . {state / 'env'}; set +a; .venv/bin/firnline doctor", flush=True)
        while True:
            time.sleep(0.5)
            for service in started:
                if service.process is not None and service.process.poll() is not None:
                    print(f"{service.name} ended with {service.process.returncode}; starting it again", flush=True)
                    service.start()
    except KeyboardInterrupt:
        pass
    finally:
        (state / "env").unlink(missing_ok=True)
        for service in reversed(started):
            service.stop()


if __name__ == "__main__":
    main()
