"""What a warden started ends with it, whatever it did to get away and whatever happens to the starter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firnline.airflow import warden
from tests.airflow.conftest import until

# Each leaves a process that writes its number to the file PIDS and would live for a minute.
ESCAPES = {
    "a child": "sh -c 'echo $$ >> PIDS; exec sleep 60' & wait",
    "an orphan": "(sh -c 'echo $$ >> PIDS; exec sleep 60' &) ; sleep 60",
    "a session of its own": "setsid sh -c 'echo $$ >> PIDS; exec sleep 60' & sleep 60",
    "an orphan in a session of its own": "(setsid sh -c 'echo $$ >> PIDS; exec sleep 60' &) ; sleep 60",
}


def start(folder: Path, script: str) -> subprocess.Popen[bytes]:
    command = script.replace("PIDS", str(folder / "pids"))
    return subprocess.Popen(
        [sys.executable, "-I", "-S", warden.__file__, str(folder / "log"), "sh", "-c", command],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def started(folder: Path) -> int:
    until(lambda: (folder / "pids").exists() and (folder / "pids").read_text().strip(), 20)
    return int((folder / "pids").read_text().split()[0])


def is_alive(pid: int) -> bool:
    return pid in warden.processes()


@pytest.mark.skipif(sys.platform != "linux", reason="adopting orphans is Linux's")
@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES.keys())
def test_closing_the_pipe_ends_everything(tmp_path: Path, script: str) -> None:
    process = start(tmp_path, script)
    pid = started(tmp_path)
    assert is_alive(pid)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0
    assert not is_alive(pid)


def test_what_outlives_its_parent_is_ended_when_the_command_ends(tmp_path: Path) -> None:
    process = start(tmp_path, "(sh -c 'echo $$ >> PIDS; exec sleep 60' &) ; sleep 1; exit 3")
    pid = started(tmp_path)
    assert process.wait(20) == 3
    assert not is_alive(pid)


def test_who_ignores_being_asked_is_killed_after_the_grace(tmp_path: Path) -> None:
    process = start(tmp_path, "trap '' TERM; echo $$ >> PIDS; while true; do sleep 1; done")
    pid = started(tmp_path)
    assert process.stdin is not None
    process.stdin.close()
    began = time.monotonic()
    process.wait(warden.GRACE + 10)
    assert time.monotonic() - began >= warden.GRACE - 1
    assert not is_alive(pid)


def test_signals_to_the_warden_itself_change_nothing(tmp_path: Path) -> None:
    process = start(tmp_path, ESCAPES["a child"])
    pid = started(tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    time.sleep(0.5)
    assert is_alive(pid)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(20)
    assert not is_alive(pid)


def test_killing_the_starter_outright_ends_everything(tmp_path: Path) -> None:
    script = f"""
import subprocess, sys, time
from tests.airflow.test_warden import ESCAPES, start
from pathlib import Path
process = start(Path({str(tmp_path)!r}), ESCAPES["an orphan"])
time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    starter = subprocess.Popen([sys.executable, "-c", script], env=environment)
    pid = started(tmp_path)
    starter.kill()
    starter.wait()
    until(lambda: not is_alive(pid), warden.GRACE + 5)
