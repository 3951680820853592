"""Branches on real logs without Spark: killed anywhere, the same command finishes what was begun; no shared file is ever lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from firnline.errors import FirnlineError
from firnline.failpoints import VARIABLE
from firnline.model.description import Verdict
from firnline.model.epoch import Epoch
from firnline.plan.frontier import Frontier
from firnline.runtime.advance import complete
from firnline.runtime.branch import branches, create, drop, is_whole, note_of
from firnline.runtime.branch_run import missing, run
from firnline.runtime.diff import diff, sides
from firnline.runtime.maintain import tidied
from firnline.runtime.project import Project
from firnline.runtime.rewind import rewind
from firnline.runtime.verify import verify
from firnline.tables.forking import layer_at, take
from firnline.tables.trash import file_key
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import At, Killed
from tests.project import command, compiled, make_project
from tests.publishing import publish_row

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"])
    def visits(epoch):
        raise AssertionError("nothing is computed here")

    @web.stage(keys=["k"])
    def seen(visits):
        raise AssertionError("nothing is computed here")
"""
CHILD = """
from firnline.runtime.project import Project
from firnline.runtime.branch import create, drop
from firnline.runtime.branch_run import missing, run
project = Project.load()
"""
CREATE = "create(project, project.graph('web'), 'b', 3, None)"
RUN = "list(run(project, 'web__b', missing(project, 'web__b'), None))"
DROP = "drop(project, 'web', 'b')"
ALWAYS = [
    (CREATE, "safepoint.committed"),
    (CREATE, "branch.written"),
    (CREATE, "branch.forked"),
    (RUN, "branch.taken"),
    (DROP, "trash.written"),
    (DROP, "branch.dropping"),
    (DROP, "branch.forgotten"),
]
AT_NIGHT = [
    *(
        (CREATE, point)
        for point in ("safepoint.judged", "branch.noted", "branch.forked@2", "frontier.judged", "frontier.committed")
    ),
    *((RUN, point) for point in ("branch.taking", "branch.taken@2", "frontier.judged")),
    *((DROP, point) for point in ("branch.dropping@2", "safepoint.judged", "safepoint.committed")),
]
DYING = [*ALWAYS, *(pytest.param(*each, marks=pytest.mark.nightly) for each in AT_NIGHT)]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return _five_epochs(tmp_path_factory.mktemp("web"))


def _five_epochs(root: Path) -> Project:
    """Five epochs of a source and a stage."""
    project = compiled(make_project(root, web=PIPELINE), "web")
    graph = project.graph("web")
    for epoch in range(5):
        for name in ("visits", "seen"):
            publish_row(project, graph, name, Epoch(epoch, epoch + 1))
    project.control("web").advance(Frontier(5, {"visits": 0, "seen": 0}))
    return project


def _rows(project: Project, space: str, name: str) -> list[str]:
    return sorted(project.catalog.iceberg(space, name).scan().to_arrow()["k"].to_pylist())


def _killed(project: Project, what: str, point: str) -> None:
    name, _, number = point.partition("@")
    armed = {**os.environ, VARIABLE: f"{name}=kill" + (f"@{number}" if number else "")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD + what], cwd=project.settings.root, env=armed, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, f"{point}: {done.stdout}{done.stderr}"


def _create(project: Project) -> None:
    """Create the branch, unless whoever was killed had come to the end."""
    if not is_whole(project, "web__b"):
        create(project, project.graph("web"), "b", 3, None)


def _run(project: Project) -> None:
    list(run(project, "web__b", missing(project, "web__b"), _forbidden))


def _forbidden() -> None:
    raise AssertionError("nothing is to be computed")


def _check_whole(project: Project, upto: int) -> None:
    for name in ("visits", "seen"):
        assert _rows(project, "web__b", name) == [f"{name} {epoch}" for epoch in range(upto)]
    _check_main(project)


def _check_main(project: Project) -> None:
    for name in ("visits", "seen"):
        assert _rows(project, "web", name) == [f"{name} {epoch}" for epoch in range(5)]
    assert verify(project).problems == ()


@pytest.mark.parametrize(("what", "point"), DYING)
def test_whoever_is_killed_leaves_what_the_same_command_finishes(web: Project, what: str, point: str) -> None:
    if what != CREATE:
        _create(web)
    if what == DROP:
        _run(web)
    _killed(web, what, point)
    assert verify(web).problems == ()
    if what == CREATE:
        _create(web)
        _check_whole(web, 3)
        _run(web)
    if what == RUN:
        _run(web)
    if what != DROP:
        _check_whole(web, 5)
    if what != DROP or list(branches(web, web.graph("web"))):
        drop(web, "web", "b")
    assert list(branches(web, web.graph("web"))) == []
    assert web.catalog.branches("web") == set()
    list(tidied(web, web.graph("web"), timedelta()))
    assert verify(web).problems == ()
    assert _rows(web, "web", "seen") == [f"seen {epoch}" for epoch in range(5)]
    assert not list(Path(file_key(web.catalog.warehouse), "web__b").rglob("*.parquet"))


def test_identical_branches_are_told_so_without_reading_a_data_file(web: Project) -> None:
    opened: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(".parquet"):
            opened.append(str(arguments[0]))

    _create(web)
    _run(web)
    sys.addaudithook(hook)
    opened.clear()
    found = diff(*sides(web, web.graph("web"), "main", "b"))
    assert found.is_same
    assert opened == []
    later = diff(*sides(web, web.graph("web"), "main@1", "main@3"), rows=5)
    assert [(each.added, each.removed, each.files_read) for each in later.collections] == [(2, 0, 2), (2, 0, 2)]
    assert [row.new for row in later.collections[0].rows] == [{"k": "visits 2"}, {"k": "visits 3"}]
    assert opened, "the hook sees what is read"
    page = web.settings.root / "diff.html"
    told = command(web.settings.root, "diff", "main@1", "main@3", "--stage", "seen", "--html", str(page), "--json")
    assert (told["first"], told["collections"][0]["added"]) == ("seen", 2)
    assert "<svg" in page.read_text()
    assert "seen 3" in page.read_text()
    assert "src=" not in page.read_text(), "it needs nothing else"
    listed = command(web.settings.root, "branch", "list", "--json")
    assert [(each["branch"], each["at"], each["behind"]) for each in listed] == [("b", "3", 0)]
    refused = command(web.settings.root, "safepoint", "web", "--release", "b", "--json", code=1)
    assert refused["error"]["code"] == "BRANCH_HOLDS"
    drop(web, "web", "b")


def test_two_creators_and_two_droppers_agree(web: Project) -> None:
    commands = [subprocess.Popen([sys.executable, "-c", CHILD + CREATE], cwd=web.settings.root, stderr=-1) for _ in range(2)]
    ended = sorted(each.wait() for each in commands)
    assert ended in ([0, 0], [0, 1])  # who comes late is told that it is there
    _check_whole(web, 3)
    commands = [subprocess.Popen([sys.executable, "-c", CHILD + DROP], cwd=web.settings.root, stderr=-1) for _ in range(2)]
    assert 0 in {each.wait() for each in commands}
    assert web.catalog.branches("web") == set()
    assert verify(web).problems == ()


def _interrupted(point: str, act: Callable[[], object]) -> None:
    mortal = Mortal()
    mortal.kill_at = point
    with replaced(mortal), pytest.raises(Killed):
        act()


@pytest.mark.parametrize("at", [2, 3])
def test_a_branch_that_is_half_dropped_is_created_from_nothing(web: Project, at: int) -> None:
    _create(web)
    _run(web)
    _interrupted("branch.dropping", lambda: drop(web, "web", "b"))
    create(web, web.graph("web"), "b", at, None)
    _check_whole(web, at)
    _run(web)
    _check_whole(web, 5)
    drop(web, "web", "b")


@pytest.mark.parametrize("point", ["safepoint.judged", "safepoint.committed", "branch.forked"])
def test_of_two_who_create_a_branch_at_different_points_the_first_to_hold_one_does(web: Project, point: str) -> None:
    def other() -> None:
        with suppress(FirnlineError):
            create(web, web.graph("web"), "b", 2, None)

    is_first = point != "safepoint.judged"
    with replaced(At(point, other)), nullcontext() if is_first else pytest.raises(FirnlineError, match="BRANCH_"):
        create(web, web.graph("web"), "b", 3, None)
    held = web.control("web").agreement().held("b")
    assert held is not None
    assert held.at == note_of(web, "web__b").at == (3 if is_first else 2)
    _check_whole(web, held.at)
    drop(web, "web", "b")


def test_a_branch_that_is_half_created_at_another_point_is_dropped_first(web: Project) -> None:
    _interrupted("branch.forked", lambda: create(web, web.graph("web"), "b", 3, None))
    with pytest.raises(FirnlineError, match=r"branch 'b' of 'web' at 3\. If nobody is at it .* firnline branch drop b"):
        create(web, web.graph("web"), "b", 2, None)
    drop(web, "web", "b")
    create(web, web.graph("web"), "b", 2, None)
    _check_whole(web, 2)
    drop(web, "web", "b")
    list(tidied(web, web.graph("web"), timedelta()))
    _check_main(web)


def test_a_branch_that_is_half_created_does_not_go_on_with_what_the_pipeline_took_back(tmp_path: Path) -> None:
    project = _five_epochs(tmp_path)
    graph = project.graph("web")
    _interrupted("branch.forked", lambda: create(project, graph, "b", 3, None))
    before = [entry.attempt for entry in project.log("web", "seen").entries()]
    rewind(project, graph, 1, None, "ana")
    for epoch in range(1, 4):
        for name in ("visits", "seen"):
            publish_row(project, graph, name, Epoch(epoch, epoch + 1))
        complete(project, graph, Epoch(epoch, epoch + 1))
    create(project, graph, "b", 3, None)
    for name in ("visits", "seen"):
        ours, theirs = ([entry.attempt for entry in project.log(space, name).entries()] for space in ("web__b", "web"))
        assert ours == theirs[-3:] != before[-3:]


@pytest.mark.parametrize(
    ("name", "at", "code"),
    [("views", 3, "BAD_NAME"), ("main", 3, "BAD_NAME"), ("B", 3, "BAD_NAME"), ("b", 9, "EPOCH_NOT_COMPLETE")],
)
def test_what_cannot_be_a_branch_is_refused(web: Project, name: str, at: int, code: str) -> None:
    with pytest.raises(FirnlineError, match=code):
        create(web, web.graph("web"), name, at, None)
    assert list(branches(web, web.graph("web"))) == []


@pytest.mark.parametrize(("to", "is_taken"), [(2, False), (3, True)])
def test_what_a_pipeline_makes_after_it_went_back_before_the_branch_is_not_taken(tmp_path: Path, to: int, is_taken: bool) -> None:
    project = _five_epochs(tmp_path)
    graph = project.graph("web")
    create(project, graph, "b", 3, None)
    rewind(project, graph, to, None, "ana")
    for epoch in range(to, 5):
        for name in ("visits", "seen"):
            publish_row(project, graph, name, Epoch(epoch, epoch + 1))
        complete(project, graph, Epoch(epoch, epoch + 1))
    with nullcontext() if is_taken else pytest.raises(AssertionError, match="nothing is to be computed"):
        _run(project)


def test_an_epoch_that_a_rewind_takes_out_while_it_is_taken_over_is_not_taken(tmp_path: Path) -> None:
    project = _five_epochs(tmp_path)
    graph = project.graph("web")
    create(project, graph, "b", 3, None)
    theirs, ours = project.log("web", "visits"), project.log("web__b", "visits")
    entry = layer_at(theirs, 3, 4)
    assert entry is not None
    rewind(project, graph, 3, None, "ana")
    assert take(project.catalog, theirs, ours, entry) is Verdict.MOVED
    assert _rows(project, "web__b", "visits") == [f"visits {epoch}" for epoch in range(3)]
