"""The safe point of a project, what holds it, and readers with leases; without a JVM."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.model.gap import Gap, Span
from firnline.plan.frontier import Frontier
from firnline.runtime import show
from firnline.runtime.project import Project
from firnline.runtime.safepoint import let_go, safe_point, safety
from firnline.runtime.status import status
from firnline.tables.failures import Failure
from firnline.tables.log import ATTEMPT, KIND, REPAIR, SIDECAR
from firnline.world import World, replaced
from tests.project import command, compiled, make_project
from tests.publishing import publish
from tests.simulation.memory import MemoryTables

PIPELINE = """
    import firnline as fl

    {name} = fl.Pipeline("{name}", schedule=1, start=0, keep="3 epochs")

    @{name}.source(keys=["k"], parts=2)
    def visits(epoch): ...

    @{name}.stage(keys=["k"], parts=2)
    def seen(visits): ...
"""


class Clock(World):
    """A world whose clock is set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("held")
    compiled(make_project(root, web=PIPELINE.format(name="web")), "web")
    return root


@pytest.fixture
def empty(folder: Path) -> Project:
    made = Project.load(folder)
    made.__dict__["catalog"] = MemoryTables()
    return made


@pytest.fixture
def project(empty: Project) -> Project:
    """Ten epochs of two collections, of which eight are complete."""
    for epoch in range(10):
        publish(empty, "visits", epoch, {})
    for epoch in range(8):
        publish(empty, "seen", epoch, {"visits": "same"})
    empty.control("web").advance(Frontier(8, {"visits": 0, "seen": 0}))
    return empty


def consolidate(project: Project, collection: str, since: int) -> None:
    """What a merge leaves behind of it: a head that says so."""
    table = project.log("web", collection).load()
    assert table is not None
    head = Description.of_properties(table.head.summary) if table.head else None
    assert head is not None
    described = Description(head.generation, since, head.upper).as_properties()
    project.catalog.commit(table, {**described, KIND: REPAIR, ATTEMPT: "merge", SIDECAR: "none"})


def test_retention_holds_behind_the_frontier(project: Project) -> None:
    graph = project.graph("web")
    found = safe_point(project, graph)
    assert found.at == 5
    assert found.why(str) == (
        "held at 5 by retention, keep='3 epochs'; to release it: run more epochs, or shorten keep= of the pipeline"
    )
    assert let_go(project, graph) == 5
    assert project.control("web").agreement().since == 5
    assert status(project, graph).safe_point == "5"


def test_before_the_first_epoch_it_is_the_start(empty: Project) -> None:
    graph = empty.graph("web")
    assert safe_point(empty, graph).at == let_go(empty, graph) == 0
    assert safety(empty, graph).frontier is None


def test_an_open_gap_holds_where_its_rows_are_missing(project: Project) -> None:
    graph = project.graph("web")
    gap = Gap("g", "seen", (Span(2, 4, (1,)),), 5, "2026-01-05T00:00:00+00:00", "web.seen", "gone", {"seen": 8})
    project.control("web").change(lambda gaps: gaps.opened(gap).settled("g"))
    assert safe_point(project, graph).why(str) == (
        "held at 2 by the gap in 'seen' (owner web.seen, since 2026-01-05 00:00); to release it: firnline repair web"
    )
    project.control("web").change(lambda gaps: gaps.back("g", "b", {"seen": 8}, gap.spans))
    assert safe_point(project, graph).at == 5


@pytest.mark.parametrize(("made_good", "at"), [(8, 5), (9, 2)])
def test_a_gap_that_a_stage_has_made_good_holds_until_the_frontier_is_there(project: Project, made_good: int, at: int) -> None:
    graph = project.graph("web")
    gap = Gap("g", "seen", (Span(2, 4, (1,)),), 5, "2026-01-05T00:00:00+00:00", "web.seen", "gone", {"seen": 7})
    project.control("web").change(lambda gaps: gaps.opened(gap).settled("g").corrected("seen", "g", made_good))
    assert safe_point(project, graph).at == at


def test_a_failed_check_is_told_as_what_keeps_the_frontier(project: Project) -> None:
    when = "2026-01-09T00:00:00+00:00"
    for code in ("STAGE_FAILED", "CHECK_FAILED"):
        project.failures("web").note(Failure("seen", 8, 9, "a", code, "no", False, when))
    holds = {hold.kind: hold for hold in safe_point(project, project.graph("web")).holds}
    assert (holds["check"].at, holds["check"].name, holds["check"].since) == (8, "seen", when)
    publish(project, "seen", 8, {"visits": "same"})
    assert "check" not in {hold.kind for hold in safe_point(project, project.graph("web")).holds}


def test_a_failed_check_of_a_collection_that_left_the_code_holds_nothing(project: Project) -> None:
    project.failures("web").note(Failure("gone", 2, 3, "a", "CHECK_FAILED", "no", False, "2026-01-09T00:00:00+00:00"))
    assert "check" not in {hold.kind for hold in safe_point(project, project.graph("web")).holds}


def test_it_never_moves_behind_what_logs_have_consolidated(project: Project) -> None:
    consolidate(project, "visits", 6)
    assert safe_point(project, project.graph("web")).at == 6
    with pytest.raises(FirnlineError, match=r"EPOCH_COMPACTED: the reader 'late' cannot hold 5: .* only since 6"):
        fl.reader("late", lease="1d", position="4", project=project)


def test_a_reader_holds_its_position_and_goes_on_where_it_stopped(project: Project) -> None:
    graph = project.graph("web")
    bi = fl.reader("bi", lease="7d", owner="ana", position="1", project=project)
    assert bi.position == "1"
    assert let_go(project, graph) == 2
    bi.advance("3")
    bi.advance("2")
    again = fl.reader("bi", lease="7d", owner="ana", pipeline="web", project=project)
    assert again.position == bi.position == "3", "it never moves back, and a new lease keeps it"
    assert let_go(project, graph) == 4
    again.release()
    assert let_go(project, graph) == 5
    with pytest.raises(FirnlineError, match=r"NO_SUCH_HOLD: 'web' has no reader 'bi': it was released"):
        bi.advance("4")


def test_a_reader_without_a_position_begins_at_the_frontier(project: Project) -> None:
    assert fl.reader("bi", lease="7d", project=project).position == "7"
    with pytest.raises(FirnlineError, match="EPOCH_NOT_COMPLETE"):
        fl.reader("bi", lease="7d", project=project).advance("8")


def test_a_lease_that_ended_holds_no_more_and_the_reader_is_told(project: Project) -> None:
    clock, graph = Clock(), project.graph("web")
    with replaced(clock):
        bi = fl.reader("bi", lease="7d", owner="ana", position="1", project=project)
        clock.time += timedelta(days=6)
        bi.advance("2")
        clock.time += timedelta(days=6)
        assert safe_point(project, graph).at == 3, "advancing renewed the lease"
        clock.time += timedelta(days=1)
        found = safe_point(project, graph)
        assert (found.at, [hold.name for hold in found.expired]) == (5, ["bi"])
        assert fl.reader("bi", lease="1d", project=project).position == "2", "nothing is let go of yet"
        clock.time += timedelta(days=1)
        assert let_go(project, graph) == 5
        told = r"LEASE_EXPIRED: the lease of the reader 'bi' ended at 2026-01-15.*from 3 on, are let go of.*only since 5"
        with pytest.raises(FirnlineError, match=told):
            fl.reader("bi", lease="7d", project=project)
        with pytest.raises(FirnlineError, match=told):
            bi.advance("3")
        bi.advance("6")
        assert bi.position == "6", "what it has seen meanwhile it does not need"
        bi.release()
        assert fl.reader("bi", lease="7d", project=project).position == "7"


@pytest.mark.parametrize("lease", ["soon", "0d", "99999999999d"])
def test_a_lease_that_is_none_is_refused(project: Project, lease: str) -> None:
    with pytest.raises(FirnlineError, match="BAD_OPTION: lease: "):
        fl.reader("bi", lease=lease, project=project)


def test_the_recovery_time_is_that_of_all_after_the_safe_point(project: Project) -> None:
    fl.reader("bi", lease="7d", position="2", project=project)
    found = safety(project, project.graph("web"))
    assert [(line.collection, line.epochs, line.seconds) for line in found.collections] == [("visits", 7, 3.5), ("seen", 5, 2.5)]
    assert found.seconds == 6.0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Five epochs in a real catalog, and a second pipeline without any."""
    root = tmp_path_factory.mktemp("stored") / "project"
    made = make_project(root, **{name: PIPELINE.format(name=name) for name in ("web", "shop")})
    for epoch in range(5):
        publish(made, "visits", epoch, {})
        publish(made, "seen", epoch, {"visits": "same"})
    made.control("web").advance(Frontier(5, {"visits": 0, "seen": 0}))
    return compiled(made, "web", "shop")


def test_the_command_shows_and_releases_holds(stored: Project) -> None:
    root, made = stored.settings.root, stored
    for name in ("web", "shop"):
        fl.reader("bi", lease="7d", owner="ana", pipeline=name, project=made)
    fl.reader("feed", lease="7d", owner="ben", pipeline="web", position="0", project=made)
    shop, web = command(root, "safepoint", "--json")
    assert (shop["safe_point"], web["safe_point"], web["frontier"]) == ("0", "1", "5")
    assert [(hold["kind"], hold["name"], hold["at"]) for hold in web["holds"]][:2] == [
        ("reader", "feed", "1"),
        ("retention", "keep='3 epochs'", "2"),
    ]
    assert "by the reader 'feed' (owner ben" in command(root, "safepoint", "web")
    (after,) = command(root, "safepoint", "--release", "feed", "--json")
    assert (after["pipeline"], after["safe_point"]) == ("web", "2")
    refusals = [command(root, "safepoint", "--release", name, "--json", code=1) for name in ("feed", "bi")]
    assert [refusal["error"]["code"] for refusal in refusals] == ["NO_SUCH_HOLD"] * 2
    assert "of shop and of web" in refusals[1]["error"]["what"]
    assert command(root, "status", "web", "--json")[0]["safe_point"] == "2"


def test_the_command_imports_neither_spark_nor_pyiceberg_nor_sqlalchemy(stored: Project) -> None:
    run = "from firnline.cli.app import app; app(['safepoint', 'web'], standalone_mode=False)"
    program = f"import sys; {run}; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=stored.settings.root, capture_output=True, text=True, check=True)
    assert not {"pyspark", "pyiceberg", "sqlalchemy"} & set(done.stderr.split())


def test_an_epoch_below_since_is_refused_with_since_and_the_retention(stored: Project) -> None:
    graph = stored.graph("web")
    consolidate(stored, "visits", 3)
    told = r"EPOCH_COMPACTED: web\.visits keeps single epochs only since 3, as keep='3 epochs' says.*keep="
    for ask in (
        lambda: show.rows(stored, graph, "visits", "1"),
        lambda: show.changes(stored, graph, "visits", "2"),
        lambda: fl.read("web.visits", as_of="1", project=stored),
    ):
        with pytest.raises(FirnlineError, match=told):
            ask()
    assert show.rows(stored, graph, "visits", "2")[0], "the state at since can be read"
    assert show.changes(stored, graph, "visits", "3")[0]
