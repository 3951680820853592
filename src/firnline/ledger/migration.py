"""The ledger's tables come to the newest revision on first use: entirely or not at all, and once, whoever else is first too."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from sqlalchemy import URL, Connection, Engine, column, inspect, select, table, text
from sqlalchemy.exc import OperationalError

from firnline.errors import FirnlineError
from firnline.ledger.database import for_writing, shown, without_begin
from firnline.ledger.schema import HEAD, VERSION_TABLE

_ADVISORY_KEY = 0x6669726E6C696E65
"""PostgreSQL's advisory lock is a number: "firnline" in ASCII."""
_ALEMBIC = Lock()
"""Alembic's ``op`` and ``context`` are global to the process, so its migrations are one at a time."""


def ensure_newest(engine: Engine, timeout: float) -> None:
    """Migrate, unless a look at the database shows that nothing is to be done."""
    with engine.connect() as connection:
        found = revision(connection)
    if found != HEAD:
        with _ALEMBIC:
            _migrate(engine, timeout)


def revision(connection: Connection) -> str | None:
    """The revision a database is at; None before the first."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()


def _migrate(engine: Engine, timeout: float) -> None:
    if engine.dialect.name == "sqlite":
        _until_unlocked(lambda: _use_wal(engine), timeout)
    with for_writing(engine).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_KEY})
        _upgrade(connection, engine.url)


def _use_wal(engine: Engine) -> None:
    with without_begin(engine.connect()) as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def _until_unlocked(act: Callable[[], None], timeout: float) -> None:
    """Changing the journal mode is the one thing for which SQLite's busy timeout does not wait."""
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

    def is_locked(error: BaseException) -> bool:
        return isinstance(error, OperationalError) and "locked" in str(error.orig)

    Retrying(stop=stop_after_delay(timeout), wait=wait_random(0.01, 0.1), retry=retry_if_exception(is_locked), reraise=True)(act)


def _upgrade(connection: Connection, url: URL) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", "firnline.ledger:migrations")
    config.attributes["connection"] = connection
    found = revision(connection)
    if found is not None:
        try:
            ScriptDirectory.from_config(config).get_revision(found)
        except CommandError:
            what = f"the ledger {shown(url)} is at revision {found}, which is unknown here"
            todo = "Use the Firnline that made it, or another ledger_uri: a ledger can be rebuilt from the logs."
            raise FirnlineError("LEDGER_UNAVAILABLE", what, todo=todo) from None
    command.upgrade(config, "head")
