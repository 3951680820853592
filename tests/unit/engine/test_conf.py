"""What a JVM is started with, whatever somebody asks for besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.engine.conf import driver_conf
from firnline.engine.launch import launch_conf, submission
from firnline.settings import Settings
from tests.project import make_project

DRIVER, EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
ASKED = f"""
    spark_java_options = "-Duser.timezone=Asia/Kolkata -XX:+UseSerialGC"
    [spark_conf]
    "{DRIVER}" = "-Xss4m"
    "{EXECUTOR}" = "-Xss8m -Duser.timezone=Asia/Kolkata"
"""


@pytest.mark.parametrize("asked", ["", ASKED])
def test_every_jvm_is_in_utc(tmp_path: Path, asked: str) -> None:
    settings: Settings = make_project(tmp_path, asked).settings
    warm = {**launch_conf(settings), **driver_conf(settings)}
    elsewhere = submission(settings, tmp_path / "job.py", "yarn", "cluster").conf
    options = [launch_conf(settings)[DRIVER], warm[DRIVER], warm[EXECUTOR], elsewhere[DRIVER], elsewhere[EXECUTOR]]
    for each in options:
        zones = [word for word in each.split() if word.startswith("-Duser.timezone=")]
        assert zones[-1] == "-Duser.timezone=UTC", "the last one counts"
    if asked:
        assert "-Xss4m" in warm[DRIVER]
        assert "-Xss8m" in warm[EXECUTOR]
