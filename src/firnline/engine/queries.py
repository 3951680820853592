"""SQL text as a DataFrame over given ones: translated into a plan, or as Spark reads it where that is not possible."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.errors import FirnlineError
from firnline.incremental.sql_relation import translated


def queried(session: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> tuple[DataFrame, FirnlineError | None]:
    """The rows of a query, and the refusal if it could not be translated."""
    try:
        relation = translated(text, {name: relation_of(frame) for name, frame in frames.items()})
    except FirnlineError as refusal:
        return verbatim(session, text, frames), refusal
    return frame_of(session, relation), None


def verbatim(session: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a query as Spark itself reads it."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return session.sql(text)
