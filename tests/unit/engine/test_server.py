"""Who owns an engine, as others see it; without any Spark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from threading import Thread

from firnline.engine.server import Engine, State
from firnline.engine.supervisor import server_conf
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
