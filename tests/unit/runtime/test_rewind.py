"""A rewind without a JVM: at once for readers, whoever dies in between; undone as if it had never been; refused where it must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import FirnlineError
from firnline.failpoints import POINTS, VARIABLE
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.plan.frontier import Frontier
from firnline.runtime import show
from firnline.runtime.advance import complete, is_kept
from firnline.runtime.lineage import lineage
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.reuse import reused
from firnline.runtime.rewind import rewind, settle, undo
from firnline.runtime.safepoint import safe_point
from firnline.runtime.verify import verify
from firnline.tables.control import TABLE
from firnline.tables.rewinding import rewind as take_back
from firnline.tables.sidecar import Input, Sidecar
from firnline.world import replaced
from tests.happening import At
from tests.project import ROOT, command
from tests.web_logs import COLUMNS, MADE_BY, copies, of_today, publish, staged

LOGS = ("visits", "seen")
DEATHS = sorted(point for point in POINTS if point.startswith("rewind."))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("rewind") / "project")


@pytest.fixture
def project(kept: Callable[[], Project]) -> Project:
    return kept()


def back(project: Project, to: int, stage: str | None = None) -> None:
    rewind(project, project.graph("web"), to, stage, "ana")


def forth(project: Project) -> None:
    undo(project, project.graph("web"), "ana")


def replay(project: Project, *epochs: int, logs: tuple[str, ...] = LOGS) -> None:
    for epoch in epochs:
        for name in logs:
            publish(project, name, epoch, attempt=f"{name}{epoch} again")
        complete(project, project.graph("web"), Epoch(epoch, epoch + 1))


def held(project: Project) -> dict[str, tuple[int, list[str]]]:
    """Where each log ends, and its attempts."""
    found = {}
    for name in LOGS:
        log = project.log("web", name)
        head = log.head()
        assert head is not None
        found[name] = (head.description.upper, [entry.attempt for entry in log.entries()])
    return found


def seen(project: Project) -> list[list[tuple[Any, ...]]]:
    """What a reader of each collection sees."""
    return [sorted(show.rows(project, project.graph("web"), name)[1]) for name in LOGS]


def frontier(project: Project) -> Frontier:
    found = project.control("web").frontier()
    assert found is not None
    return found


def is_sound(project: Project) -> bool:
    return verify(project).problems == ()


def test_a_rewind_takes_epochs_back_and_says_so_everywhere(project: Project) -> None:
    report = rewind(project, project.graph("web"), 1, None, "ana")
    assert [(line.log, line.before, line.after, line.epochs) for line in report.logs] == [
        ("visits", "3", "1", 2),
        ("seen", "3", "1", 2),
    ]
    assert held(project) == {"visits": (1, ["visits0"]), "seen": (1, ["seen0"])}
    assert frontier(project) == Frontier(1, {"visits": 1, "seen": 1})
    assert [len(rows) for rows in seen(project)] == [3, 3]
    assert is_sound(project)
    assert {(each.collection, each.lower) for each in project.ledger.publications("web")} == {("visits", 0), ("seen", 0)}
    assert [node.id for node in lineage(project, project.graph("web"), "seen", "0").nodes] == ["seen@0"]
    assert not is_kept(project, project.graph("web"), "seen", Epoch(1, 2))
    hold = next(each for each in safe_point(project, project.graph("web")).holds if each.kind == "rewind")
    assert (hold.at, hold.owner) == (1, "ana")


def test_a_stage_goes_back_alone_and_readers_see_one_cut(project: Project) -> None:
    back(project, 2, "seen")
    assert held(project) == {"visits": (3, ["visits2", "visits1", "visits0"]), "seen": (2, ["seen1", "seen0"])}
    assert frontier(project) == Frontier(2, {"visits": 0, "seen": 1})
    assert [len(rows) for rows in seen(project)] == [6, 6]
    assert is_sound(project)


def test_an_undo_is_as_if_nothing_had_been(project: Project) -> None:
    before, rows = held(project), seen(project)
    back(project, 1)
    replay(project, 1)
    assert held(project)["seen"] == (2, ["seen1 again", "seen0"])
    forth(project)
    assert held(project) == before
    assert seen(project) == rows
    assert frontier(project).upper == 3
    assert is_sound(project)
    assert project.control("web").agreement().holds == project.control("web").agreement().rewinds == ()
    assert {each.attempt for each in project.ledger.publications("web")} == {
        f"{name}{epoch}" for name in LOGS for epoch in range(3)
    }
    replay(project, 3)
    assert held(project)["visits"] == (4, ["visits3 again", "visits2", "visits1", "visits0"])


def test_once_replayed_nothing_is_held_and_it_can_still_be_undone(project: Project) -> None:
    before = held(project)
    back(project, 1)
    replay(project, 1)
    assert [each.kind for each in project.control("web").agreement().holds] == ["rewind"]
    replay(project, 2)
    assert project.control("web").agreement().holds == project.control("web").agreement().rewinds == ()
    assert is_sound(project)
    forth(project)
    assert held(project) == before


def test_files_come_back_by_a_replay_that_reuses_them(project: Project) -> None:
    graph, rows = of_today(project), seen(project)
    back(project, 1)
    for epoch in (1, 2):
        done = reused(project, graph, graph.collection("visits"), 1, Epoch(epoch, epoch + 1), f"again{epoch}", {})
        assert done is not None
        assert done.is_reused
    table = project.log("web", "visits").load()
    assert table is not None
    assert table.head is not None
    assert table.head.summary["operation"] == "append", "Spark reads the changes between snapshots from appends only"
    replay(project, 1, 2, logs=("seen",))
    assert held(project)["visits"] == (3, ["again2", "again1", "visits0"])
    assert seen(project) == rows
    assert is_sound(project)
    forth(project)
    assert held(project)["visits"] == (3, ["visits2", "visits1", "visits0"])
    assert seen(project) == rows
    assert is_sound(project)


def test_rewinds_are_undone_one_by_one(project: Project) -> None:
    before = held(project)
    back(project, 2)
    middle = held(project)
    back(project, 1, "seen")
    forth(project)
    assert held(project) == middle
    forth(project)
    assert held(project) == before
    with pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(project)


def give_up(project: Project) -> None:
    """Go back, and have the undo of it meet that maintenance drops what it needs."""
    back(project, 1)
    dropped = At("rewind.decided", lambda: project.log("web", "seen").expire(timedelta()))
    with replaced(dropped), pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(project)
    assert {name: upper for name, (upper, _) in held(project).items()} == {"visits": 1, "seen": 1}
    assert project.control("web").agreement().open_rewind() is None


def test_an_undo_is_given_up_if_maintenance_drops_what_it_needs_meanwhile(project: Project) -> None:
    give_up(project)
    assert frontier(project).upper == 1
    assert is_sound(project)
    replay(project, 1, 2)
    assert held(project)["seen"] == (3, ["seen2 again", "seen1 again", "seen0"])
    assert is_sound(project)


def test_an_undo_is_given_up_where_no_epoch_was_ever_complete(project: Project) -> None:
    table = project.catalog.table("web", TABLE)
    assert table is not None
    project.catalog.forget(table)
    give_up(project)
    replay(project, 1, 2)
    assert frontier(project) == Frontier(3, {"visits": 3, "seen": 3})


def test_an_undo_needs_every_layer_and_not_only_the_last(project: Project) -> None:
    staged(project.catalog.iceberg("web", "visits"), "somebody", 3)  # upon the last, which therefore is kept
    back(project, 0)
    assert project.log("web", "visits").expire(timedelta()) == 2
    with pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(project)
    assert is_sound(project)


def test_whoever_does_a_rewind_too_late_writes_over_nothing(project: Project) -> None:
    def meanwhile() -> None:
        publish(project, "visits", 3)
        settle(project, project.graph("web"))

    with replaced(At("rewind.judged", meanwhile)):
        back(project, 1)
    forth(project)
    assert held(project)["visits"] == (4, ["visits3", "visits2", "visits1", "visits0"])
    assert project.catalog.iceberg("web", "visits").scan().to_arrow().num_rows == 4 * 3
    assert is_sound(project)


def test_an_undo_goes_nowhere_behind_what_is_let_go_of(project: Project) -> None:
    back(project, 1)
    replay(project, 1, 2)
    project.control("web").let_go(lambda _: 2)
    with pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(project)
    assert frontier(project).upper == 3


def test_of_two_who_undo_the_same_rewind_one_is_refused(project: Project) -> None:
    before = held(project)
    back(project, 1)
    with replaced(At("rewind.deciding", lambda: forth(project))), pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(project)
    assert held(project) == before
    assert frontier(project).upper == 3


def test_what_cannot_be_taken_back_is_refused(project: Project) -> None:
    with pytest.raises(FirnlineError, match="EPOCH_NOT_COMPLETE"):
        back(project, 3)
    project.control("web").let_go(lambda _: 2)
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        back(project, 1)
    with pytest.raises(FirnlineError, match="NO_SUCH_COLLECTION"):
        back(project, 2, "nothing")
    assert held(project)["seen"][0] == 3


def test_whoever_looked_before_a_rewind_cannot_move_the_frontier(project: Project) -> None:
    old = frontier(project)
    back(project, 1)
    assert project.control("web").advance(old) == Frontier(1, {"visits": 1, "seen": 1})
    assert project.control("web").advance(Frontier(3, {"visits": 1, "seen": 0})).upper == 1


@pytest.mark.parametrize("is_undo", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("point", DEATHS)
def test_whoever_comes_next_finishes_what_was_decided(point: str, is_undo: bool, project: Project) -> None:
    before = held(project)
    if is_undo:
        back(project, 1)
    words = ["--undo"] if is_undo else ["--to", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), VARIABLE: f"{point}=kill"}
    program = [sys.executable, "-c", "from firnline.cli import main; main()", "rewind", "web", *words]
    died = subprocess.run(program, cwd=project.settings.root, env=environment, capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    after = {name: (1, entries[-1:]) for name, (_, entries) in before.items()}
    if point == "rewind.deciding":
        assert held(project) == (after if is_undo else before)
        return
    assert [len(rows) for rows in seen(project)] in ([3, 3], [9, 9]), "one cut throughout"
    assert is_sound(project)
    assert held(project) == (before if is_undo else after)
    assert project.control("web").agreement().open_rewind() is None
    settle(project, project.graph("web"))
    assert frontier(project).upper == (3 if is_undo else 1)


def test_the_command_tells_what_it_does(project: Project) -> None:
    root: Path = project.settings.root
    assert "what the rewind to 1 would do" in command(root, "rewind", "web", "--to", "1", "--dry-run")
    assert held(project)["seen"][0] == 3
    told = command(root, "rewind", "web", "--to", "1", "--stage", "seen", "--json")
    assert told["logs"] == [{"log": "seen", "before": "3", "after": "1", "epochs": 2}]
    assert "--undo" in command(root, "rewind", "web", "--to", "0")
    assert command(root, "rewind", "web", "--undo", "--json")["undoes"]
    command(root, "rewind", "web", "--undo", "--to", "1", code=2)


def keep_beside(project: Project, lower: int, upper: int, attempt: str) -> None:
    """Publish malformed records of the last of some epochs: the others had none."""
    name = "visits__quarantine"
    log = project.log("web", name)
    log.create(COLUMNS, (), 0, {})
    head, last = log.head(), upper - 1
    assert head is not None
    note = Sidecar(name, lower, upper, attempt, MADE_BY, {}, {(last, 0): Digest(1, 1, upper, 0)}, 0.5)
    snapshot = staged(project.catalog.iceberg("web", name), attempt, last, (0,))
    assert log.publish(head.description.generation, note, snapshot, is_one=lower == last) is Verdict.FREE


def beside(project: Project) -> tuple[int, list[str], list[int]]:
    """Where the quarantine ends, its attempts, and the epochs that it has records of."""
    log = project.log("web", "visits__quarantine")
    head = log.head()
    assert head is not None
    rows = project.catalog.iceberg("web", log.collection).scan().to_arrow()["_epoch"].to_pylist()
    return head.description.upper, [entry.attempt for entry in log.entries()], sorted(rows)


def test_what_is_kept_beside_goes_back_to_where_its_epochs_are_held_as_one(project: Project) -> None:
    keep_beside(project, 0, 1, "q0")
    keep_beside(project, 1, 3, "q2")
    report = rewind(project, project.graph("web"), 2, None, "ana")
    assert next((line.log, line.after, line.epochs) for line in report.logs) == ("visits__quarantine", "1", 2)
    assert beside(project) == (1, ["q0"], [0])
    assert held(project)["visits"] == (2, ["visits1", "visits0"])
    assert is_sound(project)
    keep_beside(project, 1, 3, "q2 again")
    replay(project, 2)
    assert beside(project) == (3, ["q2 again", "q0"], [0, 2])
    forth(project)
    assert beside(project) == (3, ["q2", "q0"], [0, 2])
    assert held(project)["visits"] == (3, ["visits2", "visits1", "visits0"])
    back(project, 0)
    assert beside(project) == (0, [], [])
    forth(project)
    back(project, 2)
    assert beside(project) == (1, ["q0"], [0]), "it is known again what is held as one"
    assert is_sound(project)


def test_what_is_kept_beside_from_the_first_of_its_epochs_on_goes_to_nothing_and_comes_again(project: Project) -> None:
    before = held(project)
    keep_beside(project, 0, 3, "q2")
    back(project, 1)
    assert beside(project) == (0, [], [])
    keep_beside(project, 0, 2, "q1")
    replay(project, 1, 2)
    forth(project)
    assert beside(project) == (3, ["q2"], [2])
    assert held(project)["seen"] == before["seen"]
    assert is_sound(project)


def test_what_is_published_beside_for_several_epochs_once_a_rewind_is_decided_goes_too(project: Project) -> None:
    keep_beside(project, 0, 1, "q0")
    with replaced(At("rewind.decided", lambda: keep_beside(project, 1, 3, "q2"))):
        back(project, 2)
    assert beside(project) == (1, ["q0"], [0])
    assert project.control("web").agreement().open_rewind() is None
    forth(project)
    assert beside(project)[0] == 3


def test_what_had_nothing_to_keep_at_the_point_does_not_forbid_the_undo(project: Project) -> None:
    keep_beside(project, 0, 1, "q0")
    back(project, 2)
    keep_beside(project, 1, 3, "q2")
    replay(project, 2)
    forth(project)
    assert beside(project) == (1, ["q0"], [0])
    assert held(project)["visits"] == (3, ["visits2", "visits1", "visits0"])
    assert is_sound(project)


def test_an_epoch_does_not_come_back_without_its_malformed_records(project: Project) -> None:
    graph = of_today(project)

    def again(epoch: int, generation: int) -> bool:
        attempt = f"again{epoch}{generation}"
        done = reused(project, graph, graph.collection("visits"), generation, Epoch(epoch, epoch + 1), attempt, {})
        return done is not None

    keep_beside(project, 0, 2, "q1")
    keep_beside(project, 2, 3, "q2")
    back(project, 2)
    assert again(2, 1)
    assert beside(project)[2] == [1, 2]
    back(project, 1)
    assert again(1, 2)
    assert beside(project)[2] == [1]
    assert not again(2, 2), "it is not told whether what was before them is the same: they are read anew"


def made_of(project: Project, epoch: int, generation: int, read: int, attempt: str) -> Verdict:
    """Publish an epoch of what comes of the visits, as of one of their generations."""
    log = project.log("web", "seen")
    digests = {(epoch, part): Digest(part + 1, part + 1, epoch, part) for part in (0, 1)}
    inputs = {"visits": Input(read, epoch + 1, 0, 3, "all")}
    sidecar = Sidecar("seen", epoch, epoch + 1, attempt, MADE_BY, inputs, digests, 0.5)
    return log.publish(generation, sidecar, staged(project.catalog.iceberg("web", "seen"), attempt, epoch))


@pytest.fixture
def fresh(project: Project) -> Project:
    """Before the first complete epoch: a stage holds nothing."""
    for name in ("seen", TABLE):
        table = project.catalog.table("web", name)
        assert table is not None
        project.catalog.forget(table)
    return project


def test_a_rewind_before_anything_comes_of_a_source(fresh: Project) -> None:
    back(fresh, 1)
    head = fresh.log("web", "visits").head()
    assert head is not None
    assert (head.description.generation, head.description.upper) == (1, 1)
    fresh.log("web", "seen").create(COLUMNS, ("k",), 0, {})
    publish(fresh, "visits", 1, attempt="visits1 again")
    for epoch in (0, 1):
        assert made_of(fresh, epoch, 0, 1, f"seen{epoch}") is Verdict.FREE
    assert complete(fresh, fresh.graph("web"), Epoch(1, 2)) == Frontier(2, {"visits": 1, "seen": 0})
    forth(fresh)
    assert held(fresh)["visits"] == (3, ["visits2", "visits1", "visits0"])
    assert held(fresh)["seen"] == (1, ["seen0"]), "what came of the replay is not true any more"
    assert frontier(fresh) == Frontier(1, {"visits": 2, "seen": 1})
    with pytest.raises(FirnlineError, match="REWIND_NOT_UNDOABLE"):
        forth(fresh)
    assert is_sound(fresh)


def test_whoever_is_at_the_first_epoch_of_a_stage_meets_a_rewind(fresh: Project) -> None:
    log = fresh.log("web", "seen")
    log.create(COLUMNS, ("k",), 0, {})
    back(fresh, 0)
    assert made_of(fresh, 0, 0, 0, "late") is Verdict.FENCED
    log.recreate(COLUMNS, ("k",), 0, {"firnline.other": "columns"})
    assert made_of(fresh, 0, 0, 0, "later") is Verdict.FENCED
    publish(fresh, "visits", 0, attempt="again")
    assert made_of(fresh, 0, 1, 1, "new") is Verdict.FREE
    settle(fresh, fresh.graph("web"))
    assert held(fresh)["seen"] == (1, ["new"])


def test_whoever_looked_before_a_rewind_cannot_begin_the_frontier(project: Project) -> None:
    table = project.catalog.table("web", TABLE)
    assert table is not None
    project.catalog.forget(table)
    control, old = project.control("web"), Frontier(3, {"visits": 0, "seen": 0})
    back(project, 1)
    with pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
        control.advance(old)
    assert complete(project, project.graph("web"), Epoch(0, 1)) == Frontier(1, {"visits": 1, "seen": 1})
    assert control.advance(old).upper == 1


@pytest.mark.parametrize("is_undone", [False, True])
def test_whoever_looked_before_a_rewind_of_a_source_alone_cannot_begin_the_frontier(fresh: Project, is_undone: bool) -> None:
    fresh.log("web", "seen").create(COLUMNS, ("k",), 0, {})
    back(fresh, 1)
    if is_undone:
        forth(fresh)
    assert fresh.control("web").frontier() is None, "a log that holds nothing is complete nowhere"
    with pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
        fresh.control("web").advance(Frontier(1, {"visits": 0, "seen": 0}))


@pytest.mark.parametrize("to", [0, 1])
def test_what_came_of_a_source_while_its_rewind_was_being_done_goes_back(fresh: Project, to: int) -> None:
    log = fresh.log("web", "seen")

    def meanwhile() -> None:
        log.create(COLUMNS, ("k",), 0, {})
        assert made_of(fresh, 0, 0, 0, "old") is Verdict.FREE

    with replaced(At("rewind.judged", meanwhile)):
        back(fresh, to)
    assert held(fresh)["seen"] == (to, ["old"][:to])
    assert fresh.control("web").agreement().open_rewind() is None


def test_whoever_is_at_the_next_epoch_of_an_emptied_stage_is_fenced_by_an_undo(fresh: Project) -> None:
    log = fresh.log("web", "seen")
    back(fresh, 0)
    log.create(COLUMNS, ("k",), 0, {})
    assert made_of(fresh, 0, 0, 1, "old") is Verdict.FREE
    take_back(fresh.catalog, log, "follow_rewind_x", 1, 0)
    forth(fresh)
    assert made_of(fresh, 0, 1, 1, "of visits that went") is Verdict.FENCED
    assert made_of(fresh, 0, 2, 2, "of those that came back") is Verdict.FREE


def lose_metadata(project: Project, name: str) -> None:
    table = project.log("web", name).load()
    assert table is not None
    Path(table.version.removeprefix("file://")).unlink()


def without_spark() -> Any:
    raise AssertionError("nothing has to be computed")


def test_a_lost_metadata_file_does_not_bring_back_what_a_rewind_took_out(project: Project) -> None:
    back(project, 1)
    staged(project.catalog.iceberg("web", "seen"), "somebody at it", 1, (0,))
    before, rows = held(project), seen(project)
    lose_metadata(project, "seen")
    assert repair(project, without_spark, "web").is_whole
    assert (held(project), seen(project)) == (before, rows)
    replay(project, 1)
    before = held(project)
    lose_metadata(project, "seen")
    assert repair(project, without_spark, "web").is_whole
    assert held(project) == before, "what was published since then is followed"


def test_a_rewind_that_is_lost_with_its_metadata_file_is_done_again(project: Project) -> None:
    back(project, 1)
    before, rows, cut = held(project), seen(project), frontier(project)
    lose_metadata(project, "seen")
    assert repair(project, without_spark, "web").is_whole
    assert (held(project), seen(project), frontier(project)) == (before, rows, cut)
    assert project.control("web").agreement().open_rewind() is None
    replay(project, 1, 2)
    assert held(project)["seen"][0] == 3


def test_a_log_that_can_only_be_read_as_of_an_earlier_generation_stays_as_it_is(project: Project) -> None:
    back(project, 1)
    kept = set(Path(_folder(project, "seen")).glob("*.metadata.json"))
    replay(project, 1, 2)
    assert project.control("web").agreement().rewinds == ()
    for path in set(Path(_folder(project, "seen")).glob("*.metadata.json")) - kept | {max(kept)}:
        path.unlink()
    (failed,) = repair(project, without_spark, "web").failed
    assert failed.error.code == "NOT_REPAIRABLE"


def _folder(project: Project, name: str) -> str:
    table = project.log("web", name).load()
    assert table is not None
    return table.version.removeprefix("file://").rpartition("/")[0]
