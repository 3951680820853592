"""The log's publish rule on a real catalog, without a JVM: each epoch once, no hole, no unknown outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.plan.frontier import Frontier
from firnline.tables.catalog import Catalog
from firnline.tables.control import Control
from firnline.tables.log import Log
from firnline.tables.sidecar import Input, Sidecar


@pytest.fixture(params=["sqlite", "postgresql"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    if request.param == "sqlite":
        return Catalog(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")
    new_database: Callable[[], str] = request.getfixturevalue("postgres_uri")
    return Catalog(new_database(), f"file://{tmp_path}/warehouse")


@pytest.fixture
def log(catalog: Catalog) -> Log:
    made = Log(catalog, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    return made


def attempt(lower: int, upper: int, name: str) -> Sidecar:
    inputs = {"pages": Input(0, upper, 7, 3, "all")}
    return Sidecar(
        "visits", lower, upper, name, Fingerprint("f" * 32, "p" * 32), inputs, {(lower, 0): Digest(2, 0, 3, 2**64 - 1)}, 1.5
    )


def uppers(log: Log) -> list[int]:
    return [entry.description.upper for entry in log.entries()]


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
    assert log.sidecar(entry) == sidecar
    assert (entry.rows, entry.weight, entry.fingerprint, entry.attempt) == (2, 0, Fingerprint("f" * 32, "p" * 32), "a")


def test_racing_publishers_of_one_epoch_publish_it_once(catalog: Catalog, log: Log) -> None:
    verdicts: list[Verdict] = []
    barrier = threading.Barrier(6)

    def publish(number: int) -> None:
        barrier.wait()
        for epoch in range(3):
            verdicts.append(log.publish(0, attempt(epoch * 10, epoch * 10 + 10, f"{number}-{epoch}"), None))

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdict.name for verdict in verdicts) == ["FREE"] * 3 + ["TAKEN"] * 15
    assert uppers(log) == [30, 20, 10]


def test_a_lost_answer_is_read_back(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SqlCatalog.commit_table
    lost = []

    def commit_and_lose_the_answer(self: SqlCatalog, *arguments: object) -> object:
        answer = commit(self, *arguments)  # type: ignore[arg-type]
        if not lost:
            lost.append(answer)
            raise ConnectionError("the answer was lost")
        return answer

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_and_lose_the_answer)
    assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
    assert lost
    assert uppers(log) == [10]


def test_a_commit_that_fails_before_it_lands_is_tried_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = SqlCatalog.commit_table
    failures = [ConnectionError("not reached"), CommitFailedException("somebody else"), ValueError("a stale sequence number")]

    def fail_first(self: SqlCatalog, *arguments: object) -> object:
        if failures:
            raise failures.pop()
        return commit(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlCatalog, "commit_table", fail_first)
    assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
    assert uppers(log) == [10]


def test_pyicebergs_own_retry_stays_a_table_property_for_spark(log: Log) -> None:
    log.publish(0, attempt(0, 10, "a"), None)
    table = log.load()
    assert table is not None
    assert "commit.retry.num-retries" not in table.properties


def test_a_commit_that_never_lands_ends_with_a_code(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: SqlCatalog, *arguments: object) -> object:
        raise CommitFailedException("always somebody else")

    monkeypatch.setattr(SqlCatalog, "commit_table", refuse)
    monkeypatch.setattr("firnline.tables.commit._MOST_ATTEMPTS", 4)
    with pytest.raises(FirnlineError, match="COMMIT_CONTENDED"):
        log.publish(0, attempt(0, 10, "a"), None)


def test_the_frontier_moves_forward_only(catalog: Catalog) -> None:
    control = Control(catalog, "web")
    assert control.frontier() is None
    for upper, seen in ((10, 10), (30, 30), (20, 30)):
        assert control.advance(Frontier(upper, {"visits": 0})).upper == seen
    assert control.frontier() == Frontier(30, {"visits": 0})


def test_a_frontier_of_a_new_generation_may_move_back(catalog: Catalog) -> None:
    control = Control(catalog, "web")
    control.advance(Frontier(30, {"visits": 0}))
    assert control.advance(Frontier(10, {"visits": 1})).upper == 10


def test_racing_frontiers_end_at_the_furthest(catalog: Catalog) -> None:
    control = Control(catalog, "web")
    threads = [threading.Thread(target=control.advance, args=(Frontier(upper, {"a": 0}),)) for upper in (10, 40, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert control.frontier() == Frontier(40, {"a": 0})
