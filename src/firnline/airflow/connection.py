"""Where a connection lets Spark run: in a driver that is started for the task (cold), or on an engine that runs already (warm).

``sc://HOST:PORT`` is warm, with the engine's token as password; ``sc://`` alone is the engine of the project, whose own files say
port and token. Any other host is the master of a cold driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from firnline.engine.launch import CLIENT, KUBERNETES
from firnline.engine.server import Endpoint
from firnline.errors import FirnlineError

SCHEME = "sc://"
_PORT = 15002
"""Where a Spark Connect server listens unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Cold:
    """A driver for each task."""

    master: str
    deploy_mode: str = CLIENT
    """``client``: in the task; ``cluster``: where YARN or Kubernetes has room for it."""


@dataclass(frozen=True, slots=True)
class Warm:
    """A session for each task."""

    endpoint: Endpoint | None
    """Nothing for the project's own engine."""
    fallback: str | None
    """The master of cold drivers while the engine does not answer, where that is allowed."""


def where(connection: Any, default_master: str) -> Cold | Warm:
    """What an Airflow connection says.

    >>> from types import SimpleNamespace as Connection
    >>> where(Connection(conn_type="spark", host="local[2]", port=None, password=None, extra_dejson={}), "local[*]")
    Cold(master='local[2]', deploy_mode='client')
    >>> where(Connection(conn_type="spark", host="sc://", port=None, password=None, extra_dejson={}), "local[*]")
    Warm(endpoint=None, fallback='local[*]')
    """
    host = str(connection.host or "")
    if connection.conn_type == "sc":  # of a URI, Airflow takes the scheme for the type
        host = f"{SCHEME}{host}"
    if not host.startswith(SCHEME):
        # As the provider reads it: of a URI, Airflow takes the scheme for the type.
        master = host if connection.conn_type == "spark" else f"{connection.conn_type}://{host}"
        return Cold(master, connection.extra_dejson.get("deploy-mode") or CLIENT)
    fallback = connection.extra_dejson.get("fallback")
    if host == SCHEME:
        return Warm(None, default_master if fallback is None else fallback or None)
    try:
        there = urlsplit(host)
        port = there.port or connection.port or _PORT
    except ValueError as error:
        raise FirnlineError(
            "BAD_OPTION", f"the connection's host {host!r}: {error}", todo="Write it as sc://HOST:PORT."
        ) from None
    return Warm(Endpoint(there.hostname or "", int(port), connection.password or ""), fallback or None)


def check_provider(place: Cold) -> None:
    """Refuse a master that the provider does not reach as it is installed: it would end with a NameError."""
    if place.master.startswith(KUBERNETES) and find_spec("airflow.providers.cncf") is None:
        package = "apache-airflow-providers-cncf-kubernetes"
        raise FirnlineError("PREREQUISITE", f"Airflow's Spark provider needs {package} for {place.master}", todo="Install it.")
