"""One attempt at one epoch of one collection, on Spark: evaluate, stage, audit, publish."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from firnline.engine import staging
from firnline.engine.frames import frame_of, relation_of, state, table_name, weighted_state
from firnline.engine.reading import SourceEpoch
from firnline.engine.staging import Column
from firnline.errors import FirnlineError
from firnline.incremental.full import difference
from firnline.incremental.relation import consolidated
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.names import BOOKKEEPING, DIFF, QUARANTINE
from firnline.runtime.evaluation import check_schema, checked, in_order, told
from firnline.runtime.project import Declared, Project
from firnline.tables.log import Head, Log, field_ids, head_of
from firnline.tables.sidecar import Input, Sidecar


@dataclass(frozen=True)
class Published:
    """What an attempt came to."""

    verdict: Verdict
    digest: Digest
    malformed: int


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
        given = SourceEpoch.of(self.session, self.project.settings, self.declared.graph.schedule, self.epoch)
        with told(self.collection, given.label, self.project.settings.root):
            try:
                frame = checked(self._called(given, inputs), self.collection)
                malformed = self._quarantine(given, began)
                names = [name for name in frame.columns if name != DIFF]
                log = self._log(self.collection.name, StructType([frame.schema[name] for name in names]), self.collection.keys)
                lineage = {
                    name: Input(head.description.generation, self.epoch.upper, head.snapshot) for name, head in inputs.items()
                }
                verdict, digest = log.write(self._delta(frame, log), generation, lineage, began, self.attempt)
                return Published(verdict, digest, malformed)
            finally:
                given.close()

    def _called(self, given: SourceEpoch, inputs: Mapping[str, Head]) -> object:
        function = self.declared.functions[self.collection.name]
        if self.collection.kind == "source":
            return function(given)
        return function(**{name: self._input(name, head) for name, head in inputs.items()})

    def _input(self, name: str, head: Head) -> DataFrame:
        """The state of an input at this epoch, however far its log has gone since."""
        assert head.snapshot is not None
        table = table_name(self.declared.graph.name, name)
        columns = [column for column in self.session.table(table).columns if column not in BOOKKEEPING]
        return state(self.session, table, head.snapshot, self.epoch.upper, columns)

    def _delta(self, frame: DataFrame, log: _Writer) -> Relation:
        """The weighted rows by which the epoch changes the collection."""
        names = [column.name for column in log.columns]
        if self.collection.kind == "source":
            return consolidated(relation_of(in_order(frame, [*names, DIFF])), names)
        before = None
        if log.head.snapshot is not None:
            before = weighted_state(self.session, log.table, log.head.snapshot, self.epoch.lower, names)
        return difference(relation_of(in_order(frame, names)), relation_of(before) if before else None, names)

    def _quarantine(self, given: SourceEpoch, began: float) -> int:
        """Keep the malformed records, or fail if there are too many of them; their number."""
        found = given.malformed()
        if found is None:
            return 0
        records, bad, total = found
        limit = self.project.settings.quarantine_fraction
        if bad > limit * total:
            first = records.limit(1).collect()[0]
            example = f"in {first['file']}: {first['reason']}"
            raise FirnlineError(
                "TOO_MANY_MALFORMED", f"{bad} of {total} records are malformed, more than {limit:.2%}; one, {example}"
            )
        log = self._log(self.collection.name + QUARANTINE, records.schema, ())
        if log.head.description.upper < self.epoch.upper:
            names = [column.name for column in log.columns]
            rows = records.selectExpr("*", f"1L AS {DIFF}")
            log.write(consolidated(relation_of(rows), names), log.head.description.generation, {}, began, f"{self.attempt}q")
        return bad

    def _log(self, name: str, schema: StructType, keys: Sequence[str]) -> _Writer:
        log = self.project.log(self.declared.graph.name, name)
        start = self.declared.graph.schedule.start
        table = log.load() or log.create(to_arrow_schema(schema), tuple(keys), start)
        return _Writer(
            self, log, table_name(self.declared.graph.name, name), head_of(table), field_ids(table), schema, tuple(keys)
        )


@dataclass(frozen=True)
class _Writer:
    """A log that this attempt writes to."""

    run: StageRun
    log: Log
    table: str
    head: Head
    fields: Mapping[str, int]
    found: StructType
    keys: tuple[str, ...]

    @cached_property
    def columns(self) -> list[Column]:
        """The collection's columns in the table's order, once they are known to be those that the function returned."""
        stored = StructType(
            [field for field in self.run.session.table(self.table).schema.fields if field.name not in BOOKKEEPING]
        )
        check_schema(self.found, stored, self.run.collection)
        return staging.columns_of(stored, self.fields)

    def write(
        self, delta: Relation, generation: int, inputs: Mapping[str, Input], began: float, attempt: str
    ) -> tuple[Verdict, Digest]:
        """Stage the delta, audit what was staged, and publish it from where the log ends up to the epoch's end."""
        run, epoch, session = self.run, self.run.epoch, self.run.session
        collection = run.collection
        placement = collection.partition_by if self.keys else ()
        parts = collection.parts if self.keys else 1
        rows = staging.placed(frame_of(session, delta), self.columns, placement, parts, epoch.lower)
        staging.stage(session, rows, self.table, attempt)
        staged = self.log.staged(attempt).snapshot_id
        lower = self.head.description.upper
        try:
            digests = staging.digests(session, self.table, staged, epoch.lower, self.columns)
            if self.keys and digests:
                names = [column.name for column in self.columns]
                staging.check_keys(session, self.table, staged, epoch.lower, self.keys, names)
        except BaseException as error:
            self.log.discard(staged)
            head = self.log.head()
            # Somebody else may have published the epoch before this attempt staged it: then what was audited is not what counts.
            if head and isinstance(error, FirnlineError):
                verdict = head.description.judge(generation, lower, epoch.upper)
                if verdict is not Verdict.FREE:
                    return verdict, Digest()
            raise
        fingerprint = run.declared.graph.fingerprints[collection.name]
        seconds = time.monotonic() - began
        sidecar = Sidecar(self.log.collection, lower, epoch.upper, attempt, fingerprint, inputs, digests, seconds)
        return self.log.publish(generation, sidecar, staged), sidecar.total()
