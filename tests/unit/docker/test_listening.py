"""The health check of the containers: a Spark master listens by its host's name alone, others everywhere."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT


@pytest.mark.parametrize(
    ("address", "given", "code"), [("127.0.0.3", "", 0), ("127.0.0.1", "", 0), ("127.0.0.1", "127.0.0.3", 1)]
)
def test_who_listens_by_name_or_on_loopback_is_found(tmp_path: Path, address: str, given: str, code: int) -> None:
    name = tmp_path / "hostname"
    name.write_text("#!/bin/sh\necho 127.0.0.3\n")
    name.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOST": given}
    with socket.create_server((address, 0)) as server:
        port = str(server.getsockname()[1])
        command = [str(ROOT / "docker" / "bin" / "listening"), port]
        assert subprocess.run(command, env=environment, timeout=30, check=False).returncode == code
    assert subprocess.run(command, env=environment, timeout=30, check=False).returncode == 1, "nobody listens any more"
