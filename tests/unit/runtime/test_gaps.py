"""Rows are left out of a log as its contract or the pipeline's handler says, without a JVM, whenever the repair dies."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

import firnline as fl
from firnline.model.gap import Span
from firnline.plan.frontier import Frontier
from firnline.runtime import index
from firnline.runtime.maintain import tidied, undone
from firnline.runtime.project import Project
from firnline.runtime.repair import planned, repair
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.verify import verify
from firnline.world import replaced
from tests.happening import At, Killed, die
from tests.project import command, compiled
from tests.verifying import data_file, local, taken
from tests.web_logs import copies, merge, publish

UNREPEATABLE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"], parts=2)
    def visits(epoch): ...

    @web.stage(keys=["k"], parts=2, nondeterministic=True{options})
    def seen(visits): ...

    @web.stage(keys=["k"])
    def later(seen): ...
"""
HANDLER = """

    @web.on_loss
    def ask(loss):
        import dataclasses, json, pathlib
        file = pathlib.Path(__file__).with_name("told.json")
        file.write_text(json.dumps(dataclasses.asdict(loss)))
        {answer}
"""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Project]:
    return copies(tmp_path_factory.mktemp("gapped") / "project")


def lossy(healthy: Callable[[], Project], options: str = ', on_loss="gap"', answer: str = "") -> Project:
    """A project of which a part of ``seen`` is lost."""
    project = healthy()
    text = UNREPEATABLE.format(options=options) + (HANDLER.format(answer=answer) if answer else "")
    (project.settings.root / "include" / "pipelines" / "web.py").write_text(textwrap.dedent(text))
    compiled(project, "web")
    local(data_file(taken(project, "web", "seen"), 1, 1).file.path).unlink()
    return project


def no_session() -> NoReturn:
    raise AssertionError("nothing is to be computed")


def epochs_and_parts(project: Project) -> set[tuple[int, int]]:
    found = project.catalog.iceberg("web", "seen").scan(selected_fields=("_epoch", "_part")).to_arrow()
    return set(zip(*(found[name].to_pylist() for name in ("_epoch", "_part")), strict=True))


LEFT = {(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)}


POINTS = [
    ("repair.gaps_judged", 1),
    ("repair.gaps_committed", 1),
    ("repair.judged", 1),
    ("repair.described", 1),
    ("repair.committed", 1),
    ("repair.gaps_judged", 2),
    ("repair.gaps_committed", 2),
]


@pytest.mark.parametrize(("point", "passes"), POINTS)
def test_a_gap_is_opened_wherever_the_first_attempt_dies(healthy: Callable[[], Project], point: str, passes: int) -> None:
    project = lossy(healthy)
    with replaced(At(point, die, passes)), pytest.raises(Killed):
        repair(project, no_session)
    died = project.control("web").gaps()
    if (1, 1) not in epochs_of_files(project):
        assert died.of("seen"), "no rows are missing that nobody knows of"
        assert died.mark("seen") is not None
        assert died.mark("later") is not None
    found = repair(project, no_session)
    assert found.is_whole, found
    ((_, gap),) = found.gaps
    assert (gap.collection, gap.rows, gap.phase, gap.before) == ("seen", 2, "open", {"seen": 3, "later": 0})
    assert project.control("web").gaps().corrections == {"seen": gap.id, "later": gap.id}
    assert project.control("web").frontier() == Frontier(3, {"visits": 0, "seen": 0})
    assert epochs_and_parts(project) == LEFT
    assert verify(project).problems == ()
    publish(project, "seen", 3)
    assert verify(project).problems == (), "epochs go on from there"


def epochs_of_files(project: Project) -> set[tuple[int, int]]:
    """What the log names, be it there or not."""
    files = [
        data for revision in taken(project, "web", "seen").revisions for each in revision.manifests or () for data in each.data
    ]
    return {(data.first or 0, data.part or 0) for data in files}


def test_everybody_says_that_rows_are_missing_and_nobody_forgets(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy)
    root = project.settings.root
    done = command(root, "repair", "--json")
    assert (done["done"][0]["rows_left_out"], done["is_whole"]) == (2, True)
    command(root, "ledger", "rebuild")
    (gap,) = command(root, "verify", "--json")["gaps"]
    assert (gap["collection"], gap["epochs"], gap["parts"], gap["owner"]) == ("seen", [["1", "1"]], [1], "web.seen")
    assert "lacks 2 rows of epochs 1, parts 1" in command(root, "verify")
    (web,) = command(root, "status", "--json")
    assert {line["collection"]: line["completeness"] for line in web["collections"]} == {
        "visits": "2/2",
        "seen": "1/2",
        "later": "1/1",
    }
    told = fl.completeness("web.seen", project=project)
    assert (str(told), told.is_whole, told.missing[0].epochs) == ("1/2", False, (("1", "1"),))
    assert fl.completeness("web.seen", as_of="0", project=project).is_whole, "the rows are of a later epoch"


def made_good(healthy: Callable[[], Project]) -> Project:
    """A project whose stage has made its lost rows good with its fourth epoch."""
    project = lossy(healthy)
    ((_, gap),) = repair(project, no_session).gaps
    time.sleep(1)  # of a gap the second is known in which it was opened
    for name in ("visits", "seen"):
        publish(project, name, 3)
    control = project.control("web")
    control.change(lambda gaps: gaps.corrected("seen", gap.id, 4))
    control.advance(Frontier(4, {"visits": 0, "seen": 0}))
    return project


def test_what_was_made_good_is_closed_when_nothing_counts_the_rows_any_more(healthy: Callable[[], Project]) -> None:
    project = made_good(healthy)
    graph = project.graph("web")
    (before,) = project.control("web").gaps().gaps
    assert before.made_good == 4
    merge(project, "seen")
    list(tidied(project, graph, timedelta(days=1)))
    assert project.control("web").gaps().gaps == (before,), "the merge may be undone"
    assert undone(project, graph)
    assert verify(project).problems == (), "the layer counts the rows again"
    merge(project, "seen")
    list(tidied(project, graph, timedelta()))
    assert project.control("web").gaps().gaps == ()
    assert verify(project).problems == ()


def test_rows_that_are_lost_of_a_merge_are_not_those_that_were_made_good(healthy: Callable[[], Project]) -> None:
    project = made_good(healthy)
    (before,) = project.control("web").gaps().gaps
    merge(project, "seen", 2)  # its rows carry the epoch that had lost some
    local(data_file(taken(project, "web", "seen"), 1, 1).file.path).unlink()
    assert repair(project, no_session).is_whole
    first, second = project.control("web").gaps().gaps
    assert (first, second.spans, second.made_good) == (before, before.spans, None)
    assert project.control("web").gaps().mark("seen") == second.id, "they are made good, too"


@pytest.mark.parametrize("to", [1, 2, 3])
def test_a_rewind_behind_what_was_made_good_has_it_made_good_again(healthy: Callable[[], Project], to: int) -> None:
    project = made_good(healthy)
    graph, control = project.graph("web"), project.control("web")
    rewind(project, graph, to, "seen", "ana")
    (gap,) = control.gaps().gaps
    assert gap.made_good is None
    mark = control.gaps().mark("seen")
    assert mark is not None
    publish(project, "seen", to, attempt="again")
    control.change(lambda gaps: gaps.corrected("seen", mark, to + 1))
    assert control.gaps().gaps[0].made_good == to + 1
    found = repair(project, no_session)
    assert (found.is_whole, found.done) == (True, ()), "no old rows come back beside those that were made again"
    undo(project, graph, "ana")
    assert control.gaps().mark("seen") is not None, "what was there before may need a correction, too"
    assert verify(project).problems == ()


def test_what_was_made_good_does_not_come_again_beside_rows_that_came_back(healthy: Callable[[], Project]) -> None:
    project = made_good(healthy)
    graph, control = project.graph("web"), project.control("web")
    rewind(project, graph, 3, "seen", "ana")
    control.change(lambda gaps: replace(gaps, gaps=tuple(replace(gap, phase="back") for gap in gaps.gaps)))
    with pytest.raises(fl.FirnlineError, match=r"REWIND_NOT_UNDOABLE: lost rows of web\.seen came back"):
        undo(project, graph, "ana")


def test_a_gap_that_is_not_made_good_forbids_a_rewind_behind_it(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy)
    repair(project, no_session)
    with pytest.raises(fl.FirnlineError, match="REWIND_BLOCKED") as raised:
        rewind(project, project.graph("web"), 1, "seen", "ana")
    assert "the next epoch makes them good" in raised.value.what


def test_the_gap_ledger_comes_back_with_its_metadata_file(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy)
    repair(project, no_session)
    before = project.control("web").gaps()
    local(taken(project, "web", "_frontier").metadata.path).unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    after = project.control("web").gaps()
    assert after.gaps == before.gaps
    assert after.corrections == before.corrections
    local(taken(project, "web", "_frontier").revisions[-1].manifest_list.path).unlink()
    assert repair(project, no_session).is_whole
    assert project.control("web").gaps() == after


def test_a_gap_is_told_once_when_an_older_metadata_file_names_its_files_again(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy)
    repair(project, no_session)
    before = project.control("web").gaps()
    log = taken(project, "web", "seen")
    local(data_file(log, 2, 0).file.path).unlink()
    local(log.metadata.path).unlink()
    found = repair(project, no_session)
    assert found.is_whole, found
    first, second = project.control("web").gaps().gaps
    assert (first,) == before.gaps
    assert (second.spans, second.rows) == ((Span(2, 2, (0,)),), 1)
    assert epochs_and_parts(project) == LEFT - {(2, 0)}
    assert verify(project).problems == ()


def test_what_cannot_be_repeated_would_have_to_be_rewound_with_all_that_came_of_it(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy, "")
    head = project.log("web", "seen").head()
    (refusal,) = repair(project, no_session).refusals
    assert refusal.code == "NEEDS_REWIND"
    assert "'seen' and 'later' would have to be rewound together" in refusal.what
    assert project.log("web", "seen").head() == head
    assert "NEEDS_REWIND" in command(project.settings.root, "repair", code=1)


def test_the_handler_is_told_what_is_lost_and_chooses(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy, "", "return 'gap'")
    told = project.settings.root / "include" / "pipelines" / "told.json"
    assert planned(project).refusals
    assert not told.exists(), "a plan asks nobody"
    found = repair(project, no_session)
    assert found.is_whole, found
    assert found.gaps[0][1].owner == "the handler of web"
    loss = json.loads(told.read_text())
    assert {name: loss[name] for name in ("pipeline", "collection", "epochs", "parts", "rows", "contract")} == {
        "pipeline": "web",
        "collection": "seen",
        "epochs": ["1"],
        "parts": [1],
        "rows": 2,
        "contract": "replay",
    }


def test_the_handler_may_refuse_what_the_declaration_allows(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy, answer="return 'fail'")
    (refusal,) = repair(project, no_session).refusals
    assert "by the pipeline's handler" in refusal.what
    assert project.control("web").gaps().gaps == ()


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [("raise ValueError('call me')", "REPAIR_STOPPED", "ValueError: call me"), ("return 'shrug'", "BAD_OPTION", "'shrug'")],
)
def test_a_handler_that_raises_stops_the_repair_and_its_line_is_told(
    healthy: Callable[[], Project], answer: str, code: str, says: str
) -> None:
    project = lossy(healthy, answer=answer)
    lost = taken(project, "web", "visits")
    manifest = (lost.revisions[1].manifests or ())[0].file.path
    local(manifest).unlink()
    found = repair(project, no_session)
    assert found.done == (), "nothing runs before it is asked"
    assert {each.error.code for each in found.failed} == {code}
    assert says in found.failed[0].error.what
    where = found.failed[0].error.where
    assert where is not None
    assert Path(where.file).name == "web.py"


def test_the_ledger_of_publications_does_not_mind(healthy: Callable[[], Project]) -> None:
    project = lossy(healthy)
    repair(project, no_session)
    index.rebuild(project, project.graph("web"))
    assert len(project.ledger.publications("web", "seen")) == 3
