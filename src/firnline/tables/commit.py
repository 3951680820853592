"""Looking again until the outcome of a commit is known.

Everything but a definite conflict leaves the outcome of a commit unknown; only the catalog's present state tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

from firnline.errors import FirnlineError

T = TypeVar("T")

_PATIENCE_SECONDS = 60


def until_known(what: str, attempt: Callable[[], T | None]) -> T:
    """Look and try again until an attempt knows its outcome (anything but None), for a bounded time."""
    retrying = Retrying(
        retry=retry_if_result(lambda outcome: outcome is None),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        stop=stop_after_delay(_PATIENCE_SECONDS),
    )
    try:
        outcome = retrying(attempt)
    except RetryError:
        raise FirnlineError("COMMIT_CONTENDED", f"{what} could not be committed in {_PATIENCE_SECONDS} s") from None
    assert outcome is not None
    return outcome
