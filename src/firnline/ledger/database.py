"""Connections to the ledger's database: SQLite or PostgreSQL.

No connection outlives a call, so a ledger may be forked, and a restarted server is not noticed. No wait is unbounded: a lock or a
server that does not come within ``timeout`` seconds is LEDGER_UNAVAILABLE, and so is every other trouble with the database.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError

from firnline.errors import FirnlineError

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_BEGIN = "firnline_begin"


def parse(uri: str) -> URL:
    """The URL of a database that can hold a ledger. Messages never show what may be a secret."""
    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        raise FirnlineError("BAD_OPTION", "ledger_uri is no database URL") from None
    if url.drivername not in DRIVERS:
        raise FirnlineError("BAD_OPTION", f"ledger_uri is of {url.drivername!r}; it takes sqlite:/// and postgresql:// only")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise FirnlineError("BAD_OPTION", "ledger_uri names no file; a ledger in memory would forget at once")
    return url.set(drivername=DRIVERS[url.drivername])


def connect_lazily(url: URL, timeout: float) -> Engine:
    """An engine that connects when it is used."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, timeout)
    return _postgresql(url, timeout)


def without_begin(connection: Connection) -> Connection:
    """The same connection, for the statements that SQLite refuses inside a transaction."""
    return connection.execution_options(**{_BEGIN: None})


def for_writing(engine: Engine) -> Engine:
    """The same engine, taking SQLite's write lock at BEGIN: a transaction that asks later is refused without waiting."""
    return engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Whatever is wrong with the database becomes LEDGER_UNAVAILABLE; what is wrong with our values stays a bug."""
    try:
        yield
    except (DataError, IntegrityError):
        raise
    except DBAPIError as error:
        raise _unavailable(url, error.orig or error) from error
    except OSError as error:
        raise _unavailable(url, error) from error


def shown(url: URL) -> str:
    """A URL as messages may show it: without the password, and without the query, which may hold another."""
    return url.set(query={}).render_as_string(hide_password=True)


def _unavailable(url: URL, reason: BaseException) -> FirnlineError:
    said = " ".join(str(reason).split()).rstrip(".")
    return FirnlineError("LEDGER_UNAVAILABLE", f"the ledger {shown(url)} does not answer: {said or type(reason).__name__}")


def _sqlite(url: URL, timeout: float) -> Engine:
    database = url.database or ""
    if not database.startswith("file:"):
        with translated(url):
            Path(database).parent.mkdir(parents=True, exist_ok=True)
    # isolation_level=None: the driver begins nothing by itself, so that our BEGIN covers reads and DDL too.
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": timeout, "isolation_level": None})

    @event.listens_for(engine, "connect")
    def relax(connection: DBAPIConnection, _record: Any) -> None:
        # With WAL, a power cut may cost the last entries but not the file; the logs have the entries.
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get(_BEGIN, "BEGIN")
        if statement:
            connection.exec_driver_sql(statement)

    return engine


def _postgresql(url: URL, timeout: float) -> Engine:
    milliseconds = max(1, round(timeout * 1000))
    patience = {"connect_timeout": max(1, math.ceil(timeout)), "tcp_user_timeout": milliseconds}
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=patience)
    except ImportError:
        todo = "Install it: pip install 'psycopg[binary]'."
        raise FirnlineError("PREREQUISITE", "a ledger in PostgreSQL needs the driver psycopg", todo=todo) from None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Inside the transaction, not among the connection's options: poolers pass those on to others, or refuse them.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")

    return engine
