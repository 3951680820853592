"""What a run for an epoch means, against the sentences of docs/guides/changing_code.md, over everything there is to combine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import FirnlineError
from firnline.model.declaration import Pipeline
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, check
from firnline.plan.changing import Approval
from firnline.plan.rerunning import Held, check_replay, meaning, reach
from firnline.plan.rewinding import Rewind

POLICIES = ["await_approval", "allow", "reject"]
FINGERPRINTS = st.builds(Fingerprint, st.sampled_from("ab"), st.sampled_from([None, "p", "q"]))


def graph(on_change: Any) -> Graph:
    web = Pipeline("web", schedule=1, start=0, on_change=on_change)

    @web.source(keys=["id"])
    def visits(epoch: Any) -> Any: ...

    @web.stage(keys=["id"])
    def seen(visits: Any) -> Any: ...

    @web.stage(keys=["id"])
    def totals(seen: Any) -> Any: ...

    return check(web, {"visits": "v", "seen": "s", "totals": "t"})


def same(one: Fingerprint, other: Fingerprint) -> bool:
    return one.plan == other.plan if one.plan and other.plan else one.code == other.code


def outcome(ask: Any) -> str:
    try:
        return str(ask())
    except FirnlineError as error:
        return error.code


@given(
    on_change=st.sampled_from(POLICIES),
    name=st.sampled_from(["visits", "seen"]),
    at=st.integers(0, 3),
    held=st.none() | st.builds(Held, FINGERPRINTS, FINGERPRINTS, FINGERPRINTS, st.booleans(), st.integers(0, 3)),
    approval=st.none() | st.builds(Approval, st.just("seen"), st.sampled_from("ab"), st.none(), st.integers(0, 3)),
    is_forced=st.booleans(),
)
def test_what_a_run_means_follows_from_what_the_log_was_made_with(on_change, name, at, held, approval, is_forced):  # type: ignore[no-untyped-def]
    web = graph(on_change)
    collection, epoch, approvals = web.collection(name), Epoch(at, at + 1), [approval] if approval else []
    found = outcome(lambda: meaning(web, collection, epoch, held, approvals, is_forced=is_forced))
    if held is None:
        assert found == "make", "what is missing is filled, and what failed is missing"
        return
    is_approved = approval is not None and name == "seen" and same(Fingerprint(approval.code), held.today)
    if at < held.since:
        assert found == ("EPOCH_COMPACTED" if is_forced else "keep")
    elif is_forced:
        assert found == "replay"
    elif same(held.today, held.made_by):
        assert found == ("replay" if held.has_other_inputs else "keep")
    elif on_change == "allow" or (is_approved and approval.at <= at):
        assert found == "replay"
    elif is_approved or name == "visits" or same(held.today, held.newest):
        assert found == "keep", "the change is taken from a later epoch on"
    else:
        assert found == ("CHANGE_REJECTED" if on_change == "reject" else "CHANGE_NOT_APPROVED")


@pytest.mark.parametrize("on_change", POLICIES)
@pytest.mark.parametrize("is_forced", [False, True])
@pytest.mark.parametrize("approved_from", [None, 1, 2, 3])
def test_a_replay_is_refused_if_a_stage_further_on_changed_unasked(
    on_change: str, is_forced: bool, approved_from: int | None
) -> None:
    web = graph(on_change)
    today = {"seen": Fingerprint("s"), "totals": Fingerprint("new")}
    made_by = {"seen": [Fingerprint("s")], "totals": [Fingerprint("t")]}
    approvals = [] if approved_from is None else [Approval("totals", "new", None, approved_from)]
    found = outcome(lambda: check_replay(web, 2, today, made_by, today, approvals, is_forced=is_forced))
    if on_change == "allow" or (on_change == "await_approval" and (is_forced or approved_from in (1, 2))):
        assert found == "None"
    else:
        assert found == ("CHANGE_REJECTED" if on_change == "reject" else "CHANGE_NOT_APPROVED")


@given(
    at=st.integers(0, 8),
    rewinds=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9), st.sampled_from(["seen", "totals"])), max_size=5),
)
def test_a_run_brings_back_all_that_was_taken_out_with_its_epoch(at: int, rewinds: list[tuple[int, int, str]]) -> None:
    taken = [Rewind(str(n), to, max(to, upper), {}, stages=(of,)) for n, (to, upper, of) in enumerate(rewinds)]
    ended = {each.name: each.upper + 1 for each in taken[::2]}
    found = reach(Epoch(at, at + 1), "seen", taken, ended)
    ours = [ended.get(each.name, each.upper) for each in taken if each.stages == ("seen",) and each.to <= at]
    assert found in {at + 1, *ours}
    assert all(found >= each for each in (at + 1, *ours))
