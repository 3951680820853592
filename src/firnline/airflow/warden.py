"""Run one command and leave nothing of it behind.

``python warden.py LOG COMMAND...`` runs the command in a session of its own, with its output in LOG, and ends when the command
ends or when its own standard input is closed, whichever comes first. Then every process that came out of the command is ended:
first asked (SIGTERM), after ``GRACE`` seconds killed. Standard input is a pipe that the starter holds and never writes to, so the
kernel closes it whatever happens to the starter, kill -9 included.

Where the kernel can (Linux), the warden adopts orphans, so that no double fork, new process group or new session gets away.
Needs the standard library only, and starts in a few tens of milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

GRACE = 8.0
"""Seconds between asking and killing. An Airflow task uses them to end its Spark driver and to report its state."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def processes() -> dict[int, tuple[int, int]]:
    """Parent and session of every process of this machine that is not yet dead."""
    if not os.path.exists("/proc/self/stat"):
        ps = subprocess.Popen(["ps", "-A", "-o", "pid=,ppid=,sess=,stat="], stdout=subprocess.PIPE, text=True)
        rows = [line.split() for line in ps.communicate()[0].splitlines()]
        return {int(r[0]): (int(r[1]), int(r[2], 0)) for r in rows if r[3][0] != "Z" and int(r[0]) != ps.pid}
    table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent, _, session, *_ = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX":
            table[int(name)] = (int(parent), int(session))
    return table


def family(root: int) -> set[int]:
    """The processes below ``root`` or in the session it leads, without itself."""
    table = processes()
    found = {pid for pid, (_, session) in table.items() if session == root}
    found.add(root)
    grew = True
    while grew:
        below = {pid for pid, (parent, _) in table.items() if parent in found} - found
        found |= below
        grew = bool(below)
    return found - {root}


def end_family(root: int, grace: float) -> None:
    """End all of ``family(root)``: ask once, wait for ``grace`` seconds, then kill until nobody is left."""
    _signal(family(root), signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and family(root):
        _reap()
        time.sleep(0.1)
    while left := family(root):
        _signal(left, signal.SIGKILL)
        _reap()
        time.sleep(0.05)


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main(argv: list[str]) -> int:
    """Run the command of ``argv`` until it ends or standard input is closed; its exit code, or 0 when it was told to end."""
    log, command = argv[0], argv[1:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the pipe alone decides, so that a stray signal cannot orphan the family
    with open(log, "ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_prepare,
        )
    code: int | None = None
    while code is None and not select.select([sys.stdin], [], [], 0.2)[0]:
        code = child.poll()
    end_family(os.getpid(), GRACE)
    return 0 if code is None else abs(code)


def _prepare() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
