"""What is measured: tables, how they change, and the stages over them, told once for all engines.

A stage is one PySpark function. Firnline differentiates it, Spark's full recompute calls it on plain Iceberg tables, MERGE calls
it on the rows of the affected groups only. DuckDB gets the same question as SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

Frames = Mapping[str, DataFrame]


@dataclass(frozen=True)
class Table:
    """A table: DuckDB's SQL for its first rows, and for the rows (``epoch``, with ``_diff``) that a span of draws changes."""

    keys: tuple[str, ...]
    base: str
    changes: str
    changed_per_row: float
    """Rows that come, go or are updated if the span is all of [0, 1), per row of the table."""
    partition_by: tuple[str, ...] = ()
    """How our log is partitioned, if not by the keys; and by which column plain tables are, for storage-partitioned joins."""
    parts: int = 1


@dataclass(frozen=True)
class Stage:
    """A question, for every engine.

    ``affected`` finds the groups that changes touch, from the changes and the current tables; ``restricted`` are the tables with
    the rows of these groups only. Without them MERGE recomputes all groups.
    """

    name: str
    keys: tuple[str, ...]
    query: Callable[..., DataFrame]
    sql: str
    inputs: tuple[str, ...]
    affected: Callable[[Frames, Frames], DataFrame] | None = None
    restricted: Callable[[Frames, DataFrame], Frames] | None = None


@dataclass(frozen=True)
class Workload:
    """Tables and stages at one scale."""

    suite: str
    scale: float
    tables: Mapping[str, Table]
    stages: Mapping[str, Stage]
    views: str
    """DuckDB's SQL that the tables' SQL stands on; ``{base}`` is the folder of generated base tables."""
    words: str = ""
    """DuckDB's SQL that the stages' SQL stands on."""
    build_side: str | None = None
    """The smaller side of the join, which hints name."""
    is_tpch: bool = True

    @property
    def label(self) -> str:
        """The state's size, for people."""
        return f"SF{self.scale:g}" if self.is_tpch else f"{self.scale:g}M visits"
