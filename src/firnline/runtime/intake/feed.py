"""A change feed: events, kept in a log of their own beside the collection, and played.

An epoch brings two deltas. The one of ``NAME__events`` is what its events change in those that stand. The collection's is what
playing the events gives after it and did not before, for the keys of the first delta only, and comes from that log alone. So an
attempt that died after it had published the first goes on with the second, and lost rows of the collection are made again without
the source. Both are staged before one is published: what a check refuses leaves no events behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StructField, StructType

from firnline.engine.frames import deltas, frame_of, relation_of, table_name
from firnline.engine.playing import KIND, SEQUENCE, TRUNCATE, events_of, of_keys, played, replaced, standing
from firnline.errors import FirnlineError
from firnline.incremental.full import difference
from firnline.incremental.relation import consolidated
from firnline.model.description import Verdict
from firnline.model.feed import EVENTS, VERSION, Feed
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH
from firnline.plan.safepoint import compacted
from firnline.runtime.attempt import Staged
from firnline.runtime.evaluation import checked, in_order
from firnline.runtime.intake.taking import Taking
from firnline.runtime.writing import Destination, Placement, Rewriting
from firnline.tables.log import Entry, Log

_MOST_BROADCAST = 1_000_000


@dataclass(frozen=True)
class FeedIntake(Taking):
    """Events, and what they leave."""

    beside: list[tuple[Destination, Staged]] = field(default_factory=list)
    """The events that are staged, in their log."""

    def taken(self) -> DataFrame:
        """The events of the epoch; if these are published already, all that are."""
        return self._stored(self._published.through[0]) if self._published is not None else self._read()

    def columns(self, taken: DataFrame) -> StructType:
        """Those that events have, and of versions where they begin and end."""
        sequence = taken.schema[SEQUENCE].dataType
        users = [each for each in taken.schema.fields if each.name not in (SEQUENCE, KIND, *BOOKKEEPING)]
        return StructType([*users, *(StructField(name, sequence) for name in VERSION if self._feed.has_versions)])

    def delta(self, taken: DataFrame, destination: Destination) -> Relation:
        """What playing the events changes. They are staged first."""
        if self._published is not None:
            return self._change(self._published.through[0], self._published.rows, destination.names)
        events = self._destination(taken)
        if events.head.snapshot is None and destination.head.snapshot is not None:
            what = f"{self.run.collection.name!r} holds rows that no events tell of: it was no feed until now"
            raise FirnlineError("INTAKE_CHANGED", what, self.run.collection.where)
        generation = events.head.description.generation
        made = events.stage(self._replaced(taken, events), self.run.epoch, generation, f"{self.run.attempt}e", is_few=True)
        if isinstance(made, Verdict):
            raise self._moved()
        self.beside.append((events, made))
        assert made.snapshot is not None, "what is staged has a snapshot, be it without rows"
        return self._change(made.snapshot, made.total.rows, destination.names)

    def publish_beside(self, seconds: float) -> Verdict:
        """Publish the events that are staged."""
        verdict = Verdict.FREE
        while self.beside:
            events, staged = self.beside.pop()
            generation, code = events.head.description.generation, self.run.fingerprint
            verdict = events.publish(staged, self.run.epoch, generation, code, {}, seconds, self.given.determinants)
        return verdict

    def step_back(self) -> None:
        """Drop the events that are staged."""
        for events, staged in self.beside:
            events.log.discard(staged.attempt)

    @property
    def determinants(self) -> Mapping[str, Any]:
        """What the events were taken with."""
        return super().determinants if self._published is None else self._log.sidecar(self._published).determinants

    def replayed(self, destination: Rewriting) -> Relation:
        """The events of a published epoch once more, or what they changed."""
        if destination.log.collection == self._log.collection:
            events = self._read()
            destination.check(events.schema)
            return self._replaced(events, destination)
        epoch, names, head = self.run.epoch, destination.names, self._log.head()
        assert head is not None, "a feed's collection comes of its events"
        assert head.snapshot is not None
        if destination.merged is not None:
            whole = played(self._standing(self._stored(head.snapshot)), self._feed)
            return difference(relation_of(in_order(whole, names)), consolidated(destination.before(epoch), names), names)
        if epoch.lower < head.description.since:
            raise compacted(self.run.declared.graph, self._log.collection, head.description.since)
        changes = [each.rows for each in self._log.entries(epoch.lower) if each.lower < epoch.upper]
        return self._change(head.snapshot, sum(changes), names)

    @property
    def _feed(self) -> Feed:
        feed = self.run.collection.intake
        assert isinstance(feed, Feed)
        return feed

    @cached_property
    def _log(self) -> Log:
        return self.run.project.log(self.run.declared.graph.name, self.run.collection.name + EVENTS)

    @cached_property
    def _published(self) -> Entry | None:
        """The events of the epoch, if an attempt that died published them, or one that is under way."""
        return next((each for each in self._log.entries(self.run.epoch.lower)), None)

    def _moved(self) -> FirnlineError:
        return FirnlineError("GENERATION_CHANGED", f"{self._log.collection!r} moved while its epoch was computed")

    def _read(self) -> DataFrame:
        """What the source returns, as events."""
        feed, collection = self._feed, self.run.collection
        frame = checked(self.returned(), replace(collection, keys=feed.keys))
        missing = [name for name in feed.except_column_list if name not in frame.columns]
        if missing:
            what = f"except_column_list names {', '.join(missing)}, which it did not return"
            raise FirnlineError("WRONG_COLUMNS", what, collection.where)
        versions = [name for name in frame.columns if feed.has_versions and name.upper() in VERSION]
        if versions:
            raise FirnlineError("RESERVED_COLUMN", f"it returned the column {versions[0]!r}", collection.where)
        return events_of(frame, feed)

    def _destination(self, events: DataFrame) -> Destination:
        """The log of events, ready for the epoch."""
        placement = Placement(self._feed.keys, self.run.collection.partition_by, self.run.collection.parts)
        return self.run.destination(self._log.collection, events.schema, placement)

    def _replaced(self, events: DataFrame, destination: Destination) -> Relation:
        """What the events change in those that stand."""
        feed, names = self._feed, destination.names
        new = self.given.kept(in_order(standing(events, feed), names))
        is_few = new.count() <= _MOST_BROADCAST
        rows = frame_of(self.run.session, destination.before(self.run.epoch))
        by = (*feed.keys, SEQUENCE) if feed.has_versions else feed.keys
        before = self._standing(of_keys(rows, new, by, is_few=is_few))
        return relation_of(in_order(replaced(before, new, feed), [*names, DIFF]))

    def _change(self, snapshot: int, changes: int, names: list[str]) -> Relation:
        """What playing changes for the keys of the epoch's events; all keys after a truncate."""
        feed, lower = self._feed, self.run.epoch.lower
        rows = self._stored(snapshot)
        touched = rows.where(F.col(EPOCH) >= lower)
        is_truncated = feed.apply_as_truncates is not None and touched.where(F.col(KIND) == TRUNCATE).limit(1).count() > 0
        found = rows if is_truncated else of_keys(rows, touched, feed.keys, is_few=changes <= _MOST_BROADCAST)
        found = self.given.kept(found)
        after, before = (played(self._standing(each), feed) for each in (found, found.where(F.col(EPOCH) < lower)))
        weighted = [in_order(each, names).withColumn(DIFF, F.lit(sign)) for each, sign in ((after, 1), (before, -1))]
        return consolidated(relation_of(weighted[0].unionAll(weighted[1])), names)

    def _stored(self, snapshot: int) -> DataFrame:
        """The weighted events up to the epoch's end, as a snapshot of their log holds them."""
        log = self._log
        return deltas(self.run.session, table_name(log.pipeline, log.collection), snapshot, self.run.epoch.upper)

    def _standing(self, weighted: DataFrame) -> DataFrame:
        """The events that are there, each once."""
        names = [name for name in weighted.columns if name not in BOOKKEEPING]
        rows = in_order(weighted, [*names, DIFF])
        return frame_of(self.run.session, consolidated(relation_of(rows), names)).drop(DIFF)
