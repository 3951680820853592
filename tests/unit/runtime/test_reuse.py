"""What a rewind took out comes back without being computed, exactly where computing it would give the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.plan.frontier import cut
from firnline.runtime.project import Project
from firnline.runtime.reuse import reused
from firnline.runtime.rewind import rewind
from tests.project import make_project
from tests.publishing import READS, publish_all, web


@pytest.fixture(scope="module")
def graph() -> Graph:
    return web()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    publish_all(made, 0, 1, 2)
    found = cut({name: head.description for name in READS if (head := made.log("web", name).head()) is not None})
    assert found is not None
    made.control("web").advance(found)
    return made


def again(project: Project, graph: Graph, name: str, epoch: int) -> bool:
    """Whether an epoch comes back."""
    collection = graph.collection(name)
    heads = {each: head for each in collection.inputs if (head := project.log("web", each).head()) is not None}
    head = project.log("web", name).head()
    assert head is not None
    done = reused(project, graph, collection, head.description.generation, Epoch(epoch, epoch + 1), f"{name}{epoch}r", heads)
    assert done is None or (done.verdict, done.is_reused) == (Verdict.FREE, True)
    return done is not None


def other(project: Project, name: str, epoch: int) -> None:
    """Publish an epoch with other rows than before."""
    log = project.log("web", name)
    head, newest = log.head(), next(log.entries())
    assert head is not None
    generation, rows = head.description.generation, {(epoch, 0): Digest(9, 9, 9, 9)}
    note = replace(log.sidecar(newest), lower=epoch, upper=epoch + 1, attempt=f"{name}{epoch}other", digests=rows)
    assert log.publish(generation, note, None) is Verdict.FREE


def digests(project: Project) -> dict[str, list[object]]:
    logs = {name: project.log("web", name) for name in READS}
    return {name: [(entry.lower, log.sidecar(entry).digests) for entry in log.entries()] for name, log in logs.items()}


def test_with_the_same_code_everything_comes_back(project: Project, graph: Graph) -> None:
    before = digests(project)
    rewind(project, graph, 1, None, "ana")
    assert [again(project, graph, name, epoch) for epoch in (1, 2) for name in READS] == [True] * 8
    assert digests(project) == before
    sidecar = project.log("web", "seen").sidecar(next(project.log("web", "seen").entries()))
    assert {of.generation for of in sidecar.inputs.values()} == {1}, "lineage names what is there now"


def test_other_code_is_computed(project: Project, graph: Graph) -> None:
    rewind(project, graph, 1, None, "ana")
    changed = replace(graph, fingerprints={**graph.fingerprints, "pages": "0" * 32})
    assert [again(project, changed, name, 1) for name in ("visits", "pages")] == [True, False]


def test_what_was_taken_out_to_be_made_anew_is_computed_whoever_comes_first(project: Project, graph: Graph) -> None:
    rewind(project, graph, 2, None, "ana")
    rewind(project, graph, 1, None, "ana", name="force_0123_visits")
    assert [again(project, graph, name, 1) for name in READS] == [False] * 4
    other(project, "pages", 1)
    rewind(project, graph, 1, "pages", "ana")
    assert again(project, graph, "pages", 1), "what was made anew is as good as any"


def test_what_comes_of_other_rows_is_computed_and_the_rest_is_not(project: Project, graph: Graph) -> None:
    rewind(project, graph, 1, None, "ana")
    other(project, "visits", 1)
    assert [again(project, graph, name, 1) for name in ("pages", "seen")] == [True, False]
    other(project, "seen", 1)
    assert not again(project, graph, "totals", 1)


def test_a_stage_alone_is_compared_with_inputs_that_never_moved(project: Project, graph: Graph) -> None:
    rewind(project, graph, 1, "totals", "ana")
    assert again(project, graph, "totals", 1)
    other(project, "totals", 2)
    rewind(project, graph, 2, "totals", "ana")
    assert again(project, graph, "totals", 2), "the newest that was taken out"


def test_a_state_that_differs_before_the_epoch_is_a_difference(project: Project, graph: Graph) -> None:
    rewind(project, graph, 1, None, "ana")
    other(project, "visits", 1)
    assert not again(project, graph, "visits", 2), "its own state is another"
