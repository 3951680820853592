"""Whatever is wrong with the ledger's database is one coded, retryable error within the timeout, and shows no secret."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from firnline.errors import FirnlineError
from firnline.ledger import Ledger, Publication

ENTRY = Publication("web", "visits", 0, 0, 10, 7, 1, 1, "f1", "a1", "s", datetime(2026, 1, 1, tzinfo=UTC), 0.1)


@contextmanager
def unavailable(reason: str, within: float = 10) -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(FirnlineError) as caught:
        yield
    assert time.monotonic() - began < within
    assert (caught.value.code, caught.value.retryable) == ("LEDGER_UNAVAILABLE", True)
    assert reason in caught.value.what
    assert "hush" not in str(caught.value)


def sqlite_uri(path: Path) -> str:
    return f"sqlite:///{path / 'ledger.db'}"


def test_sqlite_locked_by_another_writer(tmp_path: Path) -> None:
    ledger = Ledger(sqlite_uri(tmp_path), timeout=0.5)
    ledger.record([ENTRY])
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.execute("BEGIN EXCLUSIVE")
        with unavailable("locked"):
            ledger.record([ENTRY])
        assert ledger.publications("web") == [ENTRY]  # WAL: readers do not wait
    ledger.record([ENTRY])


def test_sqlite_locked_on_first_use(tmp_path: Path) -> None:
    ledger = Ledger(sqlite_uri(tmp_path), timeout=0.5)
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with unavailable("locked"):
            ledger.publications("web")
    assert ledger.publications("web") == []


def test_sqlite_waits_for_a_lock_that_goes_away(tmp_path: Path) -> None:
    import threading

    ledger = Ledger(sqlite_uri(tmp_path), timeout=30)
    ledger.record([ENTRY])
    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        release.start()
        ledger.forget("web")
        release.join()


def test_sqlite_read_only(tmp_path: Path) -> None:
    Ledger(sqlite_uri(tmp_path)).record([ENTRY])
    ledger = Ledger(f"sqlite:///file:{tmp_path / 'ledger.db'}?mode=ro&uri=true")
    assert ledger.publications("web") == [ENTRY]
    with unavailable("readonly"):
        ledger.record([ENTRY])


def test_sqlite_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"not a database at all " * 500)
    with unavailable("not a database"):
        Ledger(sqlite_uri(tmp_path)).publications("web")


def test_sqlite_file_that_was_damaged(tmp_path: Path) -> None:
    Ledger(sqlite_uri(tmp_path)).record([ENTRY])
    with (tmp_path / "ledger.db").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 20000)
    with unavailable("malformed"):
        Ledger(sqlite_uri(tmp_path)).publications("web")


def test_sqlite_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with unavailable("file"):
        Ledger(sqlite_uri(tmp_path / "file" / "below")).publications("web")


def test_postgresql_that_cannot_be_reached() -> None:
    with unavailable("127.0.0.1"):
        Ledger("postgresql://me:hush@127.0.0.1:1/x?sslpassword=hush", timeout=2).publications("web")


def test_postgresql_locked_by_another_writer(postgres_uri: Callable[[], str]) -> None:
    uri = postgres_uri()
    ledger = Ledger(uri, timeout=0.5)
    ledger.record([ENTRY])
    with psycopg.connect(uri) as other:
        other.execute("LOCK TABLE firnline_publication IN ACCESS EXCLUSIVE MODE")
        with unavailable("lock timeout"):
            ledger.publications("web")
    assert ledger.publications("web") == [ENTRY]


def test_postgresql_locked_on_first_use(postgres_uri: Callable[[], str]) -> None:
    from firnline.ledger.migration import _ADVISORY_KEY

    uri = postgres_uri()
    ledger = Ledger(uri, timeout=0.5)
    with psycopg.connect(uri) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY_KEY,))
        with unavailable("lock timeout"):
            ledger.publications("web")
    assert ledger.publications("web") == []


def test_postgresql_read_only(postgres_uri: Callable[[], str]) -> None:
    uri = postgres_uri()
    Ledger(uri).record([ENTRY])
    ledger = Ledger(f"{uri}?options=-c%20default_transaction_read_only%3Don")
    assert ledger.publications("web") == [ENTRY]
    with unavailable("read-only"):
        ledger.record([ENTRY])


@pytest.mark.parametrize("uri", ["nonsense hush", "sqlite://", "sqlite:///:memory:", "mysql://me:hush@host/x"])
def test_an_address_that_cannot_hold_a_ledger_is_refused_at_once(uri: str) -> None:
    with pytest.raises(FirnlineError, match="BAD_OPTION") as caught:
        Ledger(uri)
    assert "hush" not in str(caught.value)
