"""Words that are the time of day where a text becomes a time, and only there."""

from __future__ import annotations

import pytest

from firnline.incremental.clock import has_word, spelt_out, word_of_clock, word_read
from firnline.incremental.sql_expression import parsed


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
    ("text", "is_there"),
    [
        ("year('today')", True),
        ("filter(xs, d -> d > 'Now utc')", True),
        ("concat('today is a ', d)", False),
        ("d > 'today is the day'", False),
    ],
)
def test_a_word_as_a_text(text: str, is_there: bool) -> None:
    assert has_word(parsed(text)) is is_there


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filter(xs, d -> d between '2026-01-01' and 'today')", "filter(xs, d -> d >= '2026-01-01' and d <= 'today')"),
        ("nvl(d, ifnull(e, 'now'))", "coalesce(d, coalesce(e, 'now'))"),
        ("nvl2(s, d, 'now')", "if(isNotNull(s), d, 'now')"),
        ("nullif(d, 'today')", "if(d = 'today', null, d)"),
        ("date_part('month', 'today')", "year('today')"),
        ("date_part('month', d)", "date_part('month', d)"),
    ],
)
def test_what_spark_does_not_spell_out(text: str, expected: str) -> None:
    assert spelt_out(parsed(text)) == parsed(expected)


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        ("Project [year(cast(today as date)) AS y#1]", "today"),
        ("Filter (d#1 >= cast( Now utc as timestamp))", " Now utc"),
        (
            "Project [filter(ds#1, lambdafunction((lambda d#2 > cast(tomorrow as timestamp_ntz)), lambda d#2, false)) AS f#3]",
            "tomorrow",
        ),
        ("Filter (s#1 = today)", None),
        ("Project [cast(today as string) AS s#1, cast(s#2 as date) AS d#3]", None),
        ("Project [concat(today, cast(d#1 as string)) AS c#2]", None),
    ],
)
def test_a_word_that_spark_casts(plan: str, word: str | None) -> None:
    assert word_read(plan) == word
