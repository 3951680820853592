"""A dump of the whole collection every time: the delta is the difference to what the log holds.

A dump that lost more than a declared fraction of the rows is refused: it is more often cut short than right.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation

from firnline.engine.frames import relation_of
from firnline.errors import FirnlineError
from firnline.incremental.full import difference
from firnline.model.intake import Snapshot
from firnline.runtime.attempt import Staged
from firnline.runtime.evaluation import checked, in_order
from firnline.runtime.intake.taking import Taking
from firnline.runtime.writing import Destination


class SnapshotIntake(Taking):
    """A dump of the whole collection."""

    def taken(self) -> DataFrame:
        """The dump."""
        return checked(self.returned(), self.run.collection)

    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """What leads from the rows before the epoch to the dump."""
        names = destination.names
        before = None if destination.head.snapshot is None else destination.before(self.run.epoch)
        return difference(relation_of(in_order(taken, names)), before, names)

    def judge(self, destination: Destination, staged: Staged) -> None:
        """Refuse a dump that lost too many rows."""
        intake = self.run.collection.intake
        assert isinstance(intake, Snapshot)
        entries = destination.log.entries()
        had = sum(entry.weight for entry in entries if entry.description.upper <= self.run.epoch.lower)
        lost = -staged.total.weight
        if lost > intake.shrink * had:
            what = f"the dump has {had - lost} rows where there were {had}: it lost {lost / had:.0%}"
            raise FirnlineError("DUMP_SHRANK", f"{what}, more than shrink={intake.shrink} allows")
