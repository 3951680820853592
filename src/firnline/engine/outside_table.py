"""An Iceberg table that is not ours: what changed in it between two of its snapshots.

Which snapshot the last epoch reached, and which this one reaches, is logged. Where only files were added, only these are read;
where files were rewritten, only these, old and new; where rows were deleted beside their files, both states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.errors import FirnlineError
from firnline.incremental.relation import consolidated
from firnline.model.names import DIFF, quoted

_KEEPING = ("append", "replace")
"""Operations that remove no row."""


@dataclass(frozen=True)
class OutsideTable:
    """A table by its full name in one of the session's catalogs: ``catalog.namespace.table``."""

    session: SparkSession
    name: str

    def reached(self, before: int | None) -> int | None:
        """Its present snapshot, which stands on what was reached before; None while it has none."""
        if before is not None and before not in self._line:
            what = f"{self.name} does not know the snapshot {before} that the last epoch reached"
            raise FirnlineError("TABLE_REPLACED", f"{what}: it was made anew or rolled back, or old snapshots were expired")
        return self._line[0] if self._line else None

    def changes(self, after: int | None, upto: int | None) -> DataFrame:
        """What leads from one snapshot to another, as weighted rows."""
        if upto is None or upto == after:
            return self._weighted(self.session.table(self._quoted).limit(0), 1)
        if after is None:
            return self._weighted(self._state(upto), 1)
        between = list(self._between(after, upto))
        if all(each["operation"] in _KEEPING for each in between):
            options = {"start-snapshot-id": str(after), "end-snapshot-id": str(upto)}
            return self._weighted(self.session.read.options(**options).table(self._quoted), 1)
        every = (after, *(each["snapshot_id"] for each in between))
        changed = self._logged(after, upto) if self._has_whole_files(*every) else self._compared(after, upto)
        names = [name for name in changed.columns if name != DIFF]
        return frame_of(self.session, consolidated(relation_of(changed), names))

    def _logged(self, after: int, upto: int) -> DataFrame:
        """By the rows of files that came and went."""
        catalog, _, table = self.name.partition(".")
        view = f"firnline_{uuid4().hex}"
        options = f"map('start-snapshot-id', '{after}', 'end-snapshot-id', '{upto}')"
        named = f"table => '{table}', changelog_view => '{view}', options => {options}"
        self.session.sql(f"CALL {quoted(catalog)}.system.create_changelog_view({named})").collect()
        rows = self.session.table(view)
        weight = F.when(F.col("_change_type").isin("DELETE", "UPDATE_BEFORE"), -1).otherwise(1).cast("bigint")
        return rows.withColumn(DIFF, weight).drop("_change_type", "_change_ordinal", "_commit_snapshot_id")

    def _compared(self, after: int, upto: int) -> DataFrame:
        """By both states, in the columns that the table has now."""
        new, old = self._state(upto), self._state(after)
        common = old.select(*(quoted(name) for name in new.columns if name in old.columns))
        return self._weighted(new, 1).unionByName(self._weighted(common, -1), allowMissingColumns=True)

    def _state(self, snapshot: int) -> DataFrame:
        return self.session.read.option("versionAsOf", snapshot).table(self._quoted)

    def _weighted(self, rows: DataFrame, weight: int) -> DataFrame:
        return rows.withColumn(DIFF, F.lit(weight).cast("bigint"))

    def _has_whole_files(self, *snapshots: int) -> bool:
        """Whether no row is deleted beside its file."""
        return all(self._snapshots[each]["summary"].get("total-delete-files", "0") == "0" for each in snapshots)

    def _between(self, after: int, upto: int) -> Iterator[Row]:
        at: int | None = upto
        while at is not None and at != after:
            yield self._snapshots[at]
            at = self._snapshots[at]["parent_id"]

    @cached_property
    def _snapshots(self) -> dict[int, Row]:
        found = self.session.sql(f"SELECT snapshot_id, parent_id, operation, summary FROM {self._quoted}.snapshots").collect()
        return {row["snapshot_id"]: row for row in found}

    @cached_property
    def _line(self) -> list[int]:
        """The snapshots that its present state stands on, the newest first."""
        refs = self.session.sql(f"SELECT snapshot_id FROM {self._quoted}.refs WHERE name = 'main'").collect()
        found: list[int] = []
        at = refs[0][0] if refs else None
        while at in self._snapshots:
            found.append(at)
            at = self._snapshots[at]["parent_id"]
        return found

    @property
    def _quoted(self) -> str:
        return quoted(*self.name.split("."))
