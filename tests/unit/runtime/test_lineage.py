"""Lineage from summaries and sidecars: up to the sources, down to the readers, by part; as a graph and as a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from firnline.cli.picture import drawn
from firnline.errors import FirnlineError
from firnline.model.graph import Graph
from firnline.runtime.lineage import Direction, Lineage, lineage
from firnline.runtime.project import Project
from tests.project import make_project
from tests.publishing import publish, publish_all, web


@pytest.fixture(scope="module")
def graph() -> Graph:
    return web()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = make_project(tmp_path_factory.mktemp("lineage"))
    publish_all(made, 0, 1, 2)
    return made


def links(told: Lineage) -> set[tuple[str, str, str]]:
    return {(edge.reader, edge.input, edge.parts) for edge in told.edges}


def parts(told: Lineage) -> dict[str, tuple[int, ...] | None]:
    return {node.id: node.of_parts for node in told.nodes}


def test_upstream_leads_to_the_sources_and_names_every_publication_once(project: Project, graph: Graph) -> None:
    told = lineage(project, graph, "totals", "1")
    assert told.nodes[0].id == "totals@1"
    assert sorted(node.id for node in told.nodes) == ["pages@1", "seen@1", "totals@1", "visits@1"]
    assert links(told) == {
        ("totals@1", "seen@1", "all"),
        ("totals@1", "pages@1", "same"),
        ("seen@1", "visits@1", "same"),
        ("seen@1", "pages@1", "all"),
    }
    (seen,) = (node for node in told.nodes if node.collection == "seen")
    entry = next(entry for entry in project.log("web", "seen").entries() if entry.lower == 1)
    assert (seen.snapshot, seen.attempt, seen.epochs, seen.rows, seen.weight) == (entry.snapshot, "seen1", ("1",), 3, 3)
    assert [(each.part, each.rows, each.digest) for each in seen.parts] == [
        (0, 1, "ffffffffffffffff0000000000000001"),
        (1, 2, "fffffffffffffffe0000000000000001"),
    ]
    assert {(edge.upper, edge.rows) for edge in told.edges if edge.input == "visits@1"} == {("2", 3)}


def test_a_part_leads_to_the_same_part_or_to_all(project: Project, graph: Graph) -> None:
    told = lineage(project, graph, "seen", "1", part=1)
    assert parts(told) == {"seen@1": (1,), "visits@1": (1,), "pages@1": None}
    assert [node.rows for node in told.nodes if node.collection == "visits"] == [2]
    assert parts(lineage(project, graph, "visits", "1", 0, "downstream")) == {"visits@1": (0,), "seen@1": (0,), "totals@1": None}


def test_a_part_that_is_read_by_two_branches_matters_as_a_whole_if_one_needs_all(project: Project, graph: Graph) -> None:
    assert parts(lineage(project, graph, "totals", "1", part=0)) == {
        "totals@1": (0,),
        "seen@1": None,
        "pages@1": None,
        "visits@1": None,
    }


def test_downstream_says_from_where_on_who_builds_on_it(project: Project, graph: Graph) -> None:
    told = lineage(project, graph, "pages", "1", direction="downstream")
    assert {(node.id, node.later) for node in told.nodes} == {("pages@1", 1), ("seen@1", 1), ("totals@1", 1)}
    assert links(told) == {("seen@1", "pages@1", "all"), ("totals@1", "pages@1", "same"), ("totals@1", "seen@1", "all")}


def test_a_reader_that_came_later_builds_on_it_from_there_on(tmp_path: Path, graph: Graph) -> None:
    project = make_project(tmp_path)
    for epoch, code in enumerate("aab"):
        publish(project, "visits", epoch)
        publish(project, "pages", epoch)
        publish(project, "seen", epoch, {"visits": "same", **({"pages": "all"} if code == "b" else {})}, code=code)
    assert links(lineage(project, graph, "pages", "0", direction="downstream")) == {("seen@2", "pages@0", "all")}


def test_determinants_are_named(tmp_path: Path, graph: Graph) -> None:
    project = make_project(tmp_path)
    publish(project, "visits", 0, determinants={"files": ["x"], "draw": 4})
    assert lineage(project, graph, "visits", "0").nodes[0].determinants == ("draw", "files")


@pytest.mark.parametrize(
    ("collection", "epoch", "part", "code"),
    [
        ("totals", "3", None, "EPOCH_NOT_COMPLETE"),
        ("totals", "-1", None, "BEFORE_START"),
        ("totals", "x", None, "BAD_EPOCH"),
        ("totals", "1", 1, "BAD_OPTION"),
        ("nobody", "1", None, "NO_SUCH_COLLECTION"),
        ("visits__quarantine", "1", None, "NO_SUCH_COLLECTION"),
    ],
)
def test_what_is_not_there_is_refused(
    project: Project, graph: Graph, collection: str, epoch: str, part: int | None, code: str
) -> None:
    with pytest.raises(FirnlineError) as caught:
        lineage(project, graph, collection, epoch, part)
    assert caught.value.code == code


@pytest.mark.parametrize("direction", ["upstream", "downstream"])
def test_a_picture_has_a_box_for_every_publication_and_a_line_for_every_edge(
    project: Project, graph: Graph, direction: Direction
) -> None:
    told = lineage(project, graph, "totals" if direction == "upstream" else "pages", "1", direction=direction)
    root = ElementTree.fromstring(drawn(told))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [each for each in root.iter(f"{space}rect") if "box" in each.get("class", "")]
    lines = [each for each in root.iter(f"{space}path") if "line" in each.get("class", "")]
    assert (len(boxes), len(lines)) == (len(told.nodes), len(told.edges))
    for one in boxes:
        for other in boxes:
            assert one is other or not _overlap(one, other)


def test_a_picture_takes_any_text(tmp_path: Path, graph: Graph) -> None:
    project = make_project(tmp_path)
    publish(project, "visits", 0, determinants={"<script>&\"']]>": 1})
    text = drawn(lineage(project, graph, "visits", "0"))
    assert "<script>" not in text
    assert "<script>&\"']]>" in "".join(ElementTree.fromstring(text).itertext())


def _overlap(one: ElementTree.Element, other: ElementTree.Element) -> bool:
    (x, y, w, h), (a, b, c, d) = ([float(each.get(name, "")) for name in ("x", "y", "width", "height")] for each in (one, other))
    return x < a + c and a < x + w and y < b + d and b < y + h
