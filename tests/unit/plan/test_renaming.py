"""What collections are known as, whatever is renamed, retired and made anew: one log, one name in plans, for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.hold import Back, Hold
from firnline.plan.agreement import Agreement
from firnline.plan.renaming import called_now, forgotten, known_as, renamed
from firnline.plan.rewinding import Rewind

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


def test_nothing_is_said_of_a_collection_that_has_no_log_any_more() -> None:
    back = (Back(3, {"sales": 1, "sales__quarantine": 0, "visits": 0}), Back(2, {"sales": 2}))
    sink = Hold(
        "sink", "shop", 2, delivered={"sales": 2, "visits": 1}, line=2, back=back, ahead=5, seen={"sales": 4, "visits": 6}
    )
    branch = Hold("branch", "what_if", 1)
    rewind = Rewind("r", 2, 5, {"sales": 3, "sales__ab12": 3, "visits": 1}, stages=("sales", "visits"))
    found = forgotten(Agreement(holds=(sink, branch), rewinds=(rewind,)), "sales")
    left, other = found.holds
    assert (left.delivered, left.seen, other) == ({"visits": 1}, {"visits": 6}, branch)
    assert (left.line, left.back) == (2, (Back(3, {"visits": 0}), Back(2, {}))), "positions on older lines are still told apart"
    assert [(each.logs, each.stages) for each in found.rewinds] == [({"visits": 1}, ("visits",))]
