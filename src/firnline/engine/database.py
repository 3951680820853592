"""Rows of a database's table, as far as a watermark column has come since the last epoch.

What it had reached, and what it reaches, is logged: a replay asks for the same range. Rows of that range that changed since then
are another matter, and a replay that meets some is refused by its digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True, slots=True)
class Database:
    """A database that Spark reaches by JDBC."""

    session: SparkSession
    url: str
    options: Mapping[str, Any]

    def reached(self, table: str, watermark: str) -> str | None:
        """How far a column has come, as the database writes it; None if there is no row."""
        found = self._query(f"SELECT CAST(MAX({watermark}) AS VARCHAR(1000)) AS reached FROM {table}").collect()
        value = found[0][0]
        return None if value is None else str(value)

    def rows(self, table: str, watermark: str, after: str | None, upto: str | None) -> DataFrame:
        """The rows whose watermark is beyond one value and not beyond another."""
        conditions = [
            *(["1 = 0"] if upto is None else [f"{watermark} <= {_text(upto)}"]),
            *([] if after is None else [f"{watermark} > {_text(after)}"]),
        ]
        return self._query(f"SELECT * FROM {table} WHERE {' AND '.join(conditions)}")

    def _query(self, text: str) -> DataFrame:
        return self.session.read.format("jdbc").options(**{**self.options, "url": self.url, "query": text}).load()


def _text(value: str) -> str:
    """A literal of no type: the database takes it as what it is compared with."""
    return "'" + value.replace("'", "''") + "'"
