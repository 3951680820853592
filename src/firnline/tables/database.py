"""Plain SQL to the catalog's database.

SQLite is asked through Python's own driver: importing SQLAlchemy takes half a second, which ``status`` and ``plan`` do not have.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_BUSY_SECONDS = 30
_SQLITE = "sqlite:///"


class Database:
    """A database; ``uri`` is SQLAlchemy's. Names of arguments are written ``:name`` in its SQL."""

    def __init__(self, uri: str) -> None:
        self._uri = uri

    def ask(self, table: str, query: str, **arguments: str) -> list[tuple[Any, ...]] | None:
        """The rows of a query to a table; None while there is no such database or table yet."""
        with reachable():
            if self._file is not None:
                return _ask_file(self._file, table, query, arguments)
            from sqlalchemy import inspect, text
            from sqlalchemy.exc import DatabaseError

            try:
                with self._engine.connect() as connection:
                    return [tuple(row) for row in connection.execute(text(query), arguments)]
            except DatabaseError:
                if not inspect(self._engine).has_table(table):
                    return None
                raise

    def change(self, statement: str, **arguments: str) -> int:
        """Run a statement in a transaction of its own; how many rows it changed."""
        from sqlalchemy import text

        with reachable(), self._engine.begin() as connection:
            return connection.execute(text(statement), arguments).rowcount

    @cached_property
    def url(self) -> URL:
        """The URL to open the database with, its folder made."""
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(self._uri)
        except ArgumentError:
            raise FirnlineError("BAD_SETTING", "catalog_uri is no URI of a database") from None
        if url.get_backend_name() == "postgresql":
            bounds = {"connect_timeout": str(_BUSY_SECONDS), "options": f"-c lock_timeout={_BUSY_SECONDS}s"}
            return url.update_query_dict({key: value for key, value in bounds.items() if key not in url.query})
        if url.get_backend_name() != "sqlite":
            return url
        try:
            Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FirnlineError("BAD_SETTING", f"the catalog's folder cannot be made: {error}") from error
        return url.update_query_dict({"timeout": str(_BUSY_SECONDS)})

    @property
    def _file(self) -> Path | None:
        """The file of a SQLite database, named without further ado."""
        rest = self._uri.removeprefix(_SQLITE)
        return Path(unquote(rest)) if rest != self._uri and "?" not in rest and not rest.startswith("file:") else None

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        return create_engine(self.url)


def _ask_file(file: Path, table: str, query: str, arguments: dict[str, str]) -> list[tuple[Any, ...]] | None:
    if not file.exists():
        return None
    with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchall():
            return None
        return connection.execute(query, arguments).fetchall()


@contextmanager
def reachable() -> Iterator[None]:
    """Turn a database's refusal into a coded error."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise FirnlineError("PREREQUISITE", f"the catalog's database needs the Python package {error.name!r}") from error
    except sqlite3.Error as error:
        raise _unavailable(error) from error
    except Exception as error:
        from sqlalchemy.exc import DatabaseError
        from sqlalchemy.exc import TimeoutError as PoolTimeout

        if not isinstance(error, DatabaseError | PoolTimeout):
            raise
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> FirnlineError:
    what = f"the catalog did not answer: {error.args[0]}"
    if "not a database" in what or "malformed" in what:
        todo = "Bring the catalog's database back from a copy, or correct catalog_uri: what is there is none."
        return FirnlineError("CATALOG_UNAVAILABLE", what, todo=todo)
    return FirnlineError("CATALOG_UNAVAILABLE", what)
