"""One attempt at one epoch of one collection, on Spark: evaluate, stage, audit, publish."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from firnline.engine.frames import known, relation_of, state, table_name
from firnline.engine.outside import Recorded, position
from firnline.engine.reading import Malformed, SourceEpoch
from firnline.errors import FirnlineError
from firnline.incremental.relation import consolidated
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.feed import EVENTS, Feed
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import BOOKKEEPING, DIFF, QUARANTINE
from firnline.model.outline import Outline, difference
from firnline.plan.agreement import Agreement
from firnline.plan.changing import Approval, check_change
from firnline.plan.evolving import evolution
from firnline.plan.safepoint import compacted
from firnline.runtime.attempt import Published, Staged
from firnline.runtime.checks import Checks, staged_rows
from firnline.runtime.derived import Derived, Remade
from firnline.runtime.evaluation import shape, told
from firnline.runtime.explain import note
from firnline.runtime.finding import held
from firnline.runtime.intake import intake_of
from firnline.runtime.intake.taking import Taking
from firnline.runtime.project import Declared, Project
from firnline.runtime.renaming import known_names
from firnline.runtime.stage_plan import StagePlan, made_of, plan_of
from firnline.runtime.writing import Destination, Placement, Rebuilding, Renamed, Rewriting, stored_in
from firnline.tables.evolving import names_today
from firnline.tables.log import Head, Log, entries_of
from firnline.tables.metadata import Metadata
from firnline.tables.sidecar import Input

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageRun:
    """All that one attempt needs."""

    project: Project
    declared: Declared
    session: SparkSession
    collection: Collection
    epoch: Epoch
    attempt: str

    def publish(self, generation: int, inputs: Mapping[str, Head]) -> Published:
        """Compute, stage, audit and publish the epoch."""
        began = time.monotonic()
        given = self.given()
        with told(self.collection, given.label, self.project.settings):
            try:
                return self._published(given, generation, inputs, began)
            except BaseException as error:
                self.failed(given, error)
                raise
            finally:
                given.close()

    def replay(self, name: str, parts: tuple[int, ...], *, is_corrected: bool = False, merged: Epoch | None = None) -> Staged:
        """Make parts of a published epoch anew, staged and not published: of the collection, or of what it keeps beside it.

        With ``is_corrected`` from the whole state, as an epoch after a gap opened or closed. Of a merged layer that ends with
        the epoch ``merged`` as what the state after this run's epoch has and no other layer holds.
        """
        graph = self.declared.graph
        destination = Rewriting.at(self.session, self.project.log(graph.name, name), self.epoch, parts, merged)
        is_corrected = is_corrected or merged is not None
        given = SourceEpoch.of(self.session, self.project.settings, graph.schedule, self.epoch, self._recorded())
        with told(self.collection, given.label, self.project.settings):
            try:
                again = self._replayed(given, destination, is_corrected)
            finally:
                given.close()
        assert isinstance(again, Staged), "what is staged again races nobody"
        return again

    def rebuild(self, take: Callable[[Remade], None], *, is_written: bool = True) -> tuple[str, ...]:
        """Make all rows of a stage anew, from the state of its inputs at the epoch's end, and of what it keeps beside it.

        Args:
            take: Given each log's rows, staged if ``is_written``; what the stage keeps comes first.
            is_written: Whether rows are staged, or only added up.

        Returns:
            The names of what the stage keeps.
        """
        with told(self.collection, self.declared.graph.schedule.label(self.epoch.lower), self.project.settings):
            return self._prepared(is_written=is_written).rebuilt(take, is_written=is_written)

    def plan(self) -> str | None:
        """The fingerprint of the stage's plan today; None if it is taken as it stands or does not say all."""
        with told(self.collection, "plan", self.project.settings):
            outline = self.planned(self._heads()).outline
        return None if outline is None else outline.plan

    def check_rebuildable(self) -> None:
        """Refuse a stage whose plan cannot be made, does not fit its log, or changed unasked, before anything is computed."""
        with told(self.collection, "plan", self.project.settings):
            plan = self._prepared(is_written=False).plan
            approvals = self.project.control(self.declared.graph.name).agreement().approvals
            self._check_change(plan, approvals, self.epoch.upper)

    def given(self) -> SourceEpoch:
        """The epoch as a source's function gets it."""
        graph = self.declared.graph
        determinants = self.project.determinants(graph.name, self.collection.name, self.epoch.lower)
        return SourceEpoch.of(self.session, self.project.settings, graph.schedule, self.epoch, determinants, self._logged_earlier)

    def failed(self, given: SourceEpoch, error: BaseException) -> None:
        """Let the next attempt look anew for what this one was given; not if the epoch is there, which was made of that."""
        if not given.determinants:
            return
        try:
            head = self._taking.head()
        except FirnlineError as reason:
            _logger.warning("what %s took is kept, since nobody knows whether it is published: %s", given.label, reason)
            return
        if head is None or head.description.upper < self.epoch.upper:
            given.failed(error)

    def _prepared(self, *, is_written: bool) -> Derived:
        inputs = self._heads()
        plan = self.planned(inputs)
        destination = Rebuilding.beside(self.into(plan.frame.schema), is_written=is_written)
        lineages = {name: self.lineage(name, head) for name, head in inputs.items()}
        return Derived(self, plan, destination, lineages, destination.parts)

    def _replayed(self, given: SourceEpoch, destination: Rewriting, is_corrected: bool) -> Staged | Verdict:
        generation = destination.head.description.generation
        if self.collection.kind == "stage":
            plan = self.planned(self._heads())
            if destination.log.collection == self.collection.name:
                destination.check(plan.frame.schema)
            derived = Derived(self, plan, destination, {}, destination.parts, "replay" if is_corrected else None)
            return derived.replayed(generation)
        intake = intake_of(self, given)
        if destination.log.collection != self.collection.name + QUARANTINE:
            return destination.stage(intake.replayed(destination), self.epoch, generation, self.attempt)
        intake.returned()
        malformed = given.malformed()
        if malformed is None:
            raise FirnlineError("REPLAY_DIFFERS", "no record is malformed any more")
        return destination.stage(_weighted(malformed, destination.names), self.epoch, generation, self.attempt)

    def positions(self) -> dict[str, Any]:
        """Where the epochs before this one stand in what they took from the outside, and nothing else of it."""
        logged = self.project.determinants(self.declared.graph.name, self.collection.name, self.epoch.lower)
        names = logged.names().union(*(self._taking.sidecar(entry).determinants for entry in self._taking.entries()))
        found = {name: position(name, self._logged_earlier(name)) for name in sorted(names)}
        return {name: value for name, value in found.items() if value is not None}

    def _logged_earlier(self, name: str) -> Iterator[Any]:
        """What earlier epochs logged under a name, the newest first.

        Of a published epoch that is what it was published with: an attempt that came too late may have logged something else.
        """
        graph, at, log = self.declared.graph, self.epoch.lower, self._taking
        published = {entry.description.upper: entry for entry in log.entries()}
        while at > graph.schedule.start:
            entry, lower = published.get(at), graph.schedule.epoch_at(at - 1).lower
            at = lower if entry is None else max(lower, entry.lower)  # the schedule may be another one than then
            told = log.sidecar(entry).determinants if entry is not None else {}
            logged = self.project.determinants(graph.name, self.collection.name, at)
            found = told[name] if name in told else logged.find(name)
            if found is not None:
                yield found

    def _recorded(self) -> Recorded:
        """What the epoch took from the outside, as its publish wrote it down."""
        entries = [entry for entry in self._taking.entries(self.epoch.lower) if entry.lower <= self.epoch.lower]
        return Recorded(self._taking.sidecar(entries[0]).determinants if entries and self.collection.kind == "source" else {})

    @property
    def _taking(self) -> Log:
        """The log whose epochs say what a source took from the outside."""
        name = self.collection.name + (EVENTS if isinstance(self.collection.intake, Feed) else "")
        return self.project.log(self.declared.graph.name, name)

    def _published(self, given: SourceEpoch, generation: int, inputs: Mapping[str, Head], began: float) -> Published:
        if self.collection.kind == "stage":
            return self._derived(generation, inputs, began)
        intake = intake_of(self, given)
        try:
            return self._taken_in(intake, given, generation, began)
        finally:
            intake.step_back()

    def _taken_in(self, intake: Taking, given: SourceEpoch, generation: int, began: float) -> Published:
        taken = intake.taken()
        malformed = self._malformed(given)
        columns = intake.columns(taken)
        destination = intake.into(columns)
        checks = self._checks(destination)
        delta = intake.delta(taken, destination)
        made = intake.staged(delta, destination, generation)
        if isinstance(made, Staged):
            made = destination.approved(made, self.epoch, generation, partial(intake.judge, destination))
        staged = self._approved(checks, destination, made, generation)
        if isinstance(staged, Verdict):
            return Published(staged, Digest())
        try:
            given.check_unchanged()
        except FirnlineError:
            destination.log.discard(staged.attempt)
            raise
        if malformed is not None:
            self._quarantine(malformed, began)
        seconds = time.monotonic() - began
        beside = intake.publish_beside(seconds)
        if beside is not Verdict.FREE:
            destination.log.discard(staged.attempt)
            if beside is not Verdict.TAKEN:
                raise FirnlineError(
                    "GENERATION_CHANGED", f"what {self.collection.name!r} keeps moved while its epoch was computed"
                )
            return self._published(given, generation, {}, began)  # from what somebody else published there
        verdict = destination.publish(staged, self.epoch, generation, self.fingerprint, {}, seconds, intake.determinants)
        return Published(verdict, staged.total, malformed.count if malformed else 0)

    def _derived(self, generation: int, inputs: Mapping[str, Head], began: float) -> Published:
        control = self.project.control(self.declared.graph.name)
        agreed = control.agreement()
        mark = agreed.gaps.mark(self.collection.name)
        if mark is not None:  # it speaks of logs as they are after it was set
            inputs = self._heads()
        plan = self.planned(inputs, agreed)
        self._check_change(plan, agreed.approvals, self.epoch.lower)
        note(self.project, self.declared.graph, self.collection, plan)
        destination = self.into(plan.frame.schema, renamed=self._renamed(plan.outline))
        checks = self._checks(destination)
        lineages = {name: self.lineage(name, head) for name, head in inputs.items()}
        derived = Derived(self, plan, destination, lineages, correction=mark)
        if destination.head.snapshot is None:
            derived.check_inputs()  # a rewind that came before there was a log found nobody to tell
        is_ahead = mark is not None and derived.is_ahead()
        staged = self._approved(checks, destination, derived.staged(generation), generation)
        if isinstance(staged, Verdict):
            return Published(staged, Digest())
        lineage, seconds = derived.lineage(), time.monotonic() - began
        verdict = destination.publish(staged, self.epoch, generation, derived.fingerprint, lineage, seconds)
        if mark is not None and verdict is Verdict.FREE and not is_ahead:
            control.change(lambda gaps: gaps.corrected(self.collection.name, mark, self.epoch.upper))
        return Published(verdict, staged.total)

    def _check_change(self, plan: StagePlan, approvals: Iterable[Approval], at: int) -> None:
        """Refuse code that changed and may not make epochs from a point on, before it changes anything."""
        head = self.project.log(self.declared.graph.name, self.collection.name).head()
        made_by = None if head is None else head.fingerprint
        check_change(self.declared.graph, self.collection, made_by, self.made_by(plan), approvals, at)

    def made_by(self, plan: StagePlan) -> Fingerprint:
        """The fingerprint of a stage, with that of its plan."""
        outline = plan.outline
        return replace(self.fingerprint, plan=outline.plan if outline else None, outline=outline)

    def _checks(self, destination: Destination) -> Checks:
        types = {column.name: column.kind.simpleString() for column in destination.columns}
        return Checks.of(self.project, self.declared.graph, self.collection, types)

    def approved(self, destination: Destination, made: Staged | Verdict, generation: int) -> Staged | Verdict:
        """What was staged elsewhere, if the collection's checks let it pass."""
        return self._approved(self._checks(destination), destination, made, generation)

    def _approved(self, checks: Checks, destination: Destination, made: Staged | Verdict, generation: int) -> Staged | Verdict:
        """What was staged, if the collection's checks let it pass."""
        if isinstance(made, Verdict) or not self.collection.checks:
            return made

        def judge(made: Staged) -> None:
            snapshot = made.snapshot if made.snapshot is not None else destination.head.snapshot
            has_removals = made.total.rows != made.total.weight
            rows = staged_rows(
                self.session, destination.table, snapshot, self.epoch, destination.names, has_removals=has_removals
            )
            checks.ask(rows, self.epoch, self.attempt)

        return destination.approved(made, self.epoch, generation, judge)

    def into(self, columns: StructType, looked_up: tuple[str, ...] = (), renamed: Renamed = ()) -> Destination:
        """The collection's own log, ready for the epoch; rows are looked up by the values of some columns."""
        cut = (self.collection.keys, self.collection.partition_by, self.collection.parts)
        placement = Placement(*cut, is_keyed=True, looked_up=looked_up)
        return self.destination(self.collection.name, columns, placement, renamed)

    def fitted(self, frame: DataFrame, outline: Outline | None) -> DataFrame:
        """What a stage returns, with a null for each column of its log that it does not return any more."""
        table = self.project.log(self.declared.graph.name, self.collection.name).load()
        if table is None or table.current is None or set(table.columns) == {*frame.columns, *BOOKKEEPING}:
            return frame
        stored = stored_in(self.session, table)
        gone = evolution(shape(stored), shape(frame.schema), self._renamed(outline)).left_out
        kinds = {field.name: field.dataType for field in stored.fields}
        return frame.withColumns({name: F.lit(None).cast(kinds[name]) for name in gone}) if gone else frame

    def _renamed(self, outline: Outline | None) -> Renamed:
        """The columns of a stage that its log has under other names, as the plans show."""
        table = self.project.log(self.declared.graph.name, self.collection.name).load()
        if outline is None or table is None or outline.columns.keys() <= table.columns.keys():
            return ()
        made_by, names = self._newest(table)
        return () if made_by is None else difference(made_by.under(names), outline).renamed

    def is_under_its_names(self) -> bool:
        """Whether the log has the columns that its newest layer was made with under the names that they had then."""
        table = self.project.log(self.declared.graph.name, self.collection.name).load()
        names = {} if table is None or len(table.schemas) < 2 else self._newest(table)[1]
        return all(then == now for then, now in names.items())

    def _newest(self, table: Metadata) -> tuple[Outline | None, Mapping[str, str]]:
        """The plan that made the newest layer of the collection's log, and what its columns are called there today."""
        newest = next(entries_of(table), None)
        log = self.project.log(self.declared.graph.name, self.collection.name)
        made_by = None if newest is None else log.sidecar(newest).fingerprint.outline
        if newest is None or made_by is None:
            return None, {}
        return made_by, names_today(table, newest.snapshot, made_by.columns)

    def _heads(self) -> dict[str, Head]:
        """The inputs that have a log, as it is now."""
        heads = {name: self.project.log(self.declared.graph.name, name).head() for name in self.collection.inputs}
        return {name: head for name, head in heads.items() if head is not None}

    def planned(self, inputs: Mapping[str, Head], agreed: Agreement | None = None) -> StagePlan:
        """The stage's plan over its inputs at this epoch; ``agreed`` is what the control table says, if that is known."""
        graph, collection = self.declared.graph, self.collection
        frames = {name: self.input(name, head) for name, head in inputs.items()}
        made = made_of(self.session, self.declared, collection, frames, self.epoch.upper)
        names = known_names(self.project, graph, collection, agreed=agreed)
        return plan_of(self.session, collection, frames, made, graph, names, self.fitted)

    def input(self, name: str, head: Head) -> DataFrame:
        """The state of an input at this epoch, however far its log has gone since."""
        assert head.snapshot is not None
        graph = self.declared.graph
        if self.epoch.upper < head.description.since:
            raise compacted(graph, name, head.description.since)
        found = self.project.log(graph.name, name).load()
        assert found is not None, "it has a snapshot"
        columns = stored_in(self.session, found)
        rows = state(self.session, table_name(graph.name, name), head.snapshot, self.epoch.upper, columns.names)
        return known(rows, columns)

    def lineage(self, name: str, head: Head) -> Input:
        """An input as this epoch reads it."""
        assert head.snapshot is not None
        entries = self.project.log(self.declared.graph.name, name).entries(self.epoch.lower)
        rows = sum(entry.rows for entry in entries if entry.description.upper <= self.epoch.upper)
        return Input(head.description.generation, self.epoch.upper, head.snapshot, rows, "all")

    def _malformed(self, given: SourceEpoch) -> Malformed | None:
        """The malformed records of the files that were read, unless there are too many of them."""
        found = given.malformed()
        limit = self.project.settings.quarantine_fraction
        if found is not None and found.count > limit * found.of:
            first = found.records.limit(1).collect()[0]
            example = f"{first['reason']} (in {first['file']})"
            raise FirnlineError(
                "TOO_MANY_MALFORMED", f"{found.count} of {found.of} records are malformed, more than {limit:.2%}; one: {example}"
            )
        return found

    def _quarantine(self, malformed: Malformed, began: float) -> None:
        """Keep the malformed records of an epoch that is about to be published."""
        destination = self.destination(self.collection.name + QUARANTINE, malformed.records.schema, Placement())
        head = destination.head.description
        if head.upper >= self.epoch.upper:
            return
        delta = _weighted(malformed, destination.names)
        staged = destination.stage(delta, self.epoch, head.generation, f"{self.attempt}q")
        if isinstance(staged, Staged):
            seconds = time.monotonic() - began
            destination.publish(staged, self.epoch, head.generation, self.fingerprint, {}, seconds)

    def destination(self, name: str, columns: StructType, placement: Placement, renamed: Renamed = ()) -> Destination:
        """The log of a collection of this pipeline, ready for the epoch."""
        log, start = self.project.log(self.declared.graph.name, name), self.declared.graph.schedule.start
        found = Destination.of(self.session, log, columns, placement, start, self.collection.where, renamed)
        return replace(found, find=partial(held, self.project, log) if self.project.concordance is not None else None)

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the collection's code."""
        return Fingerprint(self.declared.graph.fingerprints[self.collection.name])


def _weighted(malformed: Malformed, names: list[str]) -> Relation:
    """Malformed records as a delta."""
    return consolidated(relation_of(malformed.records.selectExpr("*", f"1L AS {DIFF}")), names)
