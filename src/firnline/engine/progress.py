"""How far Spark's queries are, as lines of a log."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

INTERVAL = 5.0
"""Seconds between two lines; a query that takes less has none."""

_logger = logging.getLogger(__name__)


class Progress:
    """A progress handler of a session."""

    def __init__(self) -> None:
        self._last: dict[str | None, float] = {}

    def __call__(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Hear of a query, every other second."""
        now = time.monotonic()
        if done:
            self._last.pop(operation_id, None)
        elif now - self._last.setdefault(operation_id, now) >= INTERVAL:
            self._last[operation_id] = now
            _logger.info(sentence(list(stages or ()), inflight_tasks))


def sentence(stages: list[Any], running: int) -> str:
    """What is told of a query."""
    tasks, done = (sum(getattr(stage, name) for stage in stages) for name in ("num_tasks", "num_completed_tasks"))
    megabytes = sum(stage.num_bytes_read for stage in stages) / 1e6
    return f"Spark: {done} of {tasks} tasks done, {running} running, {megabytes:.1f} MB read"
