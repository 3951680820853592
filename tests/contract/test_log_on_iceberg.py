"""Races and lost answers of a real catalog: no unknown outcome stays unknown."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.plan.frontier import Frontier
from firnline.tables.catalog import Catalog
from firnline.tables.control import Control
from firnline.tables.log import Log
from tests.contract.logs import attempt, uppers


@pytest.fixture
def log(iceberg: Catalog) -> Log:
    made = Log(iceberg, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    return made


def rows(*keys: str) -> pa.Table:
    ours = {"_epoch": [10] * len(keys), "_diff": [1] * len(keys), "_part": pa.array([0] * len(keys), pa.int32())}
    return pa.table({"k": list(keys), **ours})


def test_racing_publishers_of_one_epoch_publish_it_once(log: Log) -> None:
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


def test_a_lost_answer_is_read_back(log: Log, iceberg: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = type(iceberg.opened)
    commit = catalog.commit_table
    lost = []

    def commit_and_lose_the_answer(self: Any, *arguments: object) -> object:
        answer = commit(self, *arguments)  # type: ignore[arg-type]
        if not lost:
            lost.append(answer)
            raise ConnectionError("the answer was lost")
        return answer

    monkeypatch.setattr(catalog, "commit_table", commit_and_lose_the_answer)
    assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
    assert lost
    assert uppers(log) == [10]


def test_a_commit_that_fails_before_it_lands_is_tried_again(log: Log, iceberg: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = type(iceberg.opened)
    commit = catalog.commit_table
    failures = [ConnectionError("not reached"), CommitFailedException("somebody else"), ValueError("a stale sequence number")]

    def fail_first(self: Any, *arguments: object) -> object:
        if failures:
            raise failures.pop()
        return commit(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "commit_table", fail_first)
    assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
    assert uppers(log) == [10]


def test_rows_are_staged_sorted_beside_the_main_line_and_published_with_it(log: Log, iceberg: Catalog) -> None:
    log.publish(0, attempt(0, 10, "a"), None)
    log.stage("b", 10, rows("y", "x"))
    log.stage("b", 10, rows("y", "x"))
    staged = log.staged("b")
    assert iceberg.iceberg("web", "visits").scan().to_arrow().num_rows == 0
    assert iceberg.iceberg("web", "visits").scan(snapshot_id=staged).to_arrow()["k"].to_pylist() == ["x", "y"]
    assert log.publish(0, attempt(10, 20, "b"), staged) is Verdict.FREE
    assert iceberg.iceberg("web", "visits").scan().to_arrow()["k"].to_pylist() == ["x", "y"]


def test_staging_that_loses_a_race_leaves_no_file_behind(log: Log, iceberg: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = type(iceberg.opened)
    commit = catalog.commit_table
    losses = [CommitFailedException("somebody else"), ConnectionError("not reached")]

    def lose_first(self: Any, *arguments: object) -> object:
        if losses:
            raise losses.pop(0)
        return commit(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "commit_table", lose_first)
    log.stage("a", 0, rows("x"))
    assert iceberg.iceberg("web", "visits").scan(snapshot_id=log.staged("a")).to_arrow().num_rows == 1
    data = list(Path(iceberg.warehouse.removeprefix("file://")).rglob("*.parquet"))
    assert len(data) == 2, "one that is staged, one of which nobody could know whether it was"


def test_pyicebergs_own_retry_stays_a_table_property_for_spark(log: Log) -> None:
    log.publish(0, attempt(0, 10, "a"), None)
    table = log.load()
    assert table is not None
    assert "commit.retry.num-retries" not in table.properties


def test_a_commit_that_never_lands_ends_with_a_code(log: Log, iceberg: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, *arguments: object) -> object:
        raise CommitFailedException("always somebody else")

    monkeypatch.setattr(type(iceberg.opened), "commit_table", refuse)
    monkeypatch.setattr("firnline.tables.commit._MOST_ATTEMPTS", 4)
    with pytest.raises(FirnlineError, match="COMMIT_CONTENDED"):
        log.publish(0, attempt(0, 10, "a"), None)


def test_racing_frontiers_end_at_the_furthest(iceberg: Catalog) -> None:
    control = Control(iceberg, "web")
    threads = [threading.Thread(target=control.advance, args=(Frontier(upper, {"a": 0}),)) for upper in (10, 40, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert control.frontier() == Frontier(40, {"a": 0})


def test_a_snapshot_of_somebody_else_is_refused(iceberg: Catalog, log: Log) -> None:
    log.publish(0, attempt(0, 10, "a"), None)
    iceberg.iceberg("web", "visits").append(
        pa.table({"k": ["x"], "_epoch": [1], "_diff": [1], "_part": pa.array([0], pa.int32())})
    )
    with pytest.raises(FirnlineError, match=r"FOREIGN_SNAPSHOT: .*web\.visits"):
        log.head()
    with pytest.raises(FirnlineError, match="FOREIGN_SNAPSHOT"):
        log.publish(0, attempt(10, 20, "b"), None)


def test_a_log_that_is_renamed_goes_on_and_its_old_name_is_free(iceberg: Catalog, log: Log) -> None:
    assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
    for _ in range(2):
        iceberg.rename("web", "visits", "views")
    renamed = Log(iceberg, "web", "views")
    assert renamed.publish(0, attempt(10, 20, "b"), None) is Verdict.FREE
    assert uppers(renamed) == [20, 10]
    assert log.head() is None
    other = log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    there = renamed.load()
    assert there is not None
    assert other.location != there.location
    iceberg.rename("web", "visits", "views")
    assert uppers(renamed) == [20, 10], "a name that is taken stays"
    assert iceberg.names("web") == {"visits", "views"}
