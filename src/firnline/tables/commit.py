"""Looking again until the outcome of a commit is known.

Everything but a definite conflict leaves the outcome of a commit unknown; only the catalog's present state tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_attempt, wait_random_exponential

from firnline.errors import FirnlineError
from firnline.world import world

T = TypeVar("T")

_MOST_ATTEMPTS = 45
"""About a minute: pauses grow to two seconds at most."""


def until_known(what: str, attempt: Callable[[], T | None]) -> T:
    """Look and try again until an attempt knows its outcome (anything but None), within bounds."""
    retrying = Retrying(
        retry=retry_if_result(lambda outcome: outcome is None),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        stop=stop_after_attempt(_MOST_ATTEMPTS),
        sleep=world().sleep,
    )
    try:
        outcome = retrying(attempt)
    except RetryError:
        raise FirnlineError("COMMIT_CONTENDED", f"{what} could not be committed in {_MOST_ATTEMPTS} attempts") from None
    assert outcome is not None
    return outcome
