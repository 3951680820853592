"""What collections are known as, whatever is renamed, retired and made anew: one log, one name in plans, for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.plan.agreement import Agreement
from firnline.plan.renaming import called_now, forgotten, known_as, renamed

NAMES = st.sampled_from("abc")
STEPS = st.lists(st.tuples(st.sampled_from(["rename", "create", "retire"]), NAMES, NAMES), max_size=12)


@given(STEPS)
def test_a_log_is_known_as_one_thing_that_no_other_ever_was(steps: list[tuple[str, str, str]]) -> None:
    present, logs, known = Agreement(), {"a": 0}, {0: "a"}
    for step, old, new in steps:
        if step == "rename" and old in logs and new not in logs:
            present = renamed(present, old, new)
            assert renamed(present, old, new) == present, "whoever died writes it down again"
            logs[new] = logs.pop(old)
            assert called_now(present.names, old) == new
        elif step == "create" and new not in logs:
            logs[new] = len(known)
            known[logs[new]] = known_as(present, new)
        elif step == "retire" and old in logs:
            present = forgotten(present, old)
            del logs[old]
        assert {number: known_as(present, name) for name, number in logs.items()} == {each: known[each] for each in logs.values()}
        assert len(set(known.values())) == len(known)
