"""Rows are inserts, or changes: by weight in ``_diff``, or by word in Iceberg's ``_change_type``.

Changes are kept as they were given: only sums of weights count, so that merging equal rows, which costs a shuffle of all of them,
would change nothing.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation

from firnline.engine.frames import relation_of
from firnline.errors import FirnlineError
from firnline.model.names import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT,
    DELETE,
    DIFF,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)
from firnline.runtime.evaluation import checked, framed, in_order
from firnline.runtime.intake.taking import Taking
from firnline.runtime.writing import Destination

_CHANGE = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT)


class RowsIntake(Taking):
    """Rows, or changes of them."""

    def taken(self) -> DataFrame:
        """The rows, each with its weight."""
        collection = self.run.collection
        frame = framed(self.returned(), collection)
        is_typed, is_weighted = CHANGE_TYPE in frame.columns, DIFF in frame.columns
        if is_typed and is_weighted:
            raise FirnlineError("WRONG_COLUMNS", f"it returned both {DIFF} and {CHANGE_TYPE}", collection.where)
        checked(frame, collection, _CHANGE if is_typed else (DIFF,))
        if is_typed:
            return frame.withColumn(DIFF, _typed()).drop(*_CHANGE)
        if is_weighted:
            return frame.withColumn(DIFF, _weight()).where(F.col(DIFF) != 0)
        return frame.withColumn(DIFF, F.lit(1).cast("bigint"))

    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """The rows themselves."""
        return relation_of(in_order(taken, [*destination.names, DIFF]))


def _weight() -> Column:
    return F.coalesce(F.col(DIFF).cast("bigint"), F.raise_error(F.lit("_diff is null")).cast("bigint"))


def _typed() -> Column:
    kind = F.upper(F.col(CHANGE_TYPE))
    said = F.concat(F.lit("_change_type is "), F.coalesce(F.col(CHANGE_TYPE), F.lit("null")))
    inserts, deletes = kind.isin(INSERT, UPDATE_AFTER), kind.isin(DELETE, UPDATE_BEFORE)
    return F.when(inserts, 1).when(deletes, -1).otherwise(F.raise_error(said).cast("int")).cast("bigint")
