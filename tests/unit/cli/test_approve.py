"""``firnline approve``: what a newcomer types who edited a stage. Without a JVM."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firnline.runtime.project import Project
from tests.project import command
from tests.web_logs import copies


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("approve") / "project")


def test_a_change_is_approved_from_the_next_epoch_on_or_from_a_past_one(kept: Callable[[], Project]) -> None:
    made = kept()
    root, code = made.settings.root, made.graph("web").fingerprints["seen"]
    (found,) = command(root, "approve", "web", "--json")
    assert (found["collection"], found["code"], found["at"]) == ("seen", code, "3"), "a source is not asked about"
    assert command(root, "approve", "web", "--stage", "visits", "--json") == []
    past = command(root, "approve", "web", "--from", "1", "--json")
    assert [(each["collection"], each["at"]) for each in past] == [("visits", "1"), ("seen", "1")]
    assert {(each.collection, each.at) for each in made.control("web").agreement().approvals} == {("visits", 1), ("seen", 1)}
    command(root, "ledger", "rebuild")
    assert len(made.control("web").agreement().approvals) == 2, "a rebuilt ledger loses nothing"
    assert "firnline rewind web --to 1 --replay" in command(root, "approve", "web", "--from", "1")


def test_what_may_not_be_is_refused(kept: Callable[[], Project]) -> None:
    root = kept().settings.root
    module = root / "include" / "pipelines" / "web.py"
    module.write_text(module.read_text().replace("start=0)", 'start=0, on_change="reject")'))
    assert command(root, "approve", "web", "--json", code=1)["error"]["code"] == "CHANGE_REJECTED"
    assert command(root, "approve", "web", "--stage", "nowhere", "--json", code=1)["error"]["code"] == "NO_SUCH_COLLECTION"
    module.write_text(module.read_text().replace('"reject"', '"perhaps"'))
    error = command(root, "approve", "web", "--json", code=1)["error"]
    assert "on_change is 'await_approval' or 'allow' or 'reject', not 'perhaps'" in error["what"]
