"""How a driver's JVM is launched. Imports no Spark, so that whoever only launches one need not either."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from firnline.engine.classes import spark_home, with_archive
from firnline.errors import FirnlineError
from firnline.settings import Settings


def launch_conf(settings: Settings) -> dict[str, str]:
    """What the JVM must be given when it starts. All of it shows in ``ps``: secrets reach the driver another way."""
    jars = sorted(str(jar) for jar in settings.jars.glob("*.jar"))
    if not jars:
        raise FirnlineError("PREREQUISITE", f"there are no jars in {settings.jars}")
    return {
        # By their own names: an archive of classes fits one class path.
        "spark.driver.extraClassPath": os.pathsep.join(str(Path(jar).resolve()) for jar in jars),
        "spark.executor.extraClassPath": os.pathsep.join(jars),
        "spark.driver.memory": settings.spark_memory,
        "spark.driver.extraJavaOptions": with_archive(settings, settings.spark_java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }


def driver_environment(settings: Settings, master: str) -> dict[str, str]:
    """Where the driver finds this environment's Python, its Spark and the project's code; on one machine it stays on loopback."""
    paths = {"PATH": Path(sys.executable).parent, "PYTHONPATH": settings.root}
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
        "FIRNLINE_ROOT": str(settings.root),
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}),
        **{name: os.pathsep.join(filter(None, (str(first), os.environ.get(name)))) for name, first in paths.items()},
    }
