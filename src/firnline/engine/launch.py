"""How a driver's JVM is launched. Imports no Spark, so that whoever only launches one need not either."""

from __future__ import annotations

import os

from firnline.errors import FirnlineError
from firnline.settings import Settings


def launch_conf(settings: Settings) -> dict[str, str]:
    """What the JVM must be given when it starts. All of it shows in ``ps``: secrets reach the driver another way."""
    jars = sorted(str(jar) for jar in settings.jars.glob("*.jar"))
    if not jars:
        raise FirnlineError("PREREQUISITE", f"there are no jars in {settings.jars}")
    return {
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.executor.extraClassPath": os.pathsep.join(jars),
        "spark.driver.memory": settings.spark_memory,
        "spark.driver.extraJavaOptions": settings.spark_java_options,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }
