"""Rows that meet a condition, and the others: null counts as not met."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.engine.frames import exact
from firnline.errors import FirnlineError
from firnline.model.names import BOOKKEEPING


def check_condition(rows: DataFrame, condition: str) -> None:
    """Refuse a condition that is not one on the user's columns of a log."""
    users = rows.drop(*BOOKKEEPING)
    try:
        kind = users.select(F.expr(condition)).schema.fields[0].dataType.simpleString()
        _ = users.where(F.expr(condition)).schema
    except PySparkException as error:
        said = str(error).split("\n\nJVM stacktrace")[0].split(";\n")[0].strip()
        raise FirnlineError("BAD_CONDITION", f"{condition!r}: {said}") from error
    if kind != "boolean":
        raise FirnlineError("BAD_CONDITION", f"{condition!r} is of type {kind}, not true or false")


def divided(rows: DataFrame, condition: str) -> tuple[DataFrame, DataFrame]:
    """The rows for which a condition is true, and those for which it is not."""
    found, is_met = exact(rows), F.coalesce(F.expr(condition), F.lit(False))
    return found.where(is_met), found.where(~is_met)
