"""Looking again until the outcome of a commit is known.

Everything but a definite answer leaves the outcome of a commit unknown; only the catalog's present state tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

from firnline.errors import FirnlineError
from firnline.world import world

T = TypeVar("T")

_MOST_ATTEMPTS = 45
"""About a minute of pauses, which grow to two seconds."""
_PATIENCE_SECONDS = 120
"""For attempts that wait themselves, as for a lock."""
_logger = logging.getLogger(__name__)


def until_known(what: str, attempt: Callable[[], T]) -> T:
    """Let an attempt look and try until it knows its outcome, within bounds; a definite error ends it at once."""
    retrying = Retrying(
        retry=retry_if_exception(_is_uncertain),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        stop=stop_after_attempt(_MOST_ATTEMPTS) | stop_after_delay(_PATIENCE_SECONDS),
        sleep=world().sleep,
        before_sleep=lambda state: _logger.info("%s is uncertain, looking again: %s", what, state.outcome),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except FirnlineError:
        raise
    except Exception as error:
        raise FirnlineError("COMMIT_CONTENDED", f"{what} could not be committed in {_MOST_ATTEMPTS} attempts: {error}") from error


def _is_uncertain(error: BaseException) -> bool:
    return error.retryable if isinstance(error, FirnlineError) else isinstance(error, Exception)
