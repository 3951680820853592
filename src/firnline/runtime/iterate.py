"""``firnline.iterate``: recursion to a fixpoint, in a stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = 100


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

    variable = seed.sparkSession.createDataFrame([], seed.schema)
    both = seed.union(step(variable))
    return aliased(both, mark(relation_of(variable).common.plan_id, most))
