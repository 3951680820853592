from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.digest import Digest, digest

values = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=5), st.floats(), st.booleans())
weighted = st.lists(st.tuples(st.dictionaries(st.integers(1, 4), values, max_size=4), st.integers(-3, 3)), max_size=12)


@given(weighted, st.integers(0, 12))
def test_digests_add_over_any_split_and_any_order(rows: list[tuple[dict[int, object], int]], at: int) -> None:
    assert digest(rows[:at]) + digest(rows[at:]) == digest(reversed(rows))


@given(weighted)
def test_what_is_inserted_and_removed_cancels_out(rows: list[tuple[dict[int, object], int]]) -> None:
    removed = [(row, -weight) for row, weight in rows]
    assert (digest(rows) + digest(removed)).is_same_state(Digest())
