"""When a task that failed is tried again: as the code of its error says. One that no retry can help fails at once, elsewhere."""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType
from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy

from firnline.errors import code_in

MOST = timedelta(minutes=15)
_MOST_DOUBLINGS = 10
"""Beyond any way to ``MOST``."""

_RACE, _RESTART, _INPUT, _OUTSIDE = (timedelta(seconds=seconds) for seconds in (1, 5, 10, 30))
FIRST = MappingProxyType(
    {
        "COMMIT_CONTENDED": _RACE,
        "GENERATION_CHANGED": _RACE,
        "ENGINE_LOST": _RESTART,
        "ENGINE_UNAVAILABLE": _RESTART,
        "INPUT_NOT_READY": _INPUT,
        "CATALOG_UNAVAILABLE": _OUTSIDE,
        "EPOCH_NOT_OVER": _OUTSIDE,
        "MISSING_FILE": _OUTSIDE,
        "SINK_FAILED": _OUTSIDE,
        "SINK_UNAVAILABLE": _OUTSIDE,
        "SOURCE_UNAVAILABLE": _OUTSIDE,
        "SPARK_NOT_STARTED": _OUTSIDE,
        "STORAGE_UNAVAILABLE": _OUTSIDE,
    }
)
"""How long after the first try the second one is; each further one waits twice as long. Others as the task's own options say."""


class ByCode(RetryPolicy):
    """What was lost in a race is tried again at once, what waits for the outside later and later."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """The delay that the code asks for."""
        code = code_in(str(exception))
        first = FIRST.get(code or "")
        if first is None:
            return RetryDecision.default()
        # A clear goes on counting, and allows as many tries again: those before it are none of this round's.
        before = 0 if context is None else max(0, max_tries - context["task"].retries)
        doublings = min(max(0, try_number - before - 1), _MOST_DOUBLINGS)
        return RetryDecision.retry(min(MOST, first * 2**doublings), reason=code)
