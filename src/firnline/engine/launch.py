"""How a driver is launched: here, or, in deploy mode cluster, where YARN or Kubernetes has room for it.

A driver elsewhere finds the project, its Python and the jars at the same paths as here. Nothing that it is told is a secret: all
of it shows in ``ps``. Imports no Spark, so that whoever only launches a driver need not either.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from firnline.engine.classes import spark_home, with_archive
from firnline.engine.conf import java_options
from firnline.engine.pinned import ZONE
from firnline.errors import FirnlineError
from firnline.settings import PROFILE, Settings

CLIENT, CLUSTER = "client", "cluster"
KUBERNETES, YARN = "k8s://", "yarn"
_IMAGE = "spark.kubernetes.container.image"
_AT_SUBMIT = ("spark.driver.", "spark.executor.", "spark.kubernetes.", "spark.submit.", "spark.yarn.")
"""Settings of a driver that is started elsewhere which have to be known before it starts."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What spark-submit is told about a job.

    Args:
        application: The job's file.
        conf: Settings.
        process: What is added to the environment of spark-submit itself.
        driver: What the driver's environment gets through the provider: in the same process, or as settings.
    """

    application: str
    conf: dict[str, str]
    process: dict[str, str]
    driver: dict[str, str]


def submission(settings: Settings, application: Path, master: str, deploy_mode: str) -> Submission:
    """How a job is submitted to a master, or why it cannot be."""
    _check(settings, master, deploy_mode)
    here = driver_environment(settings, master)
    if deploy_mode == CLIENT:
        # Of YARN and Kubernetes the provider would make settings of the variables, which a driver in this process does not get.
        process, driver = (here, {}) if master.startswith((KUBERNETES, YARN)) else ({}, here)
        return Submission(str(application), launch_conf(settings), process, driver)
    asked = {key: value for key, value in settings.spark_conf.items() if key.startswith(_AT_SUBMIT)}
    driver = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(settings.root),
        "FIRNLINE_ROOT": str(settings.root),
        "TZ": "UTC",
        PROFILE: settings.profile,
    }
    # Spark copies a file to YARN by itself; to Kubernetes only with somewhere to put it, and the image has it anyway.
    job = f"local://{application}" if master.startswith(KUBERNETES) else str(application)
    conf = {**launch_conf(settings), **asked, **java_options(settings)}
    return Submission(job, conf, {name: here[name] for name in ("PATH", "SPARK_HOME")}, driver)


def _check(settings: Settings, master: str, deploy_mode: str) -> None:
    if deploy_mode not in (CLIENT, CLUSTER):
        raise FirnlineError("BAD_OPTION", f"deploy mode {deploy_mode!r}", todo=f"There are {CLIENT!r} and {CLUSTER!r}.")
    if deploy_mode == CLUSTER and not master.startswith((KUBERNETES, YARN)):
        what = f"Spark starts no Python driver in deploy mode cluster on {master}"
        raise FirnlineError("BAD_OPTION", what, todo="Leave deploy-mode out: the driver then runs where the task does.")
    if master.startswith(KUBERNETES) and _IMAGE not in settings.spark_conf:
        todo = f'Set it to an image with this project in it: spark_conf = {{ "{_IMAGE}" = "..." }}.'
        raise FirnlineError("BAD_SETTING", f"{master} needs {_IMAGE}", todo=todo)


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
        "spark.driver.extraJavaOptions": with_archive(settings, f"{settings.spark_java_options} {ZONE}".strip()),
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
        "TZ": "UTC",
        **({"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}),
        **{name: os.pathsep.join(filter(None, (str(first), os.environ.get(name)))) for name, first in paths.items()},
    }
