"""Where the present metadata file of every table and view is: all that an Iceberg catalog itself keeps.

A SQL database and a REST catalog keep it, by the scheme of the catalog's URI. Both let a commit through only onto what it was
made from; what else they promise differs, and is said where it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from firnline.settings import is_rest
from firnline.tables.database import Database, reachable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAME = "lake"
_TABLES = "iceberg_tables"
_OURS = f"WHERE catalog_name = '{NAME}' AND table_namespace = :space"
PYTHON_IO = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
"""The default imports pandas, a second more."""

Write = Callable[[str, bytes], None]
"""Writes a small file, whole or not at all."""
Read = Callable[[str], bytes]
"""Reads a small file."""


class Pointers(Protocol):
    """What a catalog keeps. A namespace is a pipeline, or the views of one."""

    @property
    def opened(self) -> Catalog:
        """PyIceberg's catalog."""

    def reachable(self) -> AbstractContextManager[None]:
        """Turns silence and refusals of PyIceberg's catalog into coded errors."""

    def table(self, space: str, name: str) -> str | None:
        """The path of a table's metadata file; nothing where there is no such table."""

    def previous(self, space: str, name: str) -> str | None:
        """The path of the metadata file before; nothing where that is not kept."""

    def names(self, space: str) -> set[str] | None:
        """The tables of a namespace; None where there is no catalog yet."""

    def spaces(self) -> set[str]:
        """All namespaces."""

    def forget(self, space: str, name: str, version: str) -> bool:
        """Take a table out, files untouched, if it is still this version; whether it was."""

    def point(self, space: str, name: str, lost: str, version: str) -> bool:
        """Let a table's metadata be another file, if it is still the one that was lost; whether it was."""

    def view(self, space: str, name: str, read: Read) -> tuple[str, dict[str, Any]] | None:
        """What tells this version of a view from others, and what it says."""

    def put_view(self, space: str, name: str, before: str | None, made: dict[str, Any], write: Write) -> bool:
        """Let a view say something else, if it is still the version that was looked at, or is not there; whether it was."""

    def forget_view(self, space: str, name: str) -> None:
        """Take a view out, if it is there."""


def pointers(uri: str, warehouse: str, options: Mapping[str, str]) -> Pointers:
    """The pointers of a catalog; ``options`` are Iceberg's, of a REST catalog."""
    if is_rest(uri):
        from firnline.tables.rest import RestPointers

        return RestPointers(uri, options)
    return SqlPointers(uri, warehouse)


class SqlPointers:
    """One table of a database, which PyIceberg's and Spark's SQL catalogs share; every change is a compare-and-swap."""

    def __init__(self, uri: str, warehouse: str) -> None:
        self.database = Database(uri)
        self._warehouse = warehouse

    @cached_property
    def opened(self) -> Catalog:
        """PyIceberg's catalog, its tables created on first use."""
        from pyiceberg.catalog.sql import SqlCatalog

        with reachable():
            return SqlCatalog(
                NAME, uri=self.database.url.render_as_string(hide_password=False), warehouse=self._warehouse, **PYTHON_IO
            )

    def reachable(self) -> AbstractContextManager[None]:
        """Turns silence and refusals of PyIceberg's catalog into coded errors."""
        return reachable()

    def table(self, space: str, name: str) -> str | None:
        """The path of a table's metadata file; of a view's, too."""
        return self._of(space, name, "metadata_location")

    def previous(self, space: str, name: str) -> str | None:
        """The path of the metadata file before; nothing for the first one, and for one that was rebuilt."""
        return self._of(space, name, "previous_metadata_location")

    def _of(self, space: str, name: str, what: str) -> str | None:
        found = self.database.ask(_TABLES, f"SELECT {what} FROM {_TABLES} {_OURS} AND table_name = :name", space=space, name=name)
        return found[0][0] if found else None

    def names(self, space: str) -> set[str] | None:
        """The tables of a namespace; None where there is no database yet."""
        found = self.database.ask(_TABLES, f"SELECT table_name FROM {_TABLES} {_OURS}", space=space)
        return None if found is None else {name for (name,) in found}

    def spaces(self) -> set[str]:
        """All namespaces that hold something."""
        query = f"SELECT DISTINCT table_namespace FROM {_TABLES} WHERE catalog_name = :catalog"
        return {space for (space,) in self.database.ask(_TABLES, query, catalog=NAME) or ()}

    def forget(self, space: str, name: str, version: str) -> bool:
        """Take a table out, files untouched, if it is still this version; whether it was."""
        unchanged = "table_name = :name AND metadata_location = :version"
        return (
            self.database.change(f"DELETE FROM {_TABLES} {_OURS} AND {unchanged}", space=space, name=name, version=version) == 1
        )

    def point(self, space: str, name: str, lost: str, version: str) -> bool:
        """Let a table's metadata be another file, if it is still the one that was lost; whether it was."""
        return self._replace(space, name, lost, version, "NULL")

    def view(self, space: str, name: str, read: Read) -> tuple[str, dict[str, Any]] | None:
        """What tells this version of a view from others, and what it says."""
        there = self.table(space, name)
        return None if there is None else (there, json.loads(read(there)))

    def put_view(self, space: str, name: str, before: str | None, made: dict[str, Any], write: Write) -> bool:
        """Let a view say something else, if it is still the version that was looked at, or is not there; whether it was."""
        from firnline.world import world

        path = f"{made['location']}/metadata/{made['current-version-id']:05d}-{world().new_id()}.metadata.json"
        write(path, json.dumps(made).encode())
        if before is not None:
            return self._replace(space, name, before, path, ":lost")
        given = {"space": space, "name": name, "version": path}
        columns = "(catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
        new = f"SELECT '{NAME}', {', '.join(f'CAST(:{each} AS VARCHAR)' for each in given)}, 'VIEW'"
        free = f"NOT EXISTS (SELECT 1 FROM {_TABLES} {_OURS} AND table_name = :name)"
        return self.database.change(f"INSERT INTO {_TABLES} {columns} {new} WHERE {free}", **given) == 1

    def forget_view(self, space: str, name: str) -> None:
        """Take a view out, if it is there."""
        self.database.change(f"DELETE FROM {_TABLES} {_OURS} AND table_name = :name", space=space, name=name)

    def _replace(self, space: str, name: str, lost: str, version: str, previous: str) -> bool:
        change = f"SET metadata_location = :version, previous_metadata_location = {previous}"
        unchanged = "table_name = :name AND metadata_location = :lost"
        statement = f"UPDATE {_TABLES} {change} {_OURS} AND {unchanged}"
        return self.database.change(statement, space=space, name=name, lost=lost, version=version) == 1
