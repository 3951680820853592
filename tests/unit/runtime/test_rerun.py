"""Runs for epochs that the logs hold: filled, kept, or rewound and replayed, in any order and at once. Without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firnline import Pipeline, collection
from firnline.errors import FirnlineError
from firnline.model.declaration import Collection, OnChange
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph, check
from firnline.plan.changing import Approval
from firnline.plan.frontier import cut
from firnline.runtime.advance import advance_by, complete
from firnline.runtime.attempt import Published
from firnline.runtime.project import Project
from firnline.runtime.rerun import Rerun
from firnline.runtime.reuse import reused
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.status import status
from firnline.tables.log import Head
from firnline.tables.sidecar import Input, Sidecar
from firnline.world import replaced
from tests.happening import At
from tests.project import make_project
from tests.publishing import READS, publish_all, web

OLD, NEW = "f" * 32, "0" * 32
EPOCHS = 4


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = make_project(tmp_path)
    publish_all(made, *range(EPOCHS))
    found = cut({name: head.description for name in READS if (head := made.log("web", name).head()) is not None})
    assert found is not None
    made.control("web").advance(found)
    return made


def graph(on_change: OnChange = "allow", *changed: str) -> Graph:
    found = web()
    return replace(found, on_change=on_change, fingerprints={**found.fingerprints, **dict.fromkeys(changed, NEW)})


class Engine:
    """Publishes what the code says, and counts it."""

    def __init__(self, project: Project, graph: Graph, fresh: Epoch | None = None) -> None:
        self.project, self.graph, self.fresh = project, graph, fresh
        self.computed: list[tuple[str, int]] = []

    def __call__(self, of: Collection, generation: int, epoch: Epoch, attempt: str, inputs: Mapping[str, Head]) -> Published:
        name = of.name
        if epoch != self.fresh:
            again = reused(self.project, self.graph, of, generation, epoch, attempt, inputs)
            if again is not None:
                return again
        self.computed.append((name, epoch.lower))
        code = self.graph.fingerprints[name]
        parts = range(2 if name in ("visits", "seen") else 1)
        rows = 1 if code == OLD else 7  # old code gives what is there
        digests = {(epoch.lower, part): Digest(part + rows, part + rows, 2**64 - 1 - part, epoch.lower) for part in parts}
        read = {
            each: Input(head.description.generation, epoch.upper, head.snapshot or 0, 1, READS[name][each])
            for each, head in inputs.items()
        }
        note = Sidecar(name, epoch.lower, epoch.upper, attempt, Fingerprint(code), read, digests, 0.1)
        return Published(self.project.log("web", name).publish(generation, note, None), Digest())


def steps(project: Project, graph: Graph, at: int, force: str | None = None, tries: int = 50) -> Iterator[list[tuple[str, int]]]:
    """A DAG run, which may be interrupted by others wherever it yields; tasks that may be tried again are."""
    epoch = Epoch(at, at + 1)
    rerun = Rerun(project, graph, epoch, force)

    def task(name: str) -> Iterator[list[tuple[str, int]]]:
        engine = Engine(project, graph)
        if not rerun.is_settled(name):
            yield []
            last, engine.fresh = rerun.target(None, None, name)  # type: ignore[arg-type]  # no plan is asked for
            for _ in advance_by(engine, project, graph, name, last):
                yield engine.computed
                engine.computed = []

    def completed() -> Iterator[list[tuple[str, int]]]:
        complete(project, graph, epoch)
        yield []

    for each in (*(partial(task, of.name) for of in graph.collections), completed):
        for left in reversed(range(tries)):
            try:
                yield from each()
                break
            except FirnlineError as error:
                if not error.retryable or not left:
                    raise
                yield []


def run(project: Project, graph: Graph, *at: int, force: str | None = None) -> list[tuple[str, int]]:
    return [each for epoch in at for done in steps(project, graph, epoch, force) for each in done]


def codes(project: Project) -> dict[str, str]:
    """What made each epoch, the oldest first: o for old code, n for new."""
    logs = {name: list(project.log("web", name).entries())[::-1] for name in READS}
    assert all([entry.lower for entry in entries] == list(range(len(entries))) for entries in logs.values())
    return {name: "".join("o" if entry.fingerprint.code == OLD else "n" for entry in entries) for name, entries in logs.items()}


def is_whole(project: Project) -> bool:
    agreement = project.control("web").agreement()
    assert agreement.frontier is not None
    return agreement.frontier.upper == EPOCHS and agreement.rewinds == agreement.holds == ()


def test_the_same_code_and_inputs_keep_everything(project: Project) -> None:
    before = {name: project.log("web", name).head() for name in READS}
    assert run(project, graph("reject"), *range(EPOCHS)) == []
    assert {name: project.log("web", name).head() for name in READS} == before


@pytest.mark.parametrize("order", [(1, 2), (2, 1), (1,)], ids=["forwards", "backwards", "one"])
def test_changed_code_is_replayed_from_the_first_epoch_of_the_range_to_the_end(project: Project, order: tuple[int, ...]) -> None:
    done = run(project, graph("allow", "seen"), *order)
    assert codes(project) == {"visits": "oooo", "pages": "oooo", "seen": "onnn", "totals": "oooo"}
    assert {name for name, _ in done} == {"seen", "totals"}, "nothing else is computed"
    assert is_whole(project)
    assert run(project, graph("allow", "seen"), *reversed(order)) == []


def test_what_is_missing_is_filled_and_what_was_rewound_by_hand_comes_back(project: Project) -> None:
    rewind(project, graph(), 1, "seen", "ana")
    told = status(project, graph())
    assert [(line.collection, line.missing) for line in told.collections if line.missing] == [("seen", 3), ("totals", 3)]
    assert told.rewinds == ("1 up to 4 is to be replayed in seen, totals: taken back by ana",)
    assert run(project, graph(), 0) == [], "its epoch was not taken out"
    assert run(project, graph(), 2) == [], "all of it is reused"
    assert is_whole(project)
    assert status(project, graph()).rewinds == ()


def test_nobody_is_rewound_unasked(project: Project) -> None:
    changed = graph("await_approval", "seen")
    before = codes(project)
    with pytest.raises(FirnlineError, match=r"CHANGE_NOT_APPROVED.*'seen'.*from 2 on.*'firnline approve web'.*'--from 2'"):
        run(project, changed, 2)
    with pytest.raises(FirnlineError, match="CHANGE_REJECTED"):
        run(project, replace(changed, on_change="reject"), 2)
    project.control("web").approve([Approval("seen", NEW, None, EPOCHS)])
    assert run(project, changed, 1, 2) == [], "approved from the next epoch on, published ones keep their code"
    project.control("web").approve([Approval("seen", NEW, None, 2)])
    assert run(project, changed, 1) == []
    assert codes(project) == before
    run(project, changed, 3, 2)
    assert codes(project)["seen"] == "oonn"
    assert is_whole(project)


def test_a_change_further_on_is_asked_about_before_anything_goes_back(project: Project) -> None:
    changed, before = graph("await_approval", "seen", "totals"), codes(project)
    project.control("web").approve([Approval("seen", NEW, None, 1), Approval("totals", NEW, None, 3)])
    with pytest.raises(FirnlineError, match=r"CHANGE_NOT_APPROVED.*'totals'"):
        run(project, changed, 1)
    assert codes(project) == before
    run(project, changed, 3)
    assert codes(project) == {"visits": "oooo", "pages": "oooo", "seen": "ooon", "totals": "ooon"}


def test_force_replays_its_epoch_once_and_reuses_what_comes_after(project: Project) -> None:
    same = graph("await_approval")
    assert run(project, same, 1, force="force_a") == [(name, 1) for name in ("visits", "pages", "seen", "totals")]
    assert run(project, same, 1, force="force_a") == [], "another try of the same run"
    assert run(project, same, 1, force="force_b") != []
    changed = graph("await_approval", "seen")
    assert ("seen", 2) in run(project, changed, 2, force="force_c"), "who forces it approves"
    assert codes(project)["seen"] == "oonn"
    assert is_whole(project)
    with pytest.raises(FirnlineError, match="CHANGE_REJECTED"):
        run(project, graph("reject", "totals"), 2, force="force_d")


def test_a_source_keeps_what_it_took_in_unless_it_is_allowed_to_take_it_anew(project: Project) -> None:
    assert run(project, graph("await_approval", "visits"), 2) == []
    run(project, graph("allow", "visits"), 2)
    assert codes(project)["visits"] == "oonn"
    assert is_whole(project)


def test_a_run_that_dies_after_its_rewind_leaves_the_rest_to_the_next(project: Project) -> None:
    changed = graph("allow", "seen")
    dying = steps(project, changed, 1)
    next(dying), next(dying)  # back at 1, and one epoch replayed
    dying.close()
    assert codes(project)["seen"] == "on"
    run(project, changed, 1)
    assert codes(project)["seen"] == "onnn"
    assert is_whole(project)


def test_who_is_late_with_a_rewind_looks_again(project: Project) -> None:
    changed = graph("allow", "seen")

    def others() -> None:
        run(project, changed, 1)

    with replaced(At("rewind.deciding", others)):
        run(project, changed, 2)
    assert codes(project)["seen"] == "onnn"
    assert is_whole(project)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 40))])
def test_at_once_is_as_one_after_the_other(project: Project, seed: int) -> None:
    """A backfill, the schedule, cleared tasks and rewinds by hand, interleaved in any way."""
    chance, changed = random.Random(seed), graph("allow", "seen", "pages")
    running = [steps(project, changed, at) for at in (1, 2, 3, 2)]
    hands = seed % 3
    by_hand = [lambda: rewind(project, changed, 2, "seen", "ana"), lambda: undo(project, changed, "ana")][:hands]
    while running:
        if by_hand and chance.random() < 0.1:
            with suppress(FirnlineError):  # nothing is there to take back, or to bring back
                by_hand.pop(0)()
        each = chance.choice(running)
        is_over = True
        # Who was taken back by hand after all others had passed waits for a run that is not there.
        with suppress(FirnlineError) if hands else nullcontext():
            is_over = next(each, None) is None
        if is_over:
            running.remove(each)
    if hands:
        run(project, changed, *range(1, EPOCHS))
    assert codes(project) == {"visits": "oooo", "pages": "onnn", "seen": "onnn", "totals": "oooo"}
    assert is_whole(project)


def test_rows_of_another_pipeline_that_came_out_otherwise_are_read_again(project: Project) -> None:
    daily, reads = Pipeline("daily", schedule=1, start=0), Pipeline("web", schedule=1, start=0)

    @reads.source(keys=["k"], parts=2)
    def visits(epoch: Any) -> Any: ...

    @daily.stage(keys=["k"])
    def report(visits: Any = collection("web.visits")) -> Any: ...

    found = check(daily, {"report": OLD}, others={"web": reads})
    log = project.log("daily", "report")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})

    def compute(of: Collection, generation: int, epoch: Epoch, attempt: str, inputs: Mapping[str, Head]) -> Published:
        (name, head), digests = next(iter(inputs.items())), {(epoch.lower, 0): Digest(1, 1, 1, epoch.lower)}
        read = {name: Input(head.description.generation, epoch.upper, head.snapshot or 0, 1, "all")}
        note = Sidecar("report", epoch.lower, epoch.upper, attempt, Fingerprint(OLD), read, digests, 0.1)
        return Published(log.publish(generation, note, None), Digest())

    list(advance_by(compute, project, found, "report", Epoch(3, 4)))
    complete(project, found, Epoch(3, 4))
    rewind(project, graph(), 1, None, "ana")
    run(project, graph(), 3)
    settled = [Rerun(project, found, Epoch(at, at + 1)).is_settled("report") for at in range(4)]
    assert settled == [True] * 4, "it came out as it was"

    run(project, graph("allow", "visits"), 2)
    reruns = [Rerun(project, found, Epoch(at, at + 1)) for at in range(4)]
    assert [each.is_settled("report") for each in reruns] == [True, True, False, False]
    last, fresh = reruns[2].target(None, None, "report")  # type: ignore[arg-type]  # no plan is asked for
    assert (last, fresh) == (Epoch(3, 4), None)
    list(advance_by(compute, project, found, "report", last))
    complete(project, found, Epoch(2, 3))
    assert [each.is_settled("report") for each in reruns] == [True] * 4
