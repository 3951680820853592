"""What a connection says about where Spark runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firnline.airflow.connection import Cold, Warm, where
from firnline.engine.server import Endpoint
from firnline.errors import FirnlineError


def connection(host: str | None, kind: str = "spark", **others: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"conn_type": kind, "host": host, "port": None, "password": None, "extra_dejson": {}, **others})


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (connection("spark://master:7077"), Cold("spark://master:7077")),
        (connection("yarn"), Cold("yarn")),
        (connection(None), Cold("")),
        (connection("sc://"), Warm(None, "local[*]")),
        (connection("sc://", extra_dejson={"fallback": ""}), Warm(None, None)),
        (connection("", kind="sc", extra_dejson={"fallback": "yarn"}), Warm(None, "yarn")),
        (connection("sc://there:443", password="t"), Warm(Endpoint("there", 443, "t"), None)),
        (connection("sc://there", port=443), Warm(Endpoint("there", 443, ""), None)),
        (connection("there", kind="sc", password="t"), Warm(Endpoint("there", 15002, "t"), None)),
        (connection("sc://[::1]:7", extra_dejson={"fallback": "yarn"}), Warm(Endpoint("::1", 7, ""), "yarn")),
    ],
)
def test_the_host_decides(given: SimpleNamespace, place: Cold | Warm) -> None:
    assert where(given, "local[*]") == place


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(FirnlineError, match="BAD_OPTION"):
        where(connection("sc://there:many"), "local[*]")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in f"{Endpoint('h', 1, 'secret')!r} {Endpoint('h', 1, 'secret')}"
    assert Endpoint("127.0.0.1", 1, "secret").url == "sc://localhost:1/;token=secret"
