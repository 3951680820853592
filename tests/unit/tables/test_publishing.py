"""Several epochs by one commit: as if one had followed the other, all or none, whoever else publishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.runtime.project import Project
from firnline.tables.log import PARTS, Log
from firnline.tables.publishing import publish_each
from firnline.tables.rewinding import rewind, undo
from firnline.tables.sidecar import Sidecar
from firnline.world import World, replaced
from tests.project import make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def log_of(project: Project, name: str) -> Log:
    log = project.log("web", name)
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {PARTS: "2"})
    return log


def rows(epoch: int) -> pa.Table:
    """Two rows in two parts; none in every third epoch."""
    count = 2 if epoch % 3 else 0
    kinds = {"_epoch": pa.int64(), "_diff": pa.int64(), "_part": pa.int32()}
    values = {"_epoch": [epoch] * count, "_diff": [1] * count, "_part": [0, 1][:count]}
    columns = {name: pa.array(values[name], kind) for name, kind in kinds.items()}
    return pa.table({"k": pa.array([f"{epoch}-{part}" for part in range(count)], pa.string()), **columns})


def sidecar(log: Log, epoch: int) -> Sidecar:
    digests = {(epoch, part): Digest(1, 1, epoch, part) for part in range(2 if epoch % 3 else 0)}
    attempt = f"{log.collection}{epoch}"
    return Sidecar(log.collection, epoch, epoch + 1, attempt, Fingerprint("f" * 32), {}, digests, 0.5, {}, parts=2)


def at_once(project: Project, log: Log, first: int, last: int, generation: int = 0) -> Verdict:
    epochs = range(first, last + 1)
    sidecars = [sidecar(log, epoch) for epoch in epochs]
    return publish_each(project.catalog, log, generation, sidecars, [rows(epoch) for epoch in epochs])


def one(log: Log, epoch: int) -> Verdict:
    log.stage(f"{log.collection}{epoch}", epoch, rows(epoch))
    return log.publish(0, sidecar(log, epoch), log.staged(f"{log.collection}{epoch}"))


def told(log: Log) -> list[object]:
    found: list[object] = []
    for entry in log.entries():
        stored = log.sidecar(entry)
        files = sorted((file.part, file.first, file.last, file.rows) for file in stored.files or ())
        found.append((entry.lower, entry.description, entry.rows, entry.weight, stored.digests, files))
    return found


class Meanwhile(World):
    """Lets something happen when a point is first reached."""

    def __init__(self, point: str, happens: Callable[[], object]) -> None:
        super().__init__()
        self.point, self.happens = point, happens

    def sleep(self, seconds: float) -> None:
        """No time passes."""

    def reach(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            self.happens()


def test_the_log_is_the_one_that_epoch_by_epoch_makes(project: Project) -> None:
    single, together = log_of(project, "single"), log_of(project, "together")
    assert [one(single, epoch) for epoch in range(7)] == [Verdict.FREE] * 7
    assert [one(together, 0), at_once(project, together, 1, 5), one(together, 6)] == [Verdict.FREE] * 3
    assert told(together) == told(single)


def test_what_is_there_is_not_published_again_and_what_is_not_next_is_not_published(project: Project) -> None:
    log = log_of(project, "numbers")
    assert at_once(project, log, 0, 3) is Verdict.FREE
    assert at_once(project, log, 0, 3) is Verdict.FREE, "by this very attempt"
    others = [("other", 2, 3, 0), ("other", 3, 5, 0), ("other", 6, 7, 0), ("other", 4, 5, 1)]
    found = [publish_as(project, log, *each) for each in others]
    assert found == [Verdict.TAKEN, Verdict.MOVED, Verdict.MOVED, Verdict.FENCED]
    assert len(told(log)) == 4


def publish_as(project: Project, log: Log, who: str, first: int, last: int, generation: int) -> Verdict:
    epochs = range(first, last + 1)
    known = [replace(sidecar(log, each), attempt=f"{who}{each}") for each in epochs]
    return publish_each(project.catalog, log, generation, known, [rows(each) for each in epochs])


def test_an_answer_that_is_lost_is_looked_for(project: Project) -> None:
    log = log_of(project, "numbers")

    def lost() -> None:
        raise OSError("no answer")

    with replaced(Meanwhile("publish.committed", lost)):
        assert at_once(project, log, 0, 3) is Verdict.FREE
    assert len(told(log)) == 4


def test_files_of_a_commit_whose_answer_was_lost_stay_for_the_undo_of_a_rewind_that_came_next(project: Project) -> None:
    log = log_of(project, "numbers")

    def rewound() -> None:
        assert rewind(project.catalog, project.log("web", "numbers"), "back", 1, 0) is not None
        raise OSError("no answer")

    with replaced(Meanwhile("publish.committed", rewound)):
        assert at_once(project, log, 0, 3) is Verdict.FENCED
    assert told(log) == []
    assert undo(project.catalog, log, "back", "forth", 2) is not None
    table = log.load()
    assert table is not None
    assert len(told(log)) == 4
    assert all(Path(file.path.removeprefix("file://")).exists() for file in log.held(table))


def test_who_is_overtaken_publishes_nothing_and_leaves_no_file(project: Project) -> None:
    log = log_of(project, "numbers")
    with replaced(Meanwhile("publish.described", lambda: one(project.log("web", "numbers"), 0))):
        assert publish_as(project, log, "late", 0, 3, 0) is Verdict.MOVED
    table = log.load()
    assert table is not None
    assert len(told(log)) == 1
    named = {file.path.rpartition("/")[2] for file in log.held(table)}
    there = {path.name for path in Path(table.location.removeprefix("file://")).rglob("*.parquet")}
    assert there == named
