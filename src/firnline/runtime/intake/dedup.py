"""Records of which some were delivered before: the delta is those whose ids were not seen, one an id.

The collection's own log is what was seen, and no second copy is kept. Where seen ids are forgotten after a while, rows say when
they came: by their epoch alone a merged layer could not tell.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StructType

from firnline.engine.frames import arrow_of, frame_of, local, relation_of
from firnline.engine.looking_up import asked_for, first_of, is_askable, unseen
from firnline.engine.sharing import MOST_BYTES
from firnline.engine.staging import FEW
from firnline.errors import FirnlineError
from firnline.incremental.relation import call, column, filtered, integer
from firnline.model.intake import Dedup
from firnline.model.names import DIFF, EPOCH, SEEN_AT, quoted
from firnline.plan.looking_up import MOST_BROADCAST, is_filtered
from firnline.runtime.evaluation import checked, framed, in_order
from firnline.runtime.intake.taking import Taking
from firnline.runtime.writing import Destination


class DedupIntake(Taking):
    """Records that are told by their ids."""

    is_proven: ClassVar[bool] = True

    def taken(self) -> DataFrame:
        """The records, and when they came if that is forgotten."""
        collection = self.run.collection
        frame = framed(self.returned(), collection)
        if SEEN_AT in frame.columns:
            raise FirnlineError("RESERVED_COLUMN", f"it returned the column {SEEN_AT!r}", collection.where)
        if self._intake.horizon is not None:
            frame = frame.withColumn(SEEN_AT, self._time(self.run.epoch.lower))
        return checked(frame, collection)

    def looked_up(self, columns: StructType) -> tuple[str, ...]:
        """The ids that files can be asked for."""
        return tuple(name for name in self._intake.ids if is_askable(columns[name].dataType))

    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """The records whose ids the log does not hold."""
        rows = self.given.kept(first_of(taken, self._intake.ids))  # looked up, and then written: the same both times
        count = rows.count()
        if count and destination.head.snapshot is not None:
            rows = self._unseen(rows, count, destination)
        return relation_of(in_order(rows.withColumn(DIFF, F.lit(1).cast("bigint")), [*destination.names, DIFF]))

    def _unseen(self, rows: DataFrame, count: int, destination: Destination) -> DataFrame:
        epoch, intake = self.run.epoch, self._intake
        found = self._found(rows, destination) if count <= FEW else None
        held = frame_of(self.run.session, self._asked(rows, count, destination) if found is None else found)
        if intake.horizon is not None:
            point = intake.horizon.point(self.run.declared.graph.schedule, epoch.lower)
            held = held.where(F.col(SEEN_AT) >= self._time(point))
        return unseen(rows, held, intake.ids, is_small=count <= MOST_BROADCAST)

    def _found(self, rows: DataFrame, destination: Destination) -> Relation | None:
        """What the log held of these ids, and perhaps of others, looked up; None if it cannot be."""
        if destination.find is None or destination.head.snapshot is None:
            return None
        ids = rows.select(*(F.col(quoted(name)) for name in self._intake.ids))
        when = () if self._intake.horizon is None else (SEEN_AT,)
        found = destination.find(destination.head.snapshot, lambda: arrow_of(ids), [*self._intake.ids, *when, DIFF, EPOCH])
        if found is None or found.nbytes > MOST_BYTES:
            return None
        return filtered(local(found), call("<", column(EPOCH), integer(self.run.epoch.lower)))

    def _asked(self, rows: DataFrame, count: int, destination: Destination) -> Relation:
        """The log, without the files that say that they have none of these ids."""
        epoch, intake = self.run.epoch, self._intake
        columns, placement = {of.name: of for of in destination.columns}, destination.placement
        log = destination.stored_before(epoch)
        entries = destination.log.entries()
        size = sum(entry.rows for entry in entries if entry.description.upper <= epoch.lower)
        is_placed = {*placement.partition_by} <= {*intake.ids}
        if is_filtered(size, count, placement.parts if is_placed else 1):
            ids, by = ([columns[name] for name in names] for names in (intake.ids, placement.partition_by))
            asked = asked_for(rows, ids, by, placement.parts)
            return log if asked is None else filtered(log, asked)
        return log

    def _time(self, point: int) -> Column:
        """A point as people see it."""
        is_timed = self.run.declared.graph.schedule.timed
        return F.timestamp_micros(F.lit(point)) if is_timed else F.lit(point).cast("bigint")

    @property
    def _intake(self) -> Dedup:
        intake = self.run.collection.intake
        assert isinstance(intake, Dedup)
        return intake
