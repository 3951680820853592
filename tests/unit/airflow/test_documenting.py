"""What Airflow's pages say about a collection comes from its declaration."""

from __future__ import annotations

from firnline.airflow.documenting import described, of_collection
from firnline.errors import Location
from firnline.model.check import Check
from firnline.model.declaration import Collection
from firnline.model.epoch import Schedule
from firnline.model.graph import Graph
from firnline.model.retention import Retention


def collection(name: str, *inputs: str, doc: str = "", **more: object) -> Collection:
    kind = "stage" if inputs else "source"
    return Collection(name, kind, ("k",), (), 4, "auto", inputs, doc, Location("web.py", 7), **more)  # type: ignore[arg-type]


def graph(*collections: Collection) -> Graph:
    return Graph("web", Schedule.parse(1, 0, None), collections, {}, 60.0, Retention.parse("30 epochs"))


def test_a_tasks_page_has_docstring_facts_and_links() -> None:
    visits = collection("visits")
    sums = collection("sums", "visits", doc="Sums by key.\n\nIn cents.", checks=(Check("sane"),))
    text = of_collection(graph(visits, sums), sums)
    assert text.startswith("Sums by key.\n\nIn cents.")
    for fact in (
        "| declared in | `web.py:7` |",
        "| reads | `visits` |",
        "| parts | 4 |",
        "| refresh | auto |",
        "| checks | `sane` |",
    ):
        assert fact in text
    assert "(/firnline/?dag_id=web&collection=sums)" in text
    assert "`firnline explain web.sums`" in text
    assert "| is read by | `sums` |" in of_collection(graph(visits, sums), visits)


def test_a_pipe_in_a_docstring_does_not_break_the_table() -> None:
    assert "| a \\| b. |" in described(graph(collection("visits", doc="a | b. More.")))
