"""Spark sessions, always over Connect.

``opened`` starts a Connect endpoint inside this process's own driver, on an ephemeral loopback port, behind a random token, and
yields a session that speaks to it. Under ``spark-submit`` the driver is already there; otherwise one is launched. Token and
passwords are handed over in memory, so that neither command lines nor logs show them.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from firnline.engine.conf import driver_conf
from firnline.engine.connect_mode import connect_mode
from firnline.engine.launch import launch_conf
from firnline.engine.zone import in_utc
from firnline.errors import FirnlineError
from firnline.settings import Settings

# By default a client waits ten minutes for a lost server. Ours is on this machine: if it does not answer, it is dead.
ON_LOOPBACK = DefaultPolicy(max_retries=5, initial_backoff=200, max_backoff=2000)
_ENDED = "JAVA_GATEWAY_EXITED"
_TAIL = 4000
_logger = logging.getLogger(__name__)


@contextmanager
def opened(settings: Settings, name: str) -> Iterator[SparkSession]:
    """A session on a driver of our own, which ends with it."""
    ends: list[Callable[[], object]] = []
    try:
        session = _started(settings, name, ends)
        with connect_mode():
            yield session
    finally:
        for end in reversed(ends):
            try:
                end()
            except Exception as error:  # the driver may be dead already, which is what the caller has heard of
                _logger.info("while ending Spark: %s", error)
        SparkContext._gateway = SparkContext._jvm = None


def _started(settings: Settings, name: str, ends: list[Callable[[], object]]) -> SparkSession:
    """A session on a driver of our own; what ends the pieces of it goes to ``ends``, one by one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    token = secrets.token_urlsafe(32)
    master = {} if "PYSPARK_GATEWAY_PORT" in os.environ else {"spark.master": settings.spark_master}
    launch = launch_conf(settings)
    conf = {**launch, **master, **driver_conf(settings), **_endpoint(name, token)}
    try:
        with in_utc():  # which Python's workers inherit
            gateway = launch_gateway(_conf(launch))  # type: ignore[no-untyped-call]
        ends.append(gateway.shutdown)
        context = SparkContext(gateway=gateway, conf=_conf(conf))
        ends.append(context.stop)
        context.setLogLevel("ERROR")
        jvm: Any = context._jvm
        port = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$").__getattr__("MODULE$").localPort()
        session = SparkSession.builder.remote(f"sc://localhost:{port}/;token={token}").create()
        ends.append(session.stop)
    except Exception as error:  # Spark's own, py4j's or gRPC's
        raise FirnlineError("SPARK_NOT_STARTED", f"Spark does not start: {_reason(error)}") from error
    session.client.set_retry_policies([ON_LOOPBACK])
    return session


def _reason(error: Exception) -> str:
    """What an error says, without the stack of the JVM: py4j puts that of a call before it, and what came of the call behind.

    A JVM that ended before it could be called has told why on standard error only.
    """
    if _ENDED in str(error) and (said := _complaint()):
        return said
    _, _, thrown = str(error).partition("\n: ")
    return (thrown or str(error)).strip().partition("\n\tat ")[0]


def _complaint() -> str:
    """The end of standard error, where that is a file that can be read: elsewhere it is seen anyway."""
    try:
        text = os.pread(2, _TAIL, max(0, os.fstat(2).st_size - _TAIL)).decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("\tat ", "WARN"))]
    return "; ".join(line.rstrip(".") for line in lines[-3:])


@contextmanager
def cloned(session: SparkSession) -> Iterator[SparkSession]:
    """A session like another one, with settings and views of its own from then on."""
    _logger.debug("a session of Spark %s is cloned", session.version)  # a server knows a session from its first question on
    clone = session.cloneSession()
    clone.release_session_on_close = True  # PySpark leaves that unsaid of a clone, and then cannot end it
    clone.client.set_retry_policies([ON_LOOPBACK])
    try:
        yield clone
    finally:
        clone.stop()


def take_up(session: SparkSession) -> None:
    """Let a session be the one that functions find, in this thread."""
    SparkSession._active_session.session = session


def _endpoint(name: str, token: str) -> dict[str, str]:
    return {
        "spark.app.name": name,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
    }


def _conf(entries: Mapping[str, str]) -> SparkConf:
    return SparkConf().setAll(list(entries.items()))
