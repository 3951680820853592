"""Words that are the time of day where a text becomes a time, and only there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql.connect.proto import Expression

from firnline.incremental.clock import word_beside_time, word_of_clock
from firnline.incremental.sql_expression import parsed


def kinds(expressions: Sequence[Expression]) -> list[str]:
    """A column d of dates, and texts."""
    return ["date" if each.unresolved_attribute.unparsed_identifier == "d" else "string" for each in expressions]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("timestamp'now'", "now"),
        ("cast(' Today utc' as date)", " Today utc"),
        ("try_cast(lower('NOW') as timestamp_ntz)", "NOW"),
        ("to_date('tomorrow')", "tomorrow"),
        ("to_date('tomorrow', 'yyyy')", None),
        ("date'2026-01-01'", None),
        ("cast('epoch' as date)", None),
        ("cast('today' as string)", None),
        ("cast(if(s = 'today', s, '2026-01-01') as date)", None),
        ("cast('nowhere' as date)", None),
    ],
)
def test_a_cast_of_a_word(text: str, word: str | None) -> None:
    assert word_of_clock(parsed(text)) == word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("d >= 'today'", "today"),
        ("s = 'a' or d in ('2026-01-01', 'yesterday')", "yesterday"),
        ("d between '2026-01-01' and 'today'", "today"),
        ("coalesce(d, 'now')", "now"),
        ("s = 'today'", None),
        ("case when d > '2026-01-01' then 'today' end", None),
        ("concat('today ', d)", None),
        ("d > 'today is the day'", None),
        ("filter(xs, d -> d > 'today')", None),
    ],
)
def test_a_word_beside_a_time(text: str, word: str | None) -> None:
    assert word_beside_time(parsed(text), kinds) == word
