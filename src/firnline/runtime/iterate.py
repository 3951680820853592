"""``firnline.iterate``: recursion to a fixpoint, in a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 100
_AT_ONCE: ContextVar[bool] = ContextVar("firnline_at_once", default=False)


def iterate(seed: DataFrame, step: Callable[[DataFrame], DataFrame], *, most: int = MOST) -> DataFrame:
    """The fixpoint of a step: seed, step(seed), step(step(seed)), ... until nothing changes.

    Args:
        seed: Where it begins.
        step: From the rows of one iteration to those of the next, with the same columns. It sees all rows of an iteration, so a
            step that adds to them has to keep them, too.
        most: After so many iterations without a fixpoint the epoch fails.
    """
    from firnline.engine.frames import aliased, relation_of
    from firnline.incremental.recursing import mark

    if _AT_ONCE.get():
        return _iterated(seed, step, most)
    variable = seed.sparkSession.createDataFrame([], seed.schema)
    both = seed.union(step(variable))
    return aliased(both, mark(relation_of(variable).common.plan_id, most))


@contextmanager
def at_once() -> Iterator[None]:
    """What is iterated inside is computed there and then, by plain Spark."""
    token = _AT_ONCE.set(True)
    try:
        yield
    finally:
        _AT_ONCE.reset(token)


def _iterated(seed: DataFrame, step: Callable[[DataFrame], DataFrame], most: int) -> DataFrame:
    from firnline.engine.frames import arrow_of

    def kept(frame: DataFrame) -> DataFrame:
        return frame.sparkSession.createDataFrame(arrow_of(frame), seed.schema)

    rows = kept(seed)
    for _ in range(most):
        after = kept(step(rows))
        if after.exceptAll(rows).isEmpty() and rows.exceptAll(after).isEmpty():
            return after
        rows = after
    raise FirnlineError("NOT_CONVERGED", f"after {most} iterations the rows still change")
