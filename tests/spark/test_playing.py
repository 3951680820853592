"""Events that are played: whatever order they come in, after every epoch the rows are those of all events done in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession

from firnline.engine.playing import KIND, NULL_SEQUENCE, SEQUENCE, events_of, of_keys, played, replaced, standing
from firnline.errors import FirnlineError
from firnline.model.feed import Feed
from firnline.model.names import DIFF
from tests.oracle.feed import Event, history, present, versions

Row = tuple[Any, ...]
COLUMNS = "h int, k int, v string, seq int, op string"
KEPT = f"h int, k int, v string, {SEQUENCE} int, {KIND} int"


def feed(**options: Any) -> Feed:
    return Feed(("h", "k"), "seq", "op = 'delete'", except_column_list=("seq", "op"), **options)


def given(events: Sequence[tuple[int, Event]]) -> list[Row]:
    return [(h, each.key, each.value, each.sequence, each.op) for h, each in events]


def difference(after: DataFrame, before: DataFrame) -> Counter[Row]:
    counted = Counter(map(tuple, after.collect()))
    counted.subtract(Counter(map(tuple, before.collect())))
    return counted


def follow(
    spark: SparkSession, feed: Feed, histories: Sequence[list[list[Event]]], expected: Callable[[Sequence[Event]], list[Row]]
) -> None:
    kept: list[Row] = []
    rows: Counter[Row] = Counter()
    for epoch in range(len(histories[0])):
        arrived = [(h, event) for h, each in enumerate(histories) for event in each[epoch]]
        new = events_of(spark.createDataFrame(given(arrived), COLUMNS), feed)
        before = spark.createDataFrame(kept, KEPT)
        changed = replaced(of_keys(before, new, feed.keys, is_few=True), standing(new, feed), feed).collect()
        counted = Counter(kept) + Counter(tuple(row)[:-1] for row in changed if row[DIFF] > 0)
        kept = list((counted - Counter(tuple(row)[:-1] for row in changed if row[DIFF] < 0)).elements())
        after = spark.createDataFrame(kept, KEPT)
        assert Counter(kept) == Counter(map(tuple, standing(before.unionAll(new), feed).collect()))
        is_all = feed.apply_as_truncates is not None
        touched = [each if is_all else of_keys(each, new, feed.keys, is_few=epoch % 2 == 0) for each in (after, before)]
        rows.update(difference(played(touched[0], feed), played(touched[1], feed)))
        so_far = [[event for events in each[: epoch + 1] for event in events] for each in histories]
        wanted = Counter((h, *row) for h, events in enumerate(so_far) for row in expected(events))
        assert {row: count for row, count in rows.items() if count} == wanted


def test_events_leave_the_last_row_of_a_key(spark: SparkSession) -> None:
    histories = [history(seed, epochs=3, size=9) for seed in range(80)]
    follow(spark, feed(), histories, present)


def test_events_leave_every_version_of_a_row(spark: SparkSession) -> None:
    histories = [history(seed, epochs=3, size=9) for seed in range(80)]
    follow(spark, feed(stored_as_scd_type=2), histories, versions)


@pytest.mark.parametrize("seed", range(2))
def test_a_truncate_takes_all_rows_before_it(spark: SparkSession, seed: int) -> None:
    truncated = feed(apply_as_truncates="op = 'truncate'")
    follow(spark, truncated, [history(seed, epochs=3, size=8, truncates=True)], present)


def test_a_sequence_may_have_several_columns(spark: SparkSession) -> None:
    composite = Feed(("k",), "struct(at, n)", stored_as_scd_type=2, except_column_list=("at", "n"))
    rows = spark.sql("VALUES (1, 'c', date'2026-01-01', 1), (1, 'b', date'2026-01-01', 0) AS t(k, v, at, n)")
    events = standing(events_of(rows, composite), composite)
    found = [(row["v"], row["__START_AT"]["n"], row["__END_AT"]) for row in played(events, composite).collect()]
    assert sorted((v, n, end and end["n"]) for v, n, end in found) == [("b", 0, 1), ("c", 1, None)]


@pytest.mark.parametrize("sequence", ["n", "struct(k, n)"])
def test_an_event_without_a_sequence_is_refused(spark: SparkSession, sequence: str) -> None:
    events = events_of(spark.sql("VALUES (1, 1), (1, NULL) AS t(k, n)"), Feed(("k",), sequence))
    with pytest.raises(PySparkException, match=NULL_SEQUENCE):
        standing(events, Feed(("k",), sequence)).collect()


@pytest.mark.parametrize(
    "wrong", [{"sequence_by": "nowhere"}, {"apply_as_deletes": "op"}, {"apply_as_truncates": "op = "}], ids=str
)
def test_what_is_no_expression_over_the_columns_is_refused(spark: SparkSession, wrong: dict[str, str]) -> None:
    with pytest.raises(FirnlineError) as refused:
        events_of(spark.createDataFrame([], COLUMNS), Feed(**{"keys": ("k",), "sequence_by": "seq", **wrong}))
    assert (refused.value.code, next(iter(wrong)) in refused.value.what) == ("BAD_OPTION", True)
