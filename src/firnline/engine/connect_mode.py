"""PySpark makes functions, windows and UDFs for Spark Connect or for a classic session, whichever is on at that moment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_NAME = "SPARK_CONNECT_MODE_ENABLED"


@contextmanager
def connect_mode() -> Iterator[None]:
    """What is made inside is Connect's, also before there is a session."""
    before = os.environ.get(_NAME)
    os.environ[_NAME] = "1"
    try:
        yield
    finally:
        os.environ.pop(_NAME)
        if before is not None:
            os.environ[_NAME] = before
