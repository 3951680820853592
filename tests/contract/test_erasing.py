"""A log becomes one layer in a new generation on every implementation of its port; nobody who began before comes after."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from firnline.model.description import Description, Verdict
from firnline.model.digest import Digest
from firnline.tables.catalog import Catalog
from firnline.tables.erasing import base_of, replace_all, start_of, strays
from firnline.tables.log import Log
from firnline.tables.metadata import Metadata
from firnline.tables.port import Tables
from firnline.tables.sidecar import Sidecar
from tests.contract.logs import attempt, publish, rows, stage, uppers


@pytest.fixture
def log(tables: Tables) -> Log:
    return made_in(tables)


def made_in(tables: Tables) -> Log:
    made = Log(tables, "web", "visits")
    made.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20)):
        publish(made, name, epoch)
    return made


def seen(log: Log) -> Metadata:
    table = log.load()
    assert table is not None
    return table


def layer(name: str, upper: int) -> Sidecar:
    return replace(attempt(0, upper, name), digests={(20, 0): Digest(2, 2, 3, 4)})


def test_nothing_but_the_new_layer_is_left_and_epochs_follow_it(tables: Tables, log: Log) -> None:
    table = seen(log)
    done = replace_all(tables, log, table, layer("e", 30), stage(log, "e", 20))
    assert (done.verdict, done.snapshots) == (Verdict.FREE, 3)
    after = seen(log)
    base = base_of(after)
    assert base is not None
    assert list(after.snapshots) == [base.id]
    assert rows(log) == ["20 first", "20 second"]
    head = log.head()
    assert head is not None
    assert head.description == Description(1, 30, 30)
    assert uppers(log) == [30]
    assert start_of(after) == 0
    assert log.publish(0, attempt(30, 40, "z"), stage(log, "z", 30)) is Verdict.FENCED
    assert log.publish(1, attempt(30, 40, "d"), stage(log, "d", 30)) is Verdict.FREE
    assert uppers(log) == [40, 30]
    assert base_of(seen(log)) == base


def test_what_was_published_since_the_look_is_not_lost(tables: Tables, log: Log) -> None:
    table, staged = seen(log), stage(log, "e", 20)
    publish(log, "d", 30)
    assert replace_all(tables, log, table, layer("e", 30), staged).verdict is Verdict.MOVED
    assert uppers(log) == [40, 30, 20, 10]
    assert staged not in seen(log).snapshots


def test_an_erased_log_may_end_earlier_and_may_hold_nothing(tables: Tables, log: Log) -> None:
    assert replace_all(tables, log, seen(log), layer("e", 20), stage(log, "e", 10)).verdict is Verdict.FREE
    assert uppers(log) == [20]
    assert replace_all(tables, log, seen(log), replace(layer("f", 20), digests={}), None).verdict is Verdict.FREE
    assert rows(log) == []
    head = log.head()
    assert head is not None
    assert head.description == Description(2, 20, 20)


def test_every_file_of_before_is_a_stray_and_none_of_now(iceberg: Catalog) -> None:
    tables, log = iceberg, made_in(iceberg)
    stage(log, "left", 20)
    done = replace_all(tables, log, seen(log), layer("e", 30), stage(log, "e", 20))
    gone = strays(tables, seen(log), done.listed)
    assert len([path for path in gone if path.endswith(".parquet")]) == 4
    for path in gone:
        assert tables.remove(path) or path.endswith(".crc")
    assert strays(tables, seen(log)) == []
    assert rows(log) == ["20 first", "20 second"]
