"""Who owns an engine, as others see it; without any Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from threading import Thread

import pytest

from firnline.engine.server import Engine, State
from firnline.engine.supervisor import server_conf
from firnline.errors import FirnlineError
from firnline.settings import Settings
from tests.project import make_project


def engine(tmp_path: Path) -> Engine:
    (tmp_path / "firnline.toml").touch()
    return Engine(Settings.load(tmp_path))


def test_what_a_killed_supervisor_said_is_not_taken_for_the_next_ones_word(tmp_path: Path) -> None:
    found = engine(tmp_path)
    found.folder.mkdir(parents=True)
    found.tell(State("ready", 1, 1, "token"))
    with found.owned():
        assert found.state() is None


def test_who_stops_an_engine_leaves_the_next_one_alone(tmp_path: Path) -> None:
    found = engine(tmp_path)
    old = subprocess.Popen(["sleep", "60"])
    next_one = State("starting", os.getpid(), 2, "token")  # which would end this test

    def follow() -> None:
        old.wait()
        found.tell(next_one)

    with found.owned():
        found.tell(State("ready", old.pid, 1, "token"))
        thread = Thread(target=follow)
        thread.start()
        assert found.stop(30)
        thread.join()
        assert found.state() == next_one


def test_a_server_without_memory_ends_whatever_options_a_user_gives(tmp_path: Path) -> None:
    asked = '[spark_conf]\n"spark.driver.extraJavaOptions" = "-Dmine=1"\n'
    for settings, own in (("", ""), (asked, "-Dmine=1 ")):
        conf = server_conf(make_project(tmp_path, settings).settings, 15002)
        options = conf["spark.driver.extraJavaOptions"]
        assert options.startswith(own)
        assert options.endswith(" -XX:+ExitOnOutOfMemoryError")


def test_an_engine_of_another_user_is_none_of_ours(tmp_path: Path) -> None:
    found = engine(tmp_path)
    with found.owned():
        found.tell(State("ready", 1, 1, "token"))
        (found.folder / "state.json").chmod(0)
        me, is_root = os.geteuid(), os.geteuid() == 0
        os.seteuid(65534 if is_root else me)  # root may read everything
        try:
            assert found.state() is None
        finally:
            os.seteuid(me)


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(FirnlineError, match="PREREQUISITE: there are no jars"):
        engine(tmp_path).start()
    found = Engine(make_project(tmp_path / "project").settings)
    (tmp_path / "project" / "firnline.toml").write_text("trash = 'long'")
    with pytest.raises(FirnlineError, match=r"(?s)did not start; .*BAD_SETTING: .*trash.*Run 'firnline doctor'"):
        found.start(30)
