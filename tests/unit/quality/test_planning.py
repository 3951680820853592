"""Which expectations are answered by numbers, and which are left to Great Expectations."""

from __future__ import annotations

from typing import Any

import pytest

from firnline.quality.judging import Numbers, judged, told
from firnline.quality.planning import planned

TYPES = {"n": "bigint", "x": "double", "m": "decimal(12,2)", "s": "string", "d": "date", "b": "boolean"}


def config(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": f"expect_{kind}", "kwargs": kwargs, "meta": {}}


BY_NUMBERS = [
    config("table_row_count_to_be_between", min_value=1),
    config("column_values_to_not_be_null", column="d", mostly=0.5),
    config("column_values_to_be_between", column="m", min_value=0, max_value=None),
    config("column_values_to_be_in_set", column="s", value_set=["a"]),
    config("column_values_to_match_regex", column="s", regex="^a"),
    config("column_mean_to_be_between", column="x", max_value=1.5, strict_max=True),
    config("column_unique_value_count_to_be_between", column="b", min_value=1),
]
LEFT = {
    "a row condition": config("column_values_to_not_be_null", column="n", row_condition="x > 1", condition_parser="spark"),
    "a parameter": config("column_max_to_be_between", column="n", max_value={"$PARAMETER": "most"}),
    "dates as text": config("column_values_to_be_between", column="d", min_value="2026-01-01"),
    "a null in the set": config("column_values_to_be_in_set", column="s", value_set=["a", None]),
    "numbers in a set of text": config("column_values_to_be_in_set", column="s", value_set=[1]),
    "truth values as numbers": config("column_values_to_be_in_set", column="n", value_set=[True]),
    "bounds in the wrong order": config("column_values_to_be_between", column="n", min_value=2, max_value=1),
    "no bounds": config("column_max_to_be_between", column="n"),
    "bounds that are none": config("column_max_to_be_between", column="n", max_value=float("nan")),
    "a share above one": config("column_values_to_not_be_null", column="n", mostly=2),
    "half a row": config("table_row_count_to_be_between", min_value=0.5),
    "an argument that is not known": config("column_values_to_not_be_null", column="n", colour="red"),
    "another type": config("column_values_to_be_unique", column="n"),
    "several columns where one is asked for": config("column_values_to_not_be_null", column=["n", "s"]),
    "a field of a struct": config("column_values_to_not_be_null", column="n.inner"),
}


@pytest.mark.parametrize("expectation", BY_NUMBERS, ids=lambda each: str(each["type"]))
def test_numbers_answer(expectation: dict[str, Any]) -> None:
    found = planned(expectation, TYPES)
    assert found is not None
    assert found.config == expectation


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_understood_whole_is_left_to_great_expectations(name: str) -> None:
    assert planned(LEFT[name], TYPES) is None


def test_mostly_is_about_values_that_are_not_null() -> None:
    expectation = planned(config("column_values_to_be_between", column="n", min_value=0, mostly=0.5), TYPES)
    assert expectation is not None
    assert judged(expectation, Numbers(rows=100, nulls=90, unexpected=5))["success"]
    result = judged(expectation, Numbers(rows=100, nulls=90, unexpected=6))
    assert not result["success"]
    assert result["result"] == {
        "element_count": 100,
        "unexpected_count": 6,
        "unexpected_percent": 60.0,
        "missing_count": 90,
        "missing_percent": 90.0,
        "unexpected_percent_total": 6.0,
        "unexpected_percent_nonmissing": 60.0,
    }
    assert told(result) == "expect_column_values_to_be_between of 'n' (min_value=0, mostly=0.5): 6 of 100 rows are not so"


def test_a_number_of_nothing_but_nulls_is_not_between() -> None:
    expectation = planned(config("column_sum_to_be_between", column="n", min_value=0), TYPES)
    assert expectation is not None
    assert not judged(expectation, Numbers(rows=3, nulls=3))["success"]
    assert judged(expectation, Numbers(rows=0))["success"], "of no rows nothing is said"
