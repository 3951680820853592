"""The log's publish rule on every implementation of its port, without a JVM: each epoch once, no hole."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gap, Gaps, Span
from firnline.plan.frontier import Frontier
from firnline.tables.control import Control
from firnline.tables.log import Log
from firnline.tables.port import Tables
from tests.contract.logs import attempt, uppers


@pytest.fixture
def log(tables: Tables) -> Log:
    made = Log(tables, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    return made


def test_a_new_log_ends_at_its_start(log: Log) -> None:
    head = log.head()
    assert head is not None
    assert head.description == Description(0, 0, 0)


def test_creating_twice_keeps_the_first(log: Log) -> None:
    again = log.create(pa.schema([("other", pa.int64())]), ("other",), 5, {})
    assert list(again.columns) == ["k", "_epoch", "_diff", "_part"]


def test_a_log_that_never_held_an_epoch_can_be_made_anew(log: Log) -> None:
    again = log.recreate(pa.schema([("other", pa.int64())]), ("other",), 0, {})
    assert "other" in again.columns


def test_a_log_that_holds_an_epoch_is_never_made_anew(log: Log) -> None:
    stale = log.load()
    assert stale is not None
    log.publish(0, attempt(0, 10, "a"), None)
    with pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
        log.recreate(pa.schema([("other", pa.int64())]), ("other",), 0, {})
    assert not log._catalog.forget(stale), "not even by someone who looked before the publish"
    assert uppers(log) == [10]


def test_a_publish_of_staging_that_is_gone_is_refused(log: Log) -> None:
    assert log.publish(0, attempt(0, 10, "a"), 12345) is Verdict.MOVED
    assert uppers(log) == []


def test_epochs_follow_one_another(log: Log) -> None:
    verdicts = [log.publish(0, attempt(*bounds), None) for bounds in ((0, 10, "a"), (10, 20, "b"), (20, 40, "c"))]
    assert verdicts == [Verdict.FREE] * 3
    assert uppers(log) == [40, 20, 10]


def test_a_publish_that_is_there_already_is_taken(log: Log) -> None:
    log.publish(0, attempt(0, 10, "a"), None)
    assert log.publish(0, attempt(0, 10, "b"), None) is Verdict.TAKEN
    assert uppers(log) == [10]


def test_the_same_attempt_twice_is_one_publish(log: Log) -> None:
    assert [log.publish(0, attempt(0, 10, "a"), None) for _ in range(2)] == [Verdict.FREE] * 2
    assert uppers(log) == [10]


def test_a_hole_is_refused(log: Log) -> None:
    assert log.publish(0, attempt(10, 20, "a"), None) is Verdict.MOVED
    assert uppers(log) == []


def test_another_generation_is_fenced(log: Log) -> None:
    assert log.publish(1, attempt(0, 10, "a"), None) is Verdict.FENCED
    assert uppers(log) == []


def test_the_sidecar_comes_back_as_it_was(log: Log) -> None:
    sidecar = attempt(0, 10, "a")
    log.publish(0, sidecar, None)
    (entry,) = log.entries()
    assert log.sidecar(entry) == replace(sidecar, files=())
    assert (entry.rows, entry.weight, entry.fingerprint, entry.attempt) == (2, 0, Fingerprint("f" * 32, "p" * 32), "a")


def test_the_frontier_moves_forward_only(tables: Tables) -> None:
    control = Control(tables, "web")
    assert control.frontier() is None
    for upper, seen in ((10, 10), (30, 30), (20, 30)):
        assert control.advance(Frontier(upper, {"visits": 0})).upper == seen
    assert control.frontier() == Frontier(30, {"visits": 0})


def test_a_frontier_of_a_new_generation_may_move_back(tables: Tables) -> None:
    control = Control(tables, "web")
    control.advance(Frontier(30, {"visits": 0}))
    assert control.advance(Frontier(10, {"visits": 1})).upper == 10


def test_frontier_and_gap_ledger_carry_each_other_over(tables: Tables) -> None:
    control = Control(tables, "web")
    gap = Gap("g", "visits", (Span(0, 9, (1,)),), 5, "2026-01-01", "web.visits", "gone", {"seen": 10})
    opened = control.change(lambda gaps: gaps.opened(gap))
    assert (control.frontier(), control.gaps()) == (None, opened)
    control.advance(Frontier(10, {"visits": 0}))
    assert control.gaps() == opened
    control.change(lambda gaps: gaps.settled("g"))
    assert control.frontier() == Frontier(10, {"visits": 0})
    control.change(lambda gaps: gaps.back("g", "b", {"seen": 10}, (), gap.spans))
    before = tables.table("web", "_frontier")
    control.change(lambda gaps: gaps.corrected("seen", "other", 20))
    assert tables.table("web", "_frontier") == before, "what changes nothing is no commit"
    assert control.change(lambda gaps: gaps.corrected("seen", "b", 20)).gaps, "nobody sees the correction yet"
    control.advance(Frontier(20, {"visits": 0}))
    assert control.gaps() == Gaps()


def test_small_files_come_back(tables: Tables) -> None:
    folder = f"{tables.warehouse}/web/_files"
    assert tables.read_all(folder) == {}
    for name in ("a", "b"):
        tables.write(f"{folder}/{name}/1.json", name.encode())
    tables.write(f"{folder}/a/1.json", b"again")
    assert tables.read(f"{folder}/a/1.json") == b"again"
    assert sorted(tables.read_all(folder).values()) == [b"again", b"b"]
