"""``firnline.epoch_time``: the logical time of a stage's state, which passes from epoch to epoch.

It is the end of the epoch being computed. In a predicate it makes a rolling window: rows leave as it passes, without any input.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.epoch import to_datetime
from firnline.model.names import EPOCH_TIME

if TYPE_CHECKING:
    from pyspark.sql import Column

_NOW: ContextVar[tuple[int, bool]] = ContextVar("firnline_epoch_time")


def epoch_time() -> Column:
    """The end of the epoch: a timestamp, or a bigint for an integer schedule."""
    from pyspark.sql import functions as F

    try:
        point, is_timed = _NOW.get()
    except LookupError:
        raise FirnlineError("NO_EPOCH", "epoch_time() was called outside of a stage") from None
    return F.lit(to_datetime(point) if is_timed else point).cast("timestamp" if is_timed else "bigint").alias(EPOCH_TIME)


@contextmanager
def at(point: int, *, is_timed: bool) -> Iterator[None]:
    """Let logical time be a point."""
    token = _NOW.set((point, is_timed))
    try:
        yield
    finally:
        _NOW.reset(token)
