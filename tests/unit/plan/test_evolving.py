"""Columns that change: whatever a log takes, it takes once, and never a value that is another afterwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.plan.evolving import evolution, is_wider

TYPES = ("int", "bigint", "float", "double", "string", "decimal(5,2)", "decimal(9,2)", "decimal(9,4)", "array<int>")
columns = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(TYPES))


def taken(stored: dict[str, str], found: dict[str, str], renamed: list[tuple[str, str]]) -> dict[str, str]:
    """The columns of a log after it took others, done by hand."""
    needed = evolution(stored, found, renamed)
    moved = dict(needed.renamed)
    after = {moved.get(name, name): kind for name, kind in stored.items()}
    return after | {name: found[name] for name in (*needed.added, *needed.widened)}


@given(columns, columns, st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=2))
def test_what_was_taken_once_needs_nothing_more(
    stored: dict[str, str], found: dict[str, str], renamed: list[tuple[str, str]]
) -> None:
    needed = evolution(stored, found, renamed)
    after = taken(stored, found, renamed)
    again = evolution(after, found, renamed)
    assert (again.added, again.widened, again.renamed) == ((), (), ())
    assert (again.left_out, again.refused) == (needed.left_out, needed.refused)
    assert len(after) == len(stored) + len(needed.added), "no column is lost"
    for name in found:
        fits = after[name] == found[name] or is_wider(found[name], after[name])
        assert fits == (name not in needed.refused)


@given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(TYPES))
def test_wider_is_an_order(one: str, other: str, third: str) -> None:
    assert not is_wider(one, one)
    assert not (is_wider(one, other) and is_wider(other, one))
    if is_wider(one, other) and is_wider(other, third):
        assert is_wider(one, third)


def test_two_names_for_one_column_are_no_renaming() -> None:
    found = evolution({"a": "int"}, {"b": "int", "c": "int"}, [("a", "b"), ("a", "c")])
    assert (found.renamed, found.added) == ((("a", "b"),), ("c",))
    found = evolution({"a": "int", "b": "int"}, {"c": "int"}, [("a", "c"), ("b", "c")])
    assert (found.renamed, found.left_out) == ((("a", "c"),), ("b",))
