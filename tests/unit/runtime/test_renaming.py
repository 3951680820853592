"""A source that gets another name, on real tables, without a JVM: its logs and all that is known of it go on, whatever dies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.model.fingerprint import Fingerprint
from firnline.model.hold import Hold
from firnline.plan.changing import Approval
from firnline.runtime.advance import is_kept
from firnline.runtime.plain_tables import bring_up
from firnline.runtime.project import Project
from firnline.runtime.renaming import keep_all, keep_renamed, known_names, renames
from firnline.runtime.retiring import retire
from firnline.runtime.rewind import rewind
from firnline.runtime.status import status
from firnline.runtime.verify import verify
from firnline.tables.control import TABLE
from firnline.tables.views import keep
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import At, Killed
from tests.project import compiled, make_project
from tests.shelf import Shelf

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"], publish="table")
    def {name}(epoch):
        return epoch.spark.range({rows})
"""
SCHEMA = pa.schema([("id", pa.int64())])
POINTS = [("rename.deciding", 1), ("rename.decided", 1), ("rename.moved", 1), ("rename.moved", 2)]


def called(root: Path, name: str, rows: int = 3) -> Project:
    make_project(root, web=PIPELINE.format(name=name, rows=rows))
    return compiled(Project.load(root), "web")


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose source has two epochs, a quarantine, a view, a plain table, determinants, a sink and a failed attempt."""
    made = called(tmp_path, "visits")
    graph = made.graph("web")
    monkeypatch.setattr("tests.shelf.Fingerprint", lambda _: Fingerprint(graph.fingerprints["visits"]))
    shelf = Shelf(made, "web", "visits", SCHEMA, ("id",))
    shelf.publish([({"id": number}, 1) for number in range(3)], [({"id": 0}, -1)])
    Shelf(made, "web", "visits__quarantine", SCHEMA, ())
    shelf.complete()
    bring_up(made, graph)
    log = made.log("web", "visits").load()
    assert log is not None
    keep(made.catalog, log, "")
    made.determinants("web", "visits", 1).log("files", ["a"])
    control = made.control("web")
    control.hold(lambda _: Hold("sink", "out", 2, "ana", delivered={"visits": 0}), 0)
    control.approve([Approval("visits", "code", None, 0)])
    return tmp_path


def test_the_code_and_the_log_tell_what_was_renamed(visits: Path) -> None:
    made = called(visits, "visits")
    assert renames(made, made.graph("web")) == {}
    made = called(visits, "views", rows=4)
    assert renames(made, made.graph("web")) == {}, "it makes other rows"
    assert not keep_renamed(made, made.graph("web"), "views")
    made = called(visits, "views")
    assert renames(made, made.graph("web")) == {"views": "visits"}
    (line,) = status(made, made.graph("web")).collections
    assert (line.collection, line.upper, line.code) == ("views", "2", "same")


def assert_kept(made: Project) -> None:
    """All that there was of visits is there as views."""
    graph = made.graph("web")
    assert is_kept(made, graph, "views", graph.schedule.epoch_at(1)), "whoever comes next finishes it, and computes nothing"
    assert made.catalog.names("web") == {TABLE, "views", "views__quarantine"}
    assert made.catalog.names("web__tables") == {"views"}
    assert made.catalog.names("web__views") == set(), "the next epoch makes it anew"
    agreement = made.control("web").agreement()
    assert agreement.frontier is not None
    assert agreement.frontier.generations == {"views": 0}
    assert [(each.name, each.delivered) for each in agreement.holds] == [("out", {"views": 0})]
    assert [each.collection for each in agreement.approvals] == ["views"]
    assert agreement.names == {"views": ("visits",)}
    assert made.determinants("web", "views", 1).find("files") == ["a"]
    assert sorted(fl.scan("web.views", project=made).to_arrow().column("id").to_pylist()) == [1, 2]
    assert verify(made, "web").problems == ()
    assert not keep_renamed(made, graph, "views")


@pytest.mark.parametrize(("point", "times"), POINTS)
def test_a_renamed_collection_goes_on_wherever_it_was_interrupted(visits: Path, point: str, times: int) -> None:
    made = called(visits, "views")
    for _ in range(times):
        mortal = Mortal()
        mortal.kill_at = point
        with pytest.raises(Killed), replaced(mortal):
            keep_renamed(made, made.graph("web"), "views")
        views = made.graph("web").collection("views")
        assert known_names(made, made.graph("web"), views, {"views": "visits"}) == {"views": "visits"}, "at any time"
    assert_kept(made)


@pytest.mark.parametrize("point", ["rename.deciding", "rename.decided", "rename.moved"])
def test_a_rename_that_was_interrupted_and_is_taken_back_changes_nothing(visits: Path, point: str) -> None:
    before = called(visits, "visits").control("web").agreement()
    made = called(visits, "views")
    mortal = Mortal()
    mortal.kill_at = point
    with pytest.raises(Killed), replaced(mortal):
        keep_renamed(made, made.graph("web"), "views")
    made = called(visits, "visits")
    graph = made.graph("web")
    assert known_names(made, graph, graph.collection("visits")) == {}
    keep_all(made, graph)
    after = made.control("web").agreement()
    assert replace(after, names={}) == before
    assert known_names(made, graph, graph.collection("visits")) == {}
    assert made.catalog.names("web") == {TABLE, "visits", "visits__quarantine"}
    assert made.catalog.names("web__tables") == {"visits"}
    assert made.determinants("web", "visits", 1).find("files") == ["a"]
    assert is_kept(made, graph, "visits", graph.schedule.epoch_at(1))


@pytest.mark.parametrize("point", ["rename.deciding", "rename.decided", "rename.moved"])
def test_of_two_who_rename_at_once_one_does(visits: Path, point: str) -> None:
    made, other = called(visits, "views"), Project.load(visits)
    with replaced(At(point, lambda: keep_renamed(other, other.graph("web"), "views"))):
        assert keep_renamed(made, made.graph("web"), "views")
    assert_kept(made)


def test_a_name_that_is_given_back_or_taken_up_again_means_what_it_says(visits: Path) -> None:
    made = called(visits, "views")
    keep_renamed(made, made.graph("web"), "views")
    folder = made.log("web", "views").load()
    other = Shelf(called(visits, "visits", rows=4), "web", "visits", SCHEMA, ("id",)).log.load()
    assert folder is not None
    assert other is not None
    assert folder.location != other.location, "files of two logs are never in one folder"
    assert made.catalog.forget(other)

    made = called(visits, "visits")
    assert keep_renamed(made, made.graph("web"), "visits")
    assert made.control("web").agreement().names == {"visits": ("visits", "views")}
    made = called(visits, "hits")
    keep_renamed(made, made.graph("web"), "hits")
    assert made.control("web").agreement().names == {"hits": ("visits", "views", "visits")}
    made = called(visits, "others", rows=4)
    retire(made, made.graph("web"), "hits")
    agreement = made.control("web").agreement()
    assert (agreement.names, agreement.spent) == ({}, ("visits",))
    with pytest.raises(FirnlineError, match="NO_SUCH_COLLECTION"):
        retire(made, made.graph("web"), "hits")


def test_a_rewind_takes_renamed_collections_along(visits: Path) -> None:
    made = called(visits, "views")
    graph = made.graph("web")
    with pytest.raises(FirnlineError, match=r"REWIND_BLOCKED.*'views' goes on with the log of 'visits'"):
        rewind(made, graph, 1, None, "ana", is_dry=True)
    assert "visits" in made.catalog.names("web"), "what only tells changes nothing"
    rewind(made, graph, 1, None, "ana")
    head = made.log("web", "views").head()
    assert head is not None
    assert (head.description.generation, head.description.upper) == (1, 1)
