"""What Airflow's pages say about a collection comes from its declaration."""

from __future__ import annotations

from firnline.airflow.documenting import described, of_collection
from firnline.errors import Location
from firnline.model.check import Check
from firnline.model.declaration import Collection
from firnline.model.epoch import Schedule
from firnline.model.graph import Graph
from firnline.model.retention import Retention
from firnline.runtime.explained import Explained, Operator


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


def test_a_tasks_page_says_how_a_change_is_computed_where_that_is_known() -> None:
    sums = collection("sums", "visits")
    kept = ("sums__1a", (Operator(0, "sums by k: n", "is added"), Operator(1, "visits (k, n_1)", "is read")))
    plan = ("sums", (Operator(0, "select a*b as c", "is looked\n up"),))
    known = Explained("repeatable", "it adds up", (kept, plan), {}, None, None)
    text = of_collection(graph(sums), sums, known)
    assert "It is computed from what changed, and is *repeatable*: it adds up." in text
    assert "at once where they change few rows." in text
    assert "`sums__1a`, kept from epoch to epoch:\n\n- **sums by k: n**: is added\n  - **visits (k, n\\_1)**: is read" in text
    assert "The stage:\n\n- **select a\\*b as c**: is looked up" in text
    refused = Explained("convergent", "it is full", (), {}, "NO_RULE: sample. Do.", "it is computed in full")
    text = of_collection(graph(sums), sums, refused)
    assert "in full, as the difference to the log, and is *convergent*" in text
    assert "never: it is computed in full. No rule: NO\\_RULE: sample. Do." in text
