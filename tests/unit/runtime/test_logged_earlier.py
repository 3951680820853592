"""What earlier epochs took: as they were published, whatever an attempt that came too late has logged since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firnline.model.description import Verdict
from firnline.model.epoch import Epoch, Schedule
from firnline.runtime.forgetting import forget_notes
from firnline.runtime.project import Declared
from firnline.runtime.stage_run import StageRun
from firnline.tables.erasing import replace_all, start_of
from tests.project import make_project
from tests.publishing import publish, web

NAME = "files new landing/*"


@pytest.mark.parametrize("first", [{"files": ["a"], "seen": []}, 0])
def test_what_was_published_counts_and_what_was_only_logged_where_nothing_was(tmp_path: Path, first: Any) -> None:
    project, graph = make_project(tmp_path), web()
    publish(project, "visits", 0, determinants={NAME: first})
    for epoch in (0, 1):
        project.determinants("web", "visits", epoch).log(NAME, {"files": [f"late {epoch}"], "seen": []})
    session: Any = None
    run = StageRun(project, Declared(graph, {}, tmp_path), session, graph.collection("visits"), Epoch(2, 3), "attempt")
    assert list(run._logged_earlier(NAME)) == [{"files": ["late 1"], "seen": []}, first]


def test_what_epochs_of_another_schedule_took_is_known_and_nothing_later(tmp_path: Path) -> None:
    project, graph = make_project(tmp_path), replace(web(), schedule=Schedule.parse(4, 0, None))
    for epoch in range(4):
        publish(project, "visits", epoch, determinants={NAME: epoch})
    session: Any = None

    def earlier(epoch: Epoch) -> list[Any]:
        run = StageRun(project, Declared(graph, {}, tmp_path), session, graph.collection("visits"), epoch, "attempt")
        return list(run._logged_earlier(NAME))

    assert earlier(Epoch(4, 8)) == [3, 2, 1, 0]
    assert earlier(Epoch(2, 3)) == [1, 0]


@pytest.mark.parametrize("epoch", [0, 1])
def test_what_a_published_epoch_took_is_not_forgotten_by_who_fails_afterwards(tmp_path: Path, epoch: int) -> None:
    project, graph = make_project(tmp_path), web()
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.csv").write_text("1\n")
    session: Any = None
    run = StageRun(project, Declared(graph, {}, tmp_path), session, graph.collection("visits"), Epoch(epoch, epoch + 1), "zombie")
    given = run.given()
    assert given._outside.new_files("landing/*", lambda: given._matching("landing/*"))
    (name,) = given.determinants
    publish(project, "visits", 0)
    run.failed(given, KeyboardInterrupt())
    assert (project.determinants("web", "visits", epoch).find(name) is not None) is (epoch == 0)


def test_an_erased_source_goes_on_where_it_stood_and_nothing_else_is_known_of_what_it_took(tmp_path: Path) -> None:
    project, graph = make_project(tmp_path), web()
    landing = tmp_path / "landing"
    landing.mkdir()
    session: Any = None

    def run(lower: int) -> StageRun:
        declared = Declared(graph, {}, tmp_path)
        return StageRun(project, declared, session, graph.collection("visits"), Epoch(lower, lower + 1), f"a{lower}")

    def taken(lower: int) -> tuple[list[str], Any]:
        """What an epoch takes, and where it began in a topic; it is published then."""
        outside = run(lower).given()._outside
        files = outside.new_files("landing/*", lambda: sorted(landing.iterdir()))
        after, _ = outside.since_last("kafka visits", lambda _: {"0": lower})
        outside.value("kafka is not asked", lambda: f"ann {lower}")
        outside.files("landing/a0", lambda: [landing / "a0"], is_optional=False)
        publish(project, "visits", lower, determinants=outside.used)
        return [path.name for path in files], after

    def erased(upto: int) -> None:
        log = project.log("web", "visits")
        seen = log.load()
        assert seen is not None
        note = replace(
            log.sidecar(next(log.entries())), lower=start_of(seen), attempt=f"e{upto}", determinants=run(upto).positions()
        )
        assert replace_all(project.catalog, log, seen, note, None).verdict is Verdict.FREE
        forget_notes(project, graph, ["visits"], upto)

    for lower in range(3):
        (landing / f"a{lower}").touch()
        assert taken(lower) == ([f"a{lower}"], {"0": lower - 1} if lower else None)
    for upto in (3, 4):  # what an earlier erasure left is known to a later one
        erased(upto)
        left = project.log("web", "visits").sidecar(next(project.log("web", "visits").entries())).determinants
        assert left.keys() == {"files:new landing/*", "kafka visits"}
        assert project.determinants("web", "visits", 0).names() == set()
        (landing / f"a{upto}").touch()
        assert taken(upto) == ([f"a{upto}"], {"0": upto - 1})
