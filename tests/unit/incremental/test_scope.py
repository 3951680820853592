"""What a name means: with a qualifier if that fits, in any case, into structs, and never two things at once."""

from __future__ import annotations

import pytest

from firnline.errors import FirnlineError
from firnline.incremental.scope import Field, resolved, split

FIELDS = [Field("c1", "id", "a"), Field("c2", "Name", "a"), Field("c3", "id", "b"), Field("c4", "a", "b")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a", ["a"]), ("a.b", ["a", "b"]), ("`a.b`.c", ["a.b", "c"]), ("`a``b`", ["a`b"]), ("s.`x y`.z", ["s", "x y", "z"])],
)
def test_identifiers_are_split_at_dots_outside_of_quotes(text: str, parts: list[str]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    ("text", "id", "path"),
    [
        ("name", "c2", []),
        ("a.id", "c1", []),
        ("B.ID", "c3", []),
        ("name.first", "c2", ["first"]),
        ("a.name.x", "c2", ["x"]),
        ("a.f", "c4", ["f"]),
    ],
)
def test_a_qualifier_wins_over_a_struct(text: str, id: str, path: list[str]) -> None:
    found = resolved(split(text), FIELDS)
    assert found is not None
    assert (found[0].id, found[1]) == (id, path)


def test_two_meanings_are_refused_and_none_is_none() -> None:
    with pytest.raises(FirnlineError, match="AMBIGUOUS_COLUMN"):
        resolved(["id"], FIELDS)
    assert resolved(["nope"], FIELDS) is None
