"""What has no single answer is found wherever it stands in an expression, and nothing else is."""

from __future__ import annotations

import pytest

from firnline.incremental.determinism import undetermined
from firnline.incremental.expressions import walk
from firnline.incremental.sql_expression import parsed


def is_undetermined(text: str) -> bool:
    return any(undetermined(each, frozenset()) is not None for each in walk(parsed(text)))


@pytest.mark.parametrize(
    "text",
    [
        "transform(xs, x -> current_timestamp())",
        "aggregate(xs, 0, (a, x) -> a + cast(rand() as int))",
        "exists(xs, x -> x > unix_timestamp())",
        "filter(ds, d -> d > date'today')",
        "aes_encrypt(s, k)",
        "aes_encrypt(s, k, 'CBC', 'PKCS', '')",
        "sort_array(first(xs))",
        "mode(x)",
    ],
)
def test_what_has_no_single_answer(text: str) -> None:
    assert is_undetermined(text)


@pytest.mark.parametrize(
    "text",
    [
        "transform(xs, x -> unix_timestamp(x))",
        "filter(xs, today -> today = 'now')",
        "aes_encrypt(s, k, 'ecb')",
        "aes_encrypt(s, k, 'GCM', 'NONE', unhex('00'))",
        "aes_decrypt(s, k)",
        "mode(x, true)",
    ],
)
def test_what_has_one(text: str) -> None:
    assert not is_undetermined(text)
