from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from firnline.testing.differing import SHOWN, difference, told


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ([{"a": 1, "b": None}], [{"b": None, "a": 1}]),
        ([{"a": float("nan")}, {"a": -0.0}], [{"a": 0.0}, {"a": float("nan")}]),
        ([{"a": 0.1 + 0.2}, {"a": 0.3}], [{"a": 0.3}, {"a": 0.3}]),
        ([{"a": [1, {"b": 1e300}]}], [{"a": [1, {"b": 1e300 * (1 + 1e-14)}]}]),
        ([{"a": Decimal("1.0")}], [{"a": Decimal("1.00")}]),
        ([], []),
    ],
)
def test_the_same_rows_in_another_form_do_not_differ(expected: list[Any], found: list[Any]) -> None:
    assert difference(expected, found) == ([], [])


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ([{"a": 1}, {"a": 1}], [{"a": 1}]),
        ([{"a": None}], [{"a": 0}]),
        ([{"a": 1.0}], [{"a": 1.0 + 1e-9}]),
        ([{"a": 1.0}], [{"a": None}]),
        ([{"a": 1}], [{"a": 1, "b": None}]),
        ([{"a": "1"}], [{"a": 1}]),
        ([{"a": 10**15}], [{"a": 10**15 + 1}]),
    ],
)
def test_other_rows_differ(expected: list[Any], found: list[Any]) -> None:
    assert difference(expected, found) != ([], [])
    assert difference(found, expected) != ([], [])


def test_a_difference_is_told_as_a_table() -> None:
    text = told(
        [{"name": "Ada", "n": 1}, {"name": None, "n": 2}], [{"name": "Ada", "n": 1}, {"name": "Chloé", "n": 3}], names=("a", "b")
    )
    assert text == "\n".join(["  - 1 only a, + 1 only b:", "    | name  | n", "  - | null  | 2", "  + | Chloé | 3"])


def test_of_many_rows_some_are_told() -> None:
    text = told([{"n": number} for number in range(SHOWN + 5)], [], names=("a", "b"))
    assert text is not None
    assert text.endswith("and 5 more")
