"""Changes with the columns that Iceberg tells them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.incremental.relation import consolidated
from firnline.model.names import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT, DELETE, DIFF, EPOCH, INSERT, quoted

_NUMBERED = f"{EPOCH} bigint, {CHANGE_ORDINAL} int, {COMMIT_SNAPSHOT} bigint"


def as_feed(rows: DataFrame, columns: Sequence[str], numbered: Mapping[int, tuple[int, int]], *, is_net: bool) -> DataFrame:
    """Weighted rows of epochs as changes, each as often as it happened.

    Args:
        rows: The columns, ``_epoch`` and ``_diff``.
        columns: The columns.
        numbered: The ordinal and the snapshot of each epoch.
        is_net: Whether the epochs are taken as one, which has the only number.
    """
    session = rows.sparkSession
    assert isinstance(session, SparkSession)
    summed = rows.withColumn(EPOCH, F.lit(next(iter(numbered), 0)).cast("bigint")) if is_net else rows
    merged = frame_of(session, consolidated(relation_of(summed), (*columns, EPOCH)))
    told = session.createDataFrame([(epoch, *number) for epoch, number in numbered.items()], _NUMBERED)
    repeated = merged.join(F.broadcast(told), EPOCH).withColumn(
        "_firnline_each", F.explode(F.array_repeat(F.lit(0), F.abs(DIFF).cast("int")))
    )
    kind = F.when(F.col(DIFF) > 0, F.lit(INSERT)).otherwise(F.lit(DELETE)).alias(CHANGE_TYPE)
    return repeated.select(*(F.col(quoted(name)) for name in columns), kind, CHANGE_ORDINAL, COMMIT_SNAPSHOT)
