"""The Iceberg catalog, shared with Spark: one SQL database, one namespace per pipeline, one table per collection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.table import Table
from sqlalchemy import delete
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from firnline.errors import FirnlineError

NAME = "lake"
_BUSY_SECONDS = 30


class Catalog:
    """A lazily opened SQL catalog; ``uri`` is SQLAlchemy's."""

    def __init__(self, uri: str, warehouse: str) -> None:
        try:
            self._uri = make_url(uri)
        except ArgumentError:
            raise FirnlineError("BAD_SETTING", "catalog_uri is no URI of a database") from None
        self._warehouse = warehouse

    @cached_property
    def sql(self) -> SqlCatalog:
        """PyIceberg's catalog, its tables created on first use."""
        url = self._uri
        if url.get_backend_name() == "sqlite":
            try:
                Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FirnlineError("BAD_SETTING", f"the catalog's folder cannot be made: {error}") from error
            url = url.update_query_dict({"timeout": str(_BUSY_SECONDS)})
        with reachable():
            return SqlCatalog(
                NAME,
                uri=url.render_as_string(hide_password=False),
                warehouse=self._warehouse,
                **{
                    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"
                },  # the default imports pandas, a second more for each command
            )

    def ensure_namespace(self, pipeline: str) -> None:
        """Create the pipeline's namespace unless it is there."""
        with reachable():
            if not self.sql.namespace_exists((pipeline,)):
                try:
                    self.sql.create_namespace((pipeline,))
                except (NamespaceAlreadyExistsError, IntegrityError):
                    return  # somebody else was faster

    def forget(self, table: Table) -> bool:
        """Take a table out of the catalog, files untouched, if it is still exactly as it was loaded; whether it was."""
        pipeline, name = table.name()
        ours = (IcebergTables.catalog_name == NAME, IcebergTables.table_namespace == pipeline, IcebergTables.table_name == name)
        unchanged = IcebergTables.metadata_location == table.metadata_location
        with reachable(), self.sql.engine.begin() as connection:
            return connection.execute(delete(IcebergTables).where(*ours, unchanged)).rowcount == 1

    def names(self, pipeline: str) -> set[str]:
        """The tables of a pipeline."""
        with reachable():
            if not self.sql.namespace_exists((pipeline,)):
                return set()
            return {identifier[-1] for identifier in self.sql.list_tables((pipeline,))}


@contextmanager
def reachable() -> Iterator[None]:
    """Turn a database's refusal into a coded error."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise FirnlineError("PREREQUISITE", f"the catalog's database needs the Python package {error.name!r}") from error
    except (OperationalError, DatabaseError, PoolTimeout) as error:
        raise FirnlineError("CATALOG_UNAVAILABLE", f"the catalog did not answer: {error.args[0]}") from error
