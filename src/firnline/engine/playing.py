"""Events of a change feed, and the rows that they leave when they are played.

rows(epoch) = played(standing(all events up to the epoch)), and standing(a + b) = standing(standing(a) + b), so that only what
stands has to be kept: of type 1 the last event of a key, of type 2 one event of a key and sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, GroupedData, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from firnline.errors import FirnlineError
from firnline.model.feed import END_AT, START_AT, Feed
from firnline.model.names import DIFF, quoted

SEQUENCE = "_firnline_sequence"
KIND = "_firnline_kind"
TRUNCATE, DELETE, UPSERT = 0, 1, 2
"""In the order in which events of one sequence are played."""
NULL_SEQUENCE = "the sequence of an event is null"
_OLD = "_firnline_old"
_FIRST = "_firnline_first"
_LAST = "_firnline_last"
_CHANGE = "_firnline_change"
_NEW = "_firnline_new"
_TRUNCATED = "_firnline_truncated"


def events_of(frame: DataFrame, feed: Feed) -> DataFrame:
    """What a source returned as events: the rows' columns, the sequence and the kind; of those that bring no row, no more."""
    kind = F.lit(UPSERT)
    if feed.apply_as_deletes is not None:
        kind = F.when(_condition(frame, "apply_as_deletes", feed.apply_as_deletes), DELETE).otherwise(kind)
    if feed.apply_as_truncates is not None:
        kind = F.when(_condition(frame, "apply_as_truncates", feed.apply_as_truncates), TRUNCATE).otherwise(kind)
    read = frame.select("*", _sequence(frame, feed.sequence_by).alias(SEQUENCE), kind.alias(KIND))
    names = [name for name in frame.columns if name not in feed.except_column_list]
    kept = [F.when(F.col(KIND) >= (DELETE if name in feed.keys else UPSERT), _column(name)).alias(name) for name in names]
    return read.select(*kept, SEQUENCE, KIND)


def standing(events: DataFrame, feed: Feed) -> DataFrame:
    """The events that later ones leave something of, once each."""
    grouped, order = _grouped(events, feed)
    return _spread(grouped.agg(F.max(order).alias(_LAST)), events.columns, feed)


def replaced(before: DataFrame, new: DataFrame, feed: Feed) -> DataFrame:
    """What new events change in those that stand, weighted: standing(before + new) - before."""
    both = before.withColumn(_OLD, F.lit(True)).unionAll(new.withColumn(_OLD, F.lit(False)))
    grouped, order = _grouped(both, feed)
    last = grouped.agg(F.max(order).alias(_LAST), F.max(F.when(F.col(_OLD), order)).alias(_FIRST))
    signs = F.array(*(F.struct(F.col(name).alias(_LAST), F.lit(sign).alias(DIFF)) for name, sign in ((_LAST, 1), (_FIRST, -1))))
    changed = last.where(~F.col(_LAST).eqNullSafe(F.col(_FIRST))).withColumn(_CHANGE, F.explode(signs)).drop(_LAST)
    each = changed.select("*", f"{_CHANGE}.{_LAST}", f"{_CHANGE}.{DIFF}").where(F.col(_LAST).isNotNull())
    return _spread(each, before.columns, feed, F.col(DIFF).cast("bigint").alias(DIFF))


def _grouped(events: DataFrame, feed: Feed) -> tuple[GroupedData, Column]:
    """Events of which one stands, and their order."""
    by = [F.col(KIND) == TRUNCATE, *map(_column, feed.keys), *([F.col(SEQUENCE)] if feed.has_versions else [])]
    others = [name for name in _names(events) if name not in feed.keys]
    order = F.struct(F.col(SEQUENCE), F.col(KIND), *map(_column, others))
    return events.groupBy(*(each.alias(f"_firnline_{position}") for position, each in enumerate(by))), order


def _spread(last: DataFrame, names: Sequence[str], feed: Feed, *more: Column) -> DataFrame:
    """Events by their columns, where keys and all the rest are apart."""
    at = {key: F.col(f"_firnline_{position}") for position, key in enumerate(feed.keys, 1)}
    columns = ((at[name] if name in at else F.col(f"{_LAST}.{quoted(name)}")).alias(name) for name in names)
    return last.select(*columns, *more)


def played(events: DataFrame, feed: Feed) -> DataFrame:
    """The rows that standing events leave; of all events of some keys, and all truncates, those of these keys."""
    return _versions(events, feed) if feed.has_versions else _present(events, feed)


def _present(events: DataFrame, feed: Feed) -> DataFrame:
    rows = events.where(F.col(KIND) == UPSERT)
    if feed.apply_as_truncates is not None:
        last = events.where(F.col(KIND) == TRUNCATE).agg(F.max(SEQUENCE).alias(_TRUNCATED))
        rows = rows.crossJoin(F.broadcast(last)).where(F.col(_TRUNCATED).isNull() | (F.col(SEQUENCE) >= F.col(_TRUNCATED)))
    return rows.select(*map(_column, _names(events)))


def _versions(events: DataFrame, feed: Feed) -> DataFrame:
    """An event that changes nothing begins no version."""
    names = _names(events)
    others = [name for name in names if name not in feed.keys]
    in_order = Window.partitionBy(*map(_column, feed.keys)).orderBy(SEQUENCE)
    before = F.coalesce(F.lag(KIND).over(in_order), F.lit(DELETE))
    same = [F.lag(_column(name)).over(in_order).eqNullSafe(_column(name)) for name in others]
    is_new = reduce(or_, [F.col(KIND) != before, *(~each & (F.col(KIND) == UPSERT) for each in same)])
    changes = events.withColumn(_NEW, is_new).where(_NEW)
    ended = changes.select("*", F.lead(SEQUENCE).over(in_order).alias(END_AT)).where(F.col(KIND) == UPSERT)
    return ended.select(*map(_column, names), F.col(SEQUENCE).alias(START_AT), END_AT)


def of_keys(events: DataFrame, touched: DataFrame, keys: Sequence[str], *, is_few: bool) -> DataFrame:
    """The events of the touched keys, and all truncates; ``is_few`` if all touched keys fit into memory."""
    wanted = touched.where(F.col(KIND) != TRUNCATE).select(
        *(_column(key).alias(f"_firnline_{position}") for position, key in enumerate(keys))
    )
    wanted = F.broadcast(wanted.distinct()) if is_few else wanted
    same = [_column(key).eqNullSafe(F.col(f"_firnline_{position}")) for position, key in enumerate(keys)]
    found = events.where(F.col(KIND) != TRUNCATE).join(wanted, reduce(and_, same), "left_semi")
    return found.unionAll(events.where(F.col(KIND) == TRUNCATE))


def _names(events: DataFrame) -> list[str]:
    return [name for name in events.columns if name not in (SEQUENCE, KIND, _OLD)]


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _condition(frame: DataFrame, option: str, text: str) -> Column:
    """An event for which the condition is null does not meet it."""
    kind = _type(frame, option, text).simpleString()
    if kind != "boolean":
        raise FirnlineError("BAD_OPTION", f"{option}={text!r} is of type {kind}, not true or false")
    return F.coalesce(F.expr(text), F.lit(False))


def _sequence(frame: DataFrame, text: str) -> Column:
    """The sequence of an event; one that is null, or of which a part is, is refused when it is met."""
    kind, sequence = _type(frame, "sequence_by", text), F.expr(text)
    parts = [sequence.getField(field.name) for field in kind.fields] if isinstance(kind, StructType) else []
    is_null = reduce(or_, (part.isNull() for part in (sequence, *parts)))
    return F.when(is_null, F.raise_error(F.lit(f"{NULL_SEQUENCE}: {text}"))).otherwise(sequence)


def _type(frame: DataFrame, option: str, text: str) -> DataType:
    """The type of an expression over the columns that a source returned."""
    try:
        return frame.select(F.expr(text)).schema.fields[0].dataType
    except PySparkException as error:
        said = str(error).split("\n\nJVM stacktrace")[0].split(";\n")[0].strip()
        raise FirnlineError("BAD_OPTION", f"{option}={text!r}: {said}") from error
