"""Records by their ids: one of each, those that a log holds already, and the filter by which its files leave out the others.

A filter names the wanted ids part by part. Iceberg leaves of it what a file's part may hold, skips files by their bounds, and
row groups by their Bloom filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Expression
from pyspark.sql.types import DataType, IntegerType, LongType, StringType

from firnline.engine.frames import arrow_of
from firnline.engine.hashing import part_of
from firnline.engine.staging import Column
from firnline.incremental.relation import any_of, call, column, integer, small_integer, text
from firnline.model.names import DIFF, PART, quoted

_LITERALS: Mapping[DataType, Callable[[Any], Expression]] = {
    IntegerType(): small_integer,
    LongType(): integer,
    StringType(): text,
}
"""The types whose values files can be asked for."""


def is_askable(kind: DataType) -> bool:
    """Whether files can be asked for values of a type."""
    return kind in _LITERALS


def first_of(rows: DataFrame, ids: Sequence[str]) -> DataFrame:
    """One row of every id: the smallest by all other columns."""
    names = [name for name in rows.columns if name not in ids]
    by = [F.col(quoted(name)) for name in ids]
    if not names:
        return rows.distinct()
    others = F.struct(*(F.col(quoted(name)).alias(f"c{at}") for at, name in enumerate(names)))
    least = rows.groupBy(*by).agg(F.min(others).alias("_firnline_least"))
    return least.select(*by, *(F.col(f"_firnline_least.c{at}").alias(name) for at, name in enumerate(names)))


def unseen(rows: DataFrame, log: DataFrame, ids: Sequence[str], *, is_small: bool) -> DataFrame:
    """The rows whose ids no row of a log has; with ``is_small`` they are few enough to be handed to every task.

    Args:
        rows: One of every id.
        log: Weighted rows.
        ids: The columns of the ids.
        is_small: Whether there are few of them.
    """

    def renamed(frame: DataFrame) -> DataFrame:
        return frame.select(*(F.col(quoted(name)).alias(f"_firnline_{at}") for at, name in enumerate(ids)))

    matching = reduce(and_, (F.col(quoted(name)).eqNullSafe(F.col(f"_firnline_{at}")) for at, name in enumerate(ids)))
    wanted = F.broadcast(renamed(rows)) if is_small else renamed(rows)
    held = log.select(*(F.col(quoted(name)) for name in ids), DIFF).join(wanted, matching, "left_semi")
    weights = held.groupBy(*(F.col(quoted(name)) for name in ids)).agg(F.sum(DIFF).alias(DIFF))
    return rows.join(renamed(weights.where(F.col(DIFF) > 0)), matching, "left_anti")


def asked_for(rows: DataFrame, ids: Sequence[Column], placed_by: Sequence[Column], parts: int) -> Expression | None:
    """The filter that the ids of some rows meet; None if files cannot be asked for them.

    Args:
        rows: They hold the ids.
        ids: The columns of the ids, as the log has them.
        placed_by: The columns whose hash places a row in a part; if they are no ids, a row may be in any.
        parts: How many parts.
    """
    known = [of for of in ids if is_askable(of.kind)]
    if not known:
        return None
    is_placed = {of.name for of in placed_by} <= {of.name for of in ids}
    part = part_of([(of.name, of.kind) for of in placed_by], parts) if is_placed else F.lit(0)
    found = arrow_of(rows.select(*(F.col(quoted(of.name)).alias(f"c{at}") for at, of in enumerate(known)), part.alias(PART)))
    each = []
    for number in pc.unique(found[PART]).to_pylist():
        values = _values(known, found.filter(pc.equal(found[PART], number)))
        in_part = [call("==", column(PART), small_integer(number))] if is_placed else []
        each.append(reduce(partial(call, "and"), [*in_part, *values]))
    return any_of(each)


def _values(known: Sequence[Column], held: pa.Table) -> list[Expression]:
    """That each column has one of its values, and lies between the least and the greatest of them."""
    conditions = []
    for at, of in enumerate(known):
        literal, name = _LITERALS[of.kind], column(of.name)
        values = sorted(set(held[f"c{at}"].drop_null().to_pylist()))
        alternatives = [call("isnull", name)] if held[f"c{at}"].null_count else []
        if values:
            bounds = [call(">=", name, literal(values[0])), call("<=", name, literal(values[-1]))]
            alternatives.append(reduce(partial(call, "and"), [*bounds, call("in", name, *map(literal, values))]))
        conditions.append(reduce(partial(call, "or"), alternatives))
    return conditions
