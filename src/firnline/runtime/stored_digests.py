"""The digests of a log from its rows as they stand in storage.

One job reads all of it. Where that fails, it is cut in halves, by parts and then by epochs, until the (epoch, part) that cannot
be read are found and everything else is added up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import deltas, table_name
from firnline.engine.staging import Column, columns_of, digests
from firnline.errors import FirnlineError
from firnline.model.digest import Digest
from firnline.model.gap import Cell
from firnline.model.names import EPOCH, PART
from firnline.runtime.evaluation import diagnosed
from firnline.tables.metadata import Metadata

_OF_FILES = ("STAGE_FAILED", "UNREADABLE_FILE", "MISSING_FILE")
"""What a damaged file shows as; any other error is not the log's."""


@dataclass(frozen=True)
class StoredDigests:
    """What was found: digests, and why the rest could not be read."""

    found: dict[Cell, Digest] = field(default_factory=dict)
    unread: dict[Cell, str] = field(default_factory=dict)


def stored_digests(
    session: SparkSession, table: Metadata, snapshot: int, upto: int, cells: Collection[Cell], damaged: Collection[Cell]
) -> StoredDigests:
    """Add up a log's rows; ``cells`` is where rows are expected, ``damaged`` what is known to be lost and not tried alone."""
    rows = deltas(session, table_name(table.pipeline, table.name), snapshot, upto)
    search = _Search(rows, columns_of(rows.schema, table.columns), frozenset(cells), frozenset(damaged), StoredDigests())
    search.go(rows, sorted({part for _, part in cells}), sorted({epoch for epoch, _ in cells}))
    return search.result


def digests_read(rows: DataFrame, table: Metadata) -> dict[Cell, Digest]:
    """The digests of some rows of a log; whether a damaged file kept them from being read is not what an error tells."""
    try:
        return digests(rows, columns_of(rows.schema, table.columns))
    except PySparkException as error:
        code, text = diagnosed(error)
        raise FirnlineError(code, text) from error


@dataclass(frozen=True)
class _Search:
    rows: DataFrame
    columns: Sequence[Column]
    cells: frozenset[Cell]
    damaged: frozenset[Cell]
    result: StoredDigests

    def go(self, some: DataFrame, parts: Sequence[int], epochs: Sequence[int]) -> None:
        """Add up some rows, those of these parts and epochs, or find out which of them cannot be read."""
        here = {(epoch, part) for epoch in epochs for part in parts} & self.cells
        if here and here <= self.damaged:
            return
        try:
            self.result.found.update(digests(some, self.columns))
        except PySparkException as error:
            code, text = diagnosed(error)
            if code not in _OF_FILES:
                raise FirnlineError(code, text) from error
            if len(here) <= 1:
                self.result.unread.update(dict.fromkeys(here, text))
            elif len(parts) > 1:
                for half in _halves(parts):
                    self.go(self._within(half, epochs), half, epochs)
            else:
                for half in _halves(epochs):
                    self.go(self._within(parts, half), parts, half)

    def _within(self, parts: Sequence[int], epochs: Sequence[int]) -> DataFrame:
        return self.rows.where(F.col(PART).isin(*parts) & F.col(EPOCH).between(epochs[0], epochs[-1]))


def _halves(several: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = len(several) // 2
    return several[:middle], several[middle:]
