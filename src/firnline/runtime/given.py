"""Rows for people and programs, in the words of their own tools."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class Given(ABC):
    """Rows that are read when they are asked for."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, without a JVM."""

    @abstractmethod
    def to_spark(self, session: SparkSession | None = None) -> DataFrame:
        """The rows as a DataFrame of a Connect session; by default of one of our own, which ends with the process."""

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        _needed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a Polars DataFrame."""
        frame: polars.DataFrame = _needed("polars").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
        """The rows as a view of a DuckDB connection, under a name; they are in memory as long as it is there."""
        _needed("duckdb")
        connection.register(name, self.to_arrow())
        return connection.table('"' + name.replace('"', '""') + '"')


def _needed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise FirnlineError(
            "MISSING_PACKAGE", f"{package} is not installed", todo=f"Install it: pip install {package}."
        ) from error
