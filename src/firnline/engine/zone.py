"""Python's own time zone is UTC while a user's function runs: PySpark takes a moment without a zone for one of the process's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_NAME, _UTC = "TZ", "UTC"
_lock = threading.Lock()
_before: list[str | None] = []
"""What it was for each of those who are inside; it is that of the process, so the first one sets it, and the last one back."""


@contextmanager
def in_utc() -> Iterator[None]:
    """What is computed inside, and by processes that are started inside, does not depend on where the machine is."""
    with _lock:
        _before.append(os.environ.get(_NAME))
        _set(_UTC)
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                _set(first)


def _set(zone: str | None) -> None:
    if zone is None:
        os.environ.pop(_NAME, None)
    else:
        os.environ[_NAME] = zone
    time.tzset()
