"""Logs whose collections the code has not any more, on real tables, without a JVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.fingerprint import Fingerprint
from firnline.runtime.plain_tables import bring_up
from firnline.runtime.project import Project
from firnline.runtime.renaming import renames
from firnline.runtime.retiring import retire, retired
from firnline.tables.control import TABLE
from firnline.tables.trash import Trash
from firnline.tables.views import keep
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
