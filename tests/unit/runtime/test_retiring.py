"""Logs whose collections the code has not any more, on real tables, without a JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gap, Span
from firnline.plan.changing import Approval
from firnline.plan.frontier import Frontier
from firnline.runtime.advance import complete
from firnline.runtime.plain_tables import bring_up
from firnline.runtime.project import Project
from firnline.runtime.renaming import renames
from firnline.runtime.retiring import retire, retired
from firnline.runtime.rewind import rewind
from firnline.runtime.safepoint import safe_point
from firnline.runtime.verify import verify
from firnline.tables.control import TABLE
from firnline.tables.failures import Failure
from firnline.tables.trash import Trash
from firnline.tables.views import keep
from firnline.world import replaced
from tests.happening import At
from tests.project import make_project
from tests.shelf import Shelf

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"])
    def {name}(epoch):
        return epoch.spark.range(3)
"""
READER = """
    import firnline as fl

    daily = fl.Pipeline("daily", schedule=1, start=0)

    @daily.stage(keys=["id"])
    def report(visits=fl.collection("web.{name}")):
        return visits
"""


def test_a_collection_without_code_is_seen_recognised_and_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_project(tmp_path, web=PIPELINE.format(name="visits"), daily=READER.format(name="visits"))
    graph = made.graph("web")
    assert retired(made, graph, renames(made, graph)) == ()
    made_by = Fingerprint(graph.fingerprints["visits"])
    monkeypatch.setattr("tests.shelf.Fingerprint", lambda _: made_by)
    shelf = Shelf(made, "web", "visits", pa.schema([("id", pa.int64())]), ("id",))
    shelf.publish([({"id": number}, 1) for number in range(3)], [({"id": 0}, -1)])
    shelf.complete()
    Shelf(made, "web", "visits__quarantine", pa.schema([("id", pa.int64())]), ())
    assert retired(made, graph, renames(made, graph)) == ()

    make_project(tmp_path, web=PIPELINE.format(name="views"), daily=READER.format(name="visits"))
    made = Project.load(tmp_path)
    graph = made.graph("web")
    (gone,) = retired(made, graph, renames(made, graph))
    assert (gone.collection, gone.renamed, gone.upper, gone.rows, gone.branches) == ("visits", "views", "2", 2, ())
    assert gone.readers == ("daily",)
    assert gone.bytes > 0

    with pytest.raises(FirnlineError, match="NO_SUCH_COLLECTION"):
        retire(made, graph, "views")
    bring_up(made, replace(graph, collections=(replace(graph.collections[0], name="visits", publish="table"),)))
    table = made.log("web", "visits").load()
    assert table is not None
    keep(made.catalog, table, "")
    assert made.catalog.names("web__views") == made.catalog.names("web__tables") == {"visits"}
    assert set(retire(made, graph, "visits")) == {"web.visits", "web.visits__quarantine", "web__tables.visits"}
    assert made.catalog.names("web__views") == made.catalog.names("web__tables") == set()
    assert made.catalog.names("web") == {TABLE}
    control = made.catalog.table("web", TABLE)
    assert control is not None
    assert len(Trash(made.catalog).records(control)) == 1, "what it held goes after the grace time"
    assert retired(made, graph, renames(made, graph)) == ()


@pytest.mark.parametrize("point", ["frontier.judged", "frontier.committed", "rename.decided"])
def test_an_epoch_that_older_code_completes_does_not_bring_a_retired_name_back(tmp_path: Path, point: str) -> None:
    both = PIPELINE + PIPELINE[PIPELINE.index("    @web") :].replace("{name}", "others")
    made = make_project(tmp_path, web=both.format(name="visits"))
    older = made.graph("web")
    shelves = [Shelf(made, "web", name, pa.schema([("id", pa.int64())]), ("id",)) for name in ("visits", "others")]
    for shelf in shelves:
        shelf.publish([({"id": 0}, 1)])
    complete(made, older, Epoch(0, 1))
    for shelf in shelves:
        shelf.publish([({"id": 1}, 1)])
    make_project(tmp_path, web=PIPELINE.format(name="others"))
    today = Project.load(tmp_path)

    def let_go() -> None:
        retire(today, today.graph("web"), "visits")

    def finish() -> None:
        complete(made, older, Epoch(1, 2))

    during, happens = (let_go, finish) if point == "rename.decided" else (finish, let_go)
    with replaced(At(point, happens)):
        during()
    assert today.control("web").frontier() == Frontier(2, {"others": 0})
    assert verify(today, "web").problems == ()


def test_a_name_is_used_again_right_after_its_log_was_retired(tmp_path: Path) -> None:
    both = PIPELINE + PIPELINE[PIPELINE.index("    @web") :].replace("{name}", "others")
    made = make_project(tmp_path, web=both.format(name="visits"))
    graph, control, schema = made.graph("web"), made.control("web"), pa.schema([("id", pa.int64())])
    visits, others = (Shelf(made, "web", name, schema, ("id",)) for name in ("visits", "others"))
    for shelf in (visits, others):
        shelf.publish([({"id": 0}, 1)], [({"id": 1}, 1)])
    complete(made, graph, Epoch(1, 2))
    rewind(made, graph, 1, "visits", "ana")
    visits.deltas.pop()
    visits.publish([({"id": 2}, 1)])
    complete(made, graph, Epoch(1, 2))
    own = Gap("own", "visits", (Span(0, 0, (0,)),), 1, "2026-01-01T00:00:00+00:00", "web.visits", "gone", {"visits": 2})
    read = replace(own, id="read", collection="others", before={"others": 2, "visits": 2})
    control.change(lambda gaps: gaps.opened(own).settled("own").opened(read).settled("read"))
    control.approve([Approval("visits", "f" * 32, None, 0, "ana", "2026-01-01T00:00:00+00:00")])

    make_project(tmp_path, web=PIPELINE.format(name="others"))
    made = Project.load(tmp_path)
    held = {each.name: each.release for each in safe_point(made, made.graph("web")).holds if each.kind == "gap"}
    assert held == {"visits": "firnline plan web --retire visits", "others": "firnline repair web"}
    for name in ("visits", "others"):
        made.failures("web").note(Failure(name, 2, 3, "a", "CHECK_FAILED", "no", False, "2026-01-01T00:00:00+00:00"))
    retire(made, made.graph("web"), "visits")
    assert [each.collection for each in made.failures("web").open({})] == ["others"], "a new one of its name failed nothing"
    assert [each.name for each in safe_point(made, made.graph("web")).holds if each.kind == "gap"] == ["others"]
    present = control.agreement()
    assert (present.approvals, dict(present.gaps.corrections)) == ((), {"others": "read"})
    control.change(lambda gaps: gaps.back("read", "b", {"others": 2}, read.spans).corrected("others", "b", 2))
    assert control.gaps().gaps == (), "it waits for nobody who is gone"

    make_project(tmp_path, web=both.format(name="visits"))
    made = Project.load(tmp_path)
    again = Shelf(made, "web", "visits", schema, ("id",))
    again.publish([({"id": 0}, 1)], [], [({"id": 1}, 1)])
    others.publish([])
    frontier = complete(made, made.graph("web"), Epoch(2, 3))
    assert frontier == Frontier(3, {"visits": 0, "others": 0})
