"""A catalog that is locked, down or lost, a warehouse that takes nothing, a wrong clock: one coded, retryable error, in time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.plan.frontier import Frontier
from firnline.tables import commit, database
from firnline.tables.catalog import Catalog
from firnline.tables.control import Control
from firnline.tables.determinants import Determinants
from firnline.tables.log import Log
from tests.contract.logs import attempt, in_a_database, uppers


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 1)
    monkeypatch.setattr(commit, "_PATIENCE_SECONDS", 2)


@contextmanager
def refused(code: str, reason: str = "") -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(FirnlineError) as caught:
        yield
    assert time.monotonic() - began < 10
    assert (caught.value.code, caught.value.retryable) == (code, True)
    assert reason in caught.value.what


def new_log(catalog: Catalog) -> Log:
    log = Log(catalog, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    return log


@contextmanager
def locked(catalog: Catalog) -> Iterator[Callable[[], None]]:
    """Somebody else locks the catalog; what ends it."""
    url = catalog.pointers.database.url
    if url.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(url.database), isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield lambda: other.execute("ROLLBACK").close()
    else:
        with psycopg.connect(host=url.host, port=url.port, user=url.username, dbname=url.database) as other:
            other.execute("LOCK TABLE iceberg_tables IN ACCESS EXCLUSIVE MODE")
            yield other.rollback


@in_a_database
def test_a_lock_that_stays_is_told_and_one_that_goes_is_waited_for(iceberg: Catalog) -> None:
    log = new_log(iceberg)
    with locked(iceberg) as release:
        with refused("CATALOG_UNAVAILABLE", "lock"):
            log.publish(0, attempt(0, 10, "a"), None)
        timer = threading.Timer(0.5, release)
        timer.start()
        assert log.publish(0, attempt(0, 10, "a"), None) is Verdict.FREE
        timer.join()
    assert uppers(log) == [10]


@in_a_database
def test_a_database_without_its_tables_is_not_taken_for_a_new_one(iceberg: Catalog) -> None:
    assert iceberg.table("web", "visits") is None
    assert iceberg.names("web") == set()
    new_log(iceberg)
    iceberg.pointers.database.change("ALTER TABLE iceberg_tables RENAME TO elsewhere")
    for ask in (lambda: iceberg.table("web", "visits"), lambda: iceberg.names("web"), lambda: Control(iceberg, "web").frontier()):
        with refused("CATALOG_UNAVAILABLE", "holds logs of 'web'"):
            ask()
    assert iceberg.names("another") == set()
    iceberg.pointers.database.change("ALTER TABLE elsewhere RENAME TO iceberg_tables")
    assert iceberg.names("web") == {"visits"}


def test_a_server_that_is_down(tmp_path: Path) -> None:
    catalog = Catalog("postgresql://me:hush@127.0.0.1:1/x", f"file://{tmp_path}")
    with refused("CATALOG_UNAVAILABLE", "127.0.0.1"):
        catalog.table("web", "visits")


@in_a_database
def test_a_warehouse_that_takes_nothing(iceberg: Catalog, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    iceberg.warehouse = f"file://{tmp_path}/file"
    with refused("STORAGE_UNAVAILABLE", iceberg.warehouse):
        new_log(iceberg)
    with refused("STORAGE_UNAVAILABLE", iceberg.warehouse):
        iceberg.write(f"{iceberg.warehouse}/web/x.json", b"{}")
    with refused("STORAGE_UNAVAILABLE", iceberg.warehouse):
        Determinants(iceberg, "web", "visits", 0).log("outside", 1)


def test_a_clock_behind_the_last_publish_adds_nothing(iceberg: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    log, control = new_log(iceberg), Control(iceberg, "web")
    log.publish(0, attempt(0, 10, "a"), None)
    control.advance(Frontier(10, {"visits": 0}))
    right = time.time
    monkeypatch.setattr(commit, "_PATIENCE_SECONDS", 0.5)
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: right() - 86400)
        with refused("CLOCK_BEHIND", "web.visits"):
            log.publish(0, attempt(10, 20, "b"), None)
        with refused("CLOCK_BEHIND", "web._frontier"):
            control.advance(Frontier(20, {"visits": 0}))
    assert uppers(log) == [10]
    assert log.publish(0, attempt(10, 20, "b"), None) is Verdict.FREE
