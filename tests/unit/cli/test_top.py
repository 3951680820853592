"""The terminal dashboard, on real logs without a JVM."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from firnline.cli.top import SIGNS
from firnline.plan.grid import State
from firnline.runtime.project import Project
from tests.project import command
from tests.web_logs import copies


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copies(tmp_path_factory.mktemp("top") / "project")()


def test_every_state_has_a_sign() -> None:
    assert SIGNS.keys() == set(State.__args__)  # type: ignore[attr-defined]
    assert len({sign for sign, _ in SIGNS.values()}) == len(SIGNS)


def test_it_tells_the_facts_once(web: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    said = command(web.settings.root, "top", "--once")
    assert "web  complete up to 3, safe point 0, since 0" in said
    assert "visits" in said
    assert "hold: retention keep='30 epochs' at 0" in said


def test_as_json_it_is_one_document(web: Project) -> None:
    (found,) = command(web.settings.root, "top", "web", "--json", "--epochs", "2")
    assert found["status"]["frontier"] == "3"
    assert found["epochs"] == [["1", "2"], ["2", "3"]]
    assert [line["stored"]["rows"] for line in found["collections"]] == [9, 9]


def test_a_pipeline_that_is_not_there_is_refused(web: Project) -> None:
    assert command(web.settings.root, "top", "none", "--json", code=1)["error"]["code"] == "NO_SUCH_PIPELINE"


def test_a_pipeline_that_does_not_load_does_not_hide_the_others(tmp_path: Path) -> None:
    project = copies(tmp_path / "project")()
    (project.settings.root / "include" / "pipelines" / "sick.py").write_text("raise ValueError('no')\n")
    sick, web = command(project.settings.root, "top", "--json", code=1)
    assert (sick["pipeline"], sick["error"]["code"]) == ("sick", "PIPELINE_UNLOADABLE")
    assert web["status"]["frontier"] == "3"


def test_it_is_live_in_a_terminal_until_it_is_interrupted(web: Project) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", "from firnline.cli import main; main()", "top", "web", "--every", "0.2"]
    environment = {**os.environ, "COLUMNS": "160", "LINES": "40", "TERM": "xterm"}
    process = subprocess.Popen(
        words,
        cwd=web.settings.root,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs hear of no Ctrl-C
    )
    os.close(theirs)
    try:
        said, deadline = "", time.monotonic() + 60
        while said.count("safe point 0") < 2:
            assert time.monotonic() < deadline, said
            said += os.read(ours, 65536).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        with suppress(OSError):  # how Linux says that nobody writes any more
            while os.read(ours, 65536):
                assert time.monotonic() < deadline, "it goes on"
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(ours)
