"""``firnline diff`` between environments, on real tables, without a JVM: two profiles of a project, and two projects."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firnline.model.description import Verdict
from firnline.model.digest import digest, part_of
from firnline.plan.frontier import Frontier
from firnline.runtime.project import Project
from firnline.settings import Settings
from firnline.tables.sidecar import Sidecar
from tests.project import command, compiled, make_project
from tests.shelf import Delta, Shelf

SETTINGS = """
    [profile.there]
    work = ".there"

    [profile.same]
    trash = "2d"

    [profile.elsewhere]
    warehouse = "elsewhere"
"""
PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"], parts=4)
    def visits(epoch): ...

    @web.stage(keys=["id"], parts=4)
    def large(visits):
        return visits
"""
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.float64())])
FIRST: Delta = [({"id": each, "n": float(each)}, 1) for each in range(8)]
SECOND: Delta = [({"id": 3, "n": 3.0}, -1), ({"id": 3, "n": float("nan")}, 1), ({"id": 9, "n": None}, 1)]
OTHER: Delta = [({"id": 3, "n": 3.0}, -1), ({"id": 3, "n": 0.5}, 1), ({"id": 9, "n": None}, 1)]


@dataclass
class Environment(Shelf):
    """A collection with digests as they are, whose attempts are called otherwise in every environment."""

    parts: int = 4
    called: str = ""

    def _stage(self, name: str, *more: Any) -> None:
        super()._stage(self.called + name, *more)

    def _sidecar(self, name: str, lower: int, upper: int, rows: Delta, **more: Any) -> Sidecar:
        table = self.log.load()
        assert table is not None
        digests = {}
        for part in range(self.parts):
            own = [(row, diff) for row, diff in rows if part_of([row["id"]], self.parts) == part]
            weighted = [({table.columns[name]: value for name, value in row.items()}, diff) for row, diff in own]
            digests[upper - 1, part] = digest(weighted)
        return replace(super()._sidecar(self.called + name, lower, upper, rows, **more), digests=digests)


def publish(project: Project, called: str, **deltas: list[Delta]) -> list[Shelf]:
    """The collections of an environment, complete."""
    made = [Environment(project, "web", name, SCHEMA, ("id",), called=called) for name in deltas]
    for shelf in made:
        for delta in deltas[shelf.collection]:
            epoch = len(shelf.deltas)
            shelf._stage(str(epoch), epoch, [(row, epoch, diff) for row, diff in delta])
            sidecar = shelf._sidecar(str(epoch), epoch, epoch + 1, delta)
            assert shelf.log.publish(0, sidecar, shelf.log.staged(f"{called}{epoch}")) is Verdict.FREE
            shelf.deltas.append(delta)
    project.control("web").advance(Frontier(len(made[0].deltas), dict.fromkeys(deltas, 0)))
    return list(made)


@pytest.fixture
def web(tmp_path: Path) -> Project:
    """A pipeline in two environments, computed apart; of one stage a row is another."""
    web = compiled(make_project(tmp_path, SETTINGS, web=PIPELINE), "web")
    there = compiled(Project(Settings.load(tmp_path, "there")), "web")
    assert there.settings.warehouse != web.settings.warehouse
    publish(web, "here", visits=[FIRST, SECOND], large=[FIRST, SECOND])
    publish(there, "there", visits=[FIRST[::-1], SECOND[::-1]], large=[FIRST, OTHER])
    return web


def test_two_profiles_are_compared_by_digests_and_rows_of_parts_that_differ(web: Project) -> None:
    root = web.settings.root
    found = command(root, "diff", "main", "main", "--other", "there", "--json")
    assert (found["before"], found["after"], found["first"], found["same"]) == ("main", "main of there", "large", False)
    visits, large = found["collections"]
    assert (visits["verdict"], visits["files_read"]) == ("same", 0), "neither layers nor files are the same, rows are"
    assert (large["verdict"], large["changed"], large["added"], large["removed"]) == ("differs", 1, 0, 0)
    assert large["differing_parts"] == 1
    assert [each["new"]["n"] for each in large["rows"]] == [0.5]
    assert [(each["epoch"], each["parts"]) for each in large["epochs"]] == [("0", 0), ("1", 1)]
    assert command(root, "diff", "main", "main", "--other", "there", "--epoch", "0", "--stage", "large", "--json")["same"]

    page = root / "diff.html"
    assert "main of there" in command(root, "diff", "main", "main", "--other", "there", "--html", str(page))
    assert "main of there" in page.read_text()


def test_two_projects_are_compared(web: Project, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    make_project(copy, web=PIPELINE)
    shutil.rmtree(copy / ".firnline")
    project = compiled(Project.load(copy), "web")
    publish(project, "copy", visits=[FIRST], large=[FIRST])
    found = command(web.settings.root, "diff", "main", "main", "--other", str(copy), "--json")
    assert (found["same"], found["after"]) == (True, f"main of {copy}"), "up to the newest epoch that both have"
    found = command(web.settings.root, "diff", "main@1", "main@0", "--other", str(copy), "--stage", "large", "--json")
    assert [(each["added"], each["removed"], each["changed"]) for each in found["collections"]] == [(0, 1, 1)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("nowhere", "there is no [profile.nowhere]"),
        ("same", "'same' has the same catalog as this one"),
        ("elsewhere", "'elsewhere' has the same catalog as this one"),
        (".", "the same catalog as this one"),
    ],
)
def test_what_is_no_other_environment_is_refused(web: Project, other: str, said: str) -> None:
    assert said in command(web.settings.root, "diff", "main", "main", "--other", other, "--json", code=1)["error"]["what"]
