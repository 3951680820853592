from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import FirnlineError
from firnline.model.declaration import OnChange, Pipeline
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, branched, check
from firnline.plan.agreement import Agreement
from firnline.plan.changing import Approval, approved, check_change


def graph(on_change: OnChange) -> Graph:
    web = Pipeline("web", schedule=1, start=0, on_change=on_change)

    @web.source(keys=["id"])
    def visits(epoch): ...

    @web.stage(keys=["id"])
    def revenue(visits): ...

    return check(web, {"visits": "v", "revenue": "r"})


CODES = st.sampled_from("abc")
FINGERPRINTS = st.builds(Fingerprint, CODES, st.sampled_from([None, "p", "q"]))
APPROVALS = st.lists(
    st.builds(Approval, st.sampled_from(["visits", "revenue"]), CODES, st.sampled_from([None, "p", "q"]), st.integers(0, 3))
)


@given(
    on_change=st.sampled_from(["await_approval", "allow", "reject"]),
    made_by=st.none() | FINGERPRINTS,
    today=FINGERPRINTS,
    approvals=APPROVALS,
    at=st.integers(0, 3),
)
def test_an_epoch_is_made_if_nothing_changed_or_somebody_may_and_did_say_so(on_change, made_by, today, approvals, at):
    web = graph(on_change)
    is_change = made_by is not None and (
        made_by.plan != today.plan if made_by.plan and today.plan else made_by.code != today.code
    )
    is_approved = any(
        each.collection == "revenue"
        and each.at <= at
        and (each.plan == today.plan if each.plan and today.plan else each.code == today.code)
        for each in approvals
    )
    expected = None
    if is_change and on_change != "allow" and not is_approved:
        expected = "CHANGE_REJECTED" if on_change == "reject" else "CHANGE_NOT_APPROVED"
    found = None
    try:
        check_change(web, web.collection("revenue"), made_by, today, approvals, at)
    except FirnlineError as error:
        found = error.code
    assert found == expected


def test_the_refusal_says_what_changed_and_what_to_do():
    web = graph("await_approval")
    with pytest.raises(FirnlineError) as caught:
        check_change(web, web.collection("revenue"), Fingerprint("old"), Fingerprint("new"), (), 3)
    message = str(caught.value)
    assert "'revenue'" in message
    assert "epochs before 3" in message
    assert "'firnline approve web'" in message
    assert "test_changing.py:" in message
    assert not caught.value.retryable


@given(st.lists(APPROVALS, max_size=4))
def test_the_newest_approval_of_a_collection_stands(rounds):
    agreement = Agreement(since=7)
    for each in rounds:
        agreement = approved(agreement, each)
    given = [each for of in rounds for each in {each.collection: each for each in of}.values()]
    newest = {each.collection: (each.code, each.plan) for each in given}
    assert {each.collection: (each.code, each.plan) for each in agreement.approvals} == newest
    assert len(agreement.approvals) == len(newest)
    for each in agreement.approvals:
        last, *earlier = (other for other in reversed(given) if other.collection == each.collection)
        points = [last.at]
        for other in earlier:  # of the same code, or the same plan, one after the other
            if not other.is_of(last.collection, Fingerprint(last.code, last.plan)):
                break
            points, last = [*points, other.at], other
        assert each.at == min(points), "approved stays approved"
    assert replace(agreement, approvals=()) == Agreement(since=7)


def test_no_branch_is_asked():
    assert {branched(graph(each), "web__try").on_change for each in ("await_approval", "allow", "reject")} == {"allow"}


def test_a_graph_remembers_its_answer():
    assert Graph.of_json(graph("reject").as_json()).on_change == "reject"
