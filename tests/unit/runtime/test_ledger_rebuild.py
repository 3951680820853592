"""A ledger that is lost comes back from logs and control tables alone: every command says what it said before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firnline.model.epoch import Epoch
from firnline.model.hold import Hold
from firnline.runtime.advance import complete
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.runtime.safepoint import hold
from firnline.tables.log import PARTITION_BY, PARTS
from tests.project import command
from tests.web_logs import copies, publish

QUESTIONS = (
    ("status", "web"),
    ("plan", "web"),
    ("safepoint", "web"),
    ("lineage", "web.seen", "--epoch", "2"),
    ("lineage", "web.visits", "--epoch", "1", "--part", "1", "--downstream"),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("rebuilt") / "project")


def answers(root: Path) -> list[Any]:
    return [command(root, *question, "--json") for question in QUESTIONS]


def test_every_answer_is_the_same_after_a_rebuild(kept: Callable[[], Project]) -> None:
    project = kept()
    root, graph = project.settings.root, project.graph("web")
    for name in ("visits", "seen"):
        cut = {PARTITION_BY: '["k"]', PARTS: "2"}  # as logs are that Spark writes to
        project.catalog.iceberg("web", name).transaction().set_properties(cut).commit_transaction()
    rewind(project, graph, 1, None, "ana")
    for epoch in (1, 2):
        for name in ("visits", "seen"):
            publish(project, name, epoch, attempt=f"{name}{epoch} again")
        complete(project, graph, Epoch(epoch, epoch + 1))
    hold(project, graph, lambda *_: Hold("reader", "march", 1, "ana", release="wait for it"))
    command(root, "ledger", "rebuild")
    before = answers(root)
    assert "march" in str(before[2])
    for file in root.glob(".firnline/ledger.db*"):
        file.unlink()
    command(root, "ledger", "rebuild")
    assert answers(root) == before
