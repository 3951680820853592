"""A collection's log: an Iceberg v2 table of (row, _epoch, _diff, _part), append-only, one publish rule.

Every snapshot on the main line carries the description (generation, since, upper). ``publish`` of [l, u) commits only onto a head
of its generation that ends at l (``model.description``), so each epoch is in exactly one snapshot of its generation. Staged
snapshots hang beside the main line, invisible to readers, until a publish takes their files over. An exchange puts a snapshot
onto the head that names other files: a repair for the same rows, a merge for the same states from its layer's end on, a rewind
(``rewinding``) for the states up to a point. Older snapshots still name the files that went, so nobody reads through them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.description import GENERATION, Description, Verdict
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gap
from firnline.model.names import DIFF, EPOCH, PART
from firnline.model.stored_file import StoredFile
from firnline.plan.looking_up import FPP
from firnline.tables.commit import until_known
from firnline.tables.expiry import METADATA, abandoned, expirable, unset
from firnline.tables.layers import (
    KIND,
    LAYER,
    LOWER,
    MERGE,
    REPAIR,
    RESCALE,
    description_of,
    is_merge,
    is_repair,
    layers,
    line,
    newest_exchange,
    newest_rescale,
    range_of,
)
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.port import Exchange, Tables
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.trash import Trash
from firnline.world import world

if TYPE_CHECKING:
    import pyarrow as pa

START = "firnline.start"
PARTITION_BY = "firnline.partition-by"
"""Of a log: the columns that its rows are cut by."""
PARTS = "firnline.parts"
"""Of a log: how many parts they are cut into."""
ATTEMPT = "firnline.attempt"
WAVE = "firnline.wave"
ROWS = "firnline.rows"
WEIGHT = "firnline.weight"
FINGERPRINT = "firnline.fingerprint"
PLAN = "firnline.plan"
SECONDS = "firnline.seconds"
GAP = "firnline.gap"
"""Of a repair that took rows out and put none in their place: the gap that it opened."""
HAD_GAPS = "firnline.had-gaps"
"""Of a table: that such a repair is not among its snapshots any more."""

_PROPERTIES = {
    "format-version": "2",
    "gc.enabled": "false",
    "write.wap.enabled": "true",
    "write.distribution-mode": "hash",
    "write.parquet.compression-codec": "zstd",  # Iceberg's writer takes gzip, which is several times as slow, if it is not told
    "write.metadata.metrics.column._epoch": "full",
    "write.metadata.metrics.column._part": "full",
    **METADATA,
}
_BLOOM = "write.parquet.bloom-filter"
_ROW_GROUP = "write.parquet.row-group-size-bytes"
_NONE: Mapping[str, str] = MappingProxyType({})
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest state of a log's main line."""

    description: Description
    snapshot: int | None
    fingerprint: Fingerprint | None
    rows: int = 0
    """How many rows its epoch changed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One layer, as the summary of its snapshot tells."""

    snapshot: int
    description: Description
    """Its ``upper`` is where the layer ends, which of a merge is not where the log did; its generation is the log's."""
    lower: int
    rows: int
    weight: int
    fingerprint: Fingerprint
    attempt: str
    sidecar: str
    seconds: float
    published_at: datetime
    through: tuple[int, int]
    """The snapshot to read it through, and where that ends: its own, or that of the newest exchange after it."""


class Log:
    """The log of one collection."""

    def __init__(self, catalog: Tables, pipeline: str, collection: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline
        self.collection = collection

    @property
    def tables(self) -> Tables:
        """Where its table is."""
        return self._catalog

    def load(self) -> Metadata | None:
        """The table as the catalog has it now, or nothing before the first publish."""
        return self._catalog.table(self.pipeline, self.collection)

    def create(self, columns: pa.Schema, keys: tuple[str, ...], start: int, properties: Mapping[str, str]) -> Metadata:
        """Create the table unless it is there; two creators at once agree on one."""
        created = created_with(start, properties)
        table = self._catalog.create(self.pipeline, self.collection, _with_ours(columns), keys, created)
        world().reach("log.created")
        return table

    def recreate(self, columns: pa.Schema, keys: tuple[str, ...], start: int, properties: Mapping[str, str]) -> Metadata:
        """Create the table anew while it has never held an epoch; whoever staged something in the old one finds it gone."""
        table = self._loaded()
        if table.current is not None or not self._catalog.forget(table):
            raise FirnlineError("GENERATION_CHANGED", f"somebody else published {self.pipeline}.{self.collection} first")
        generation = head_of(table).description.generation
        return self.create(columns, keys, start, {**properties, **({GENERATION: str(generation)} if generation else {})})

    def head(self) -> Head | None:
        """The head of the main line."""
        table = self.load()
        return None if table is None else head_of(table)

    def entries(self, after: int | None = None) -> Iterator[Entry]:
        """The layers, the newest range first, down to those that end after ``after``."""
        table = self.load()
        for entry in () if table is None else entries_of(table):
            if after is not None and entry.description.upper <= after:
                return
            yield entry

    def held(self, table: Metadata) -> tuple[StoredFile, ...]:
        """All data files that the head of a loaded table names."""
        return self._catalog.held(table)

    def sidecar(self, entry: Entry) -> Sidecar:
        """What was written down about a published snapshot."""
        try:
            return Sidecar.of_json(self._catalog.read(entry.sidecar))
        except (OSError, ValueError, KeyError, TypeError) as error:
            what = f"{self.pipeline}.{self.collection}: the sidecar {entry.sidecar}: {type(error).__name__}: {error}"
            raise FirnlineError("LOG_UNREADABLE", what) from error

    def had_gaps(self) -> bool:
        """Whether rows were ever left out of it."""
        table = self.load()
        return table is not None and (HAD_GAPS in table.properties or any(GAP in each.summary for each in table.main_line()))

    def stored_bytes(self) -> int | None:
        """The bytes of all data files of the head; None before the first publish."""
        table = self.load()
        total = table.head.summary.get("total-files-size") if table is not None and table.head is not None else None
        return None if total is None else int(total)

    def stage(self, attempt: str, lower: int, rows: Any, kind: str | None = None) -> None:
        """Write an attempt's rows beside the main line, as Spark does where there are many."""
        carried = {ATTEMPT: attempt, LOWER: str(lower), **({} if kind is None else {KIND: kind})}

        def attempt_once() -> None:
            table = self._loaded()
            if not staged_by(table, attempt):
                self._catalog.stage(table, rows, carried)

        until_known(f"the staging of {self.pipeline}.{self.collection}", attempt_once)

    def waves(self, lower: int, of: str) -> dict[int, int]:
        """The waves of one computation of an epoch that are staged, by whomever."""
        found: dict[int, int] = {}
        for snapshot in self._waves(lower):
            name, number, _ = snapshot.summary[WAVE].split(":")
            if name == of:
                found.setdefault(int(number), snapshot.id)
        return found

    def wave_count(self, lower: int) -> int | None:
        """Into how many waves the epoch was cut by whoever staged the newest of them; None if none is staged."""
        newest = max(self._waves(lower), key=lambda snapshot: snapshot.sequence, default=None)
        return None if newest is None else int(newest.summary[WAVE].rpartition(":")[2])

    def _waves(self, lower: int) -> list[Snapshot]:
        return [each for each in self._loaded().snapshots.values() if _is_wave(each, lower)]

    def gather(self, attempt: str, lower: int, waves: Sequence[int]) -> None:
        """Stage the files of several waves as one snapshot; these stay for whoever else is at it."""

        def attempt_once() -> None:
            table = self._loaded()
            if staged_by(table, attempt):
                return
            if not set(waves) <= table.snapshots.keys():
                raise FirnlineError("GENERATION_CHANGED", f"what was staged for {self.pipeline}.{self.collection} is gone")
            self._catalog.gather(table, waves, {ATTEMPT: attempt, LOWER: str(lower)})

        until_known(f"the staging of {self.pipeline}.{self.collection}", attempt_once)

    def staged(self, attempt: str) -> int:
        """The snapshot that an attempt staged."""
        found = staged_by(self._loaded(), attempt)
        if not found:
            raise FirnlineError("GENERATION_CHANGED", f"what was staged for {self.pipeline}.{self.collection} is gone")
        return found[-1]

    def publish(self, generation: int, sidecar: Sidecar, staged: int | None, *, is_one: bool = True) -> Verdict:
        """Make [lower, upper) exist, exactly once, whoever else tries.

        Args:
            generation: The log's, as it was when the attempt began.
            sidecar: What is written down about it.
            staged: The snapshot that holds the rows; None if there are none.
            is_one: Whether that is one epoch; if not, no state inside can be asked for.

        Returns:
            FREE when this attempt published it; any other verdict says why it did not have to or may not. The attempt's own
            staging is gone afterwards in every case.
        """
        is_described = False

        def attempt_once() -> Verdict:
            nonlocal is_described
            table = self._loaded()
            if any(snapshot.summary.get(ATTEMPT) == sidecar.attempt for snapshot in line(table)):
                return Verdict.FREE
            head = head_of(table)
            verdict = head.description.judge(generation, sidecar.lower, sidecar.upper)
            ours = [staged] if staged is not None and staged in table.snapshots else []
            if verdict is Verdict.FREE and staged is not None and not ours:
                return Verdict.MOVED
            if verdict is Verdict.FREE and ours and not is_cut_as(table, sidecar.parts):
                verdict = Verdict.MOVED
            if verdict is not Verdict.FREE:
                if ours:
                    self._drop(table, ours, "lost")
                    world().reach("publish.lost")
                return verdict
            world().reach("publish.judged")
            path = f"{table.location}/firnline/{sidecar.attempt}.json"
            if not is_described:
                files = tuple(file for each in ours for file in self._catalog.data_files(table, each))
                made = replace(sidecar, files=files, left=_lists(table, ours), generation=generation)
                self._catalog.write(path, made.as_json())
                is_described = True
                world().reach("publish.described")
            description = head.description.advanced(sidecar.upper)
            description = description if is_one else description.merged(sidecar.upper)
            self._catalog.commit(table, {**description.as_properties(), **summary_of(sidecar, path)}, ours)
            world().reach("publish.committed")
            return Verdict.FREE

        return until_known(f"{self.pipeline}.{self.collection}", attempt_once)

    def recut(self, rescale: str, sidecar: Sidecar, staged: int | None) -> str:
        """Write down how a layer is cut by a rescale that is about to be committed, and is staged; where."""
        table = self._loaded()
        files = () if staged is None else self._catalog.data_files(table, staged)
        path = _recut_path(f"{table.location}/firnline/{rescale}.json", sidecar.attempt)
        self._catalog.write(path, replace(sidecar, files=files).as_json())
        return path

    def exchange(
        self, generation: int, since: int | None, note: Repair | Sidecar, change: Exchange, upper: int | None = None
    ) -> Verdict:
        """Let the head name other data files for the same rows, exactly once, whoever publishes meanwhile.

        Args:
            generation: The log's, as it was when it was looked at.
            since: The newest exchange then.
            note: What is written down about it: of a repair or a rescale, or the sidecar of a merge.
            change: Which files go and which come.
            upper: Where the log ended then, if it must not have grown since, as for a rescale.

        Returns:
            FREE when it is done; MOVED when somebody else exchanged files meanwhile or what was staged is gone: look again.
            MOVED also if the log has grown and must not have; what is staged stays then.
        """
        is_described = False
        kind = _kind(note)

        def attempt_once() -> Verdict:
            nonlocal is_described
            table = self._loaded()
            newest = newest_exchange(table)
            if any(snapshot.summary.get(ATTEMPT) == note.attempt for snapshot in table.main_line()):
                return Verdict.FREE
            description = head_of(table).description
            ours = [each for each in change.staged if each in table.snapshots]
            is_ours = description.generation == generation and (None if newest is None else newest.id) == since
            if not is_ours or len(ours) < len(change.staged):
                if ours:
                    self._drop(table, ours, "lost")
                    world().reach(f"{kind}.lost")
                return Verdict.MOVED if description.generation == generation else Verdict.FENCED
            if upper not in (None, description.upper):
                return Verdict.MOVED
            world().reach(f"{kind}.judged")
            path = f"{table.location}/firnline/{note.attempt}.json"
            if not is_described:
                files = (*change.named, *change.back, *(file for each in ours for file in self._catalog.data_files(table, each)))
                made = replace(note, generation=generation) if isinstance(note, Sidecar) else note
                self._catalog.write(path, replace(made, files=files, left=_lists(table, ours)).as_json())
                is_described = True
                world().reach(f"{kind}.described")
            if isinstance(note, Sidecar):
                merged = description.merged(note.upper)
                summary = {**merged.as_properties(), **summary_of(note, path), KIND: MERGE, LAYER: str(note.upper)}
            else:
                summary = {**description.as_properties(), **repair_summary(table, note, path)}
            self._catalog.exchange(table, summary, change)
            world().reach(f"{kind}.committed")
            return Verdict.FREE

        return until_known(f"{self.pipeline}.{self.collection}", attempt_once)

    def discard(self, attempt: str) -> None:
        """Forget what an attempt staged, after a failure; leaving it behind would be harmless, only untidy."""
        try:
            table = self.load()
            ours = [] if table is None else staged_by(table, attempt)
            if table is not None and ours:
                self._drop(table, ours, "discarded")
        except Exception as error:
            _logger.info("staging of %s.%s was left behind: %s", self.pipeline, self.collection, error)

    def expire(self, grace: timedelta, voided: Collection[int] = ()) -> int:
        """Drop the snapshots that nothing needs any more; how many. Whoever is still at one finds the epoch taken, as ever.

        Of ``voided`` generations the last ones stay, since somebody has to be told what of them is void.
        """

        def expiring(table: Metadata) -> list[int]:
            return expirable(table, world().now(), grace, voided)

        return self._dropping(expiring, "expired")

    def sweep(self, lower: int) -> int:
        """Drop the waves of a published epoch; how many. Whoever is still at it finds the epoch taken, as ever."""

        def waves(table: Metadata) -> list[int]:
            return [each for each in abandoned(table) if _is_wave(table.snapshots[each], lower)]

        return self._dropping(waves, "swept")

    def _dropping(self, find: Callable[[Metadata], list[int]], why: str) -> int:
        def attempt_once() -> int:
            table = self._loaded()
            found, properties = find(table), unset(table) if why == "expired" else {}
            if found or properties:
                self._drop(table, found, why, properties)
                world().reach("expire.committed")
            return len(found)

        return until_known(f"{self.pipeline}.{self.collection}", attempt_once)

    def _drop(self, table: Metadata, snapshots: Sequence[int], why: str, properties: Mapping[str, str] = _NONE) -> None:
        """Drop snapshots; what they named is in the trash before."""
        if snapshots:
            Trash(self._catalog).put(table, snapshots, why)
        had_gaps = {HAD_GAPS: "true"} if any(GAP in table.snapshots[each].summary for each in snapshots) else {}
        self._catalog.drop(table, snapshots, {**properties, **had_gaps})

    def _loaded(self) -> Metadata:
        table = self.load()
        if table is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{self.pipeline}.{self.collection} has no log yet")
        return table


def created_with(start: int, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a log is created with."""
    return {**_PROPERTIES, START: str(start), **properties}


def _with_ours(columns: pa.Schema) -> pa.Schema:
    """The log's columns: the user's, then ours."""
    import pyarrow as pa

    ours = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64()), pa.field(PART, pa.int32())]
    return pa.schema([*columns, *ours])


def head_of(table: Metadata) -> Head:
    """The head of a loaded table."""
    snapshot = table.head
    if snapshot is None:
        start = int(table.properties[START])
        return Head(Description(int(table.properties.get(GENERATION, 0)), start, start), None, None)
    description = description_of(table, snapshot)
    # A merge of older layers tells what code made those.
    at_end = (each for each in line(table) if not is_merge(each) or range_of(table, each).upper == description.upper)
    published = (each for each in line(table) if not is_merge(each) and not is_repair(each))
    rows = next((int(each.summary[ROWS]) for each in published if ROWS in each.summary), 0)
    return Head(description, snapshot.id, _fingerprint(next(at_end)), rows)


def bloom_filters(columns: Sequence[str]) -> dict[str, str]:
    """The properties of a log by whose columns rows are looked up; none if there are no such columns.

    Row groups are small, since one that holds a wanted id is read; a filter is as large as its row group needs, from a sixteenth
    of the most on.
    """
    if not columns:
        return {}
    each = {f"{_BLOOM}-enabled.column.{name}": "true" for name in columns}
    sizes = {f"{_BLOOM}-fpp.column.{name}": f"{FPP:f}" for name in columns}
    whole = {f"{_BLOOM}-adaptive-enabled": "true", f"{_BLOOM}-max-bytes": str(1 << 18), _ROW_GROUP: str(1 << 20)}
    return {**each, **sizes, **whole}


def staged_by(table: Metadata, attempt: str) -> list[int]:
    """The snapshots that an attempt staged."""
    snapshots = table.snapshots.values()
    return [each.id for each in snapshots if each.summary.get(ATTEMPT) == attempt and SIDECAR not in each.summary]


def _is_wave(snapshot: Snapshot, lower: int) -> bool:
    return WAVE in snapshot.summary and int(snapshot.summary[LOWER]) == lower


def _lists(table: Metadata, snapshots: Sequence[int]) -> tuple[str, ...]:
    """The manifest lists of staged snapshots: nobody names them once others have taken over what these staged."""
    return tuple(table.snapshots[each].manifest_list for each in snapshots)


def _fingerprint(snapshot: Snapshot) -> Fingerprint | None:
    code = snapshot.summary.get(FINGERPRINT)
    return None if code is None else Fingerprint(code, snapshot.summary.get(PLAN))


def summary_of(sidecar: Sidecar, path: str) -> dict[str, str]:
    """What a publish, or a merge, says of itself, beside its description."""
    total = sidecar.total()
    return {
        ATTEMPT: sidecar.attempt,
        LOWER: str(sidecar.lower),
        ROWS: str(total.rows),
        WEIGHT: str(total.weight),
        FINGERPRINT: sidecar.fingerprint.code,
        **({PLAN: sidecar.fingerprint.plan} if sidecar.fingerprint.plan else {}),
        SECONDS: f"{sidecar.seconds:.3f}",
        SIDECAR: path,
    }


def repair_summary(table: Metadata, repair: Repair, path: str) -> dict[str, str]:
    """What the head says of the code that made it goes on to the repair."""
    fingerprint = head_of(table).fingerprint
    code = {} if fingerprint is None else {FINGERPRINT: fingerprint.code}
    plan = {PLAN: fingerprint.plan} if fingerprint is not None and fingerprint.plan else {}
    gap = {GAP: repair.gap} if repair.gap else {}
    return {KIND: _kind(repair), ATTEMPT: repair.attempt, SIDECAR: path, **code, **plan, **gap}


def counting(table: Metadata, gap: Gap) -> set[int]:
    """The snapshots that are kept and count rows of a gap: those of their epochs, from before the rows were left out."""
    opened = max((each.sequence for each in table.main_line() if each.summary.get(GAP) == gap.id), default=None)
    since = (datetime.fromisoformat(gap.since).timestamp() + 1) * 1000  # what no file held is left out by no snapshot
    brought = [(each, range_of(table, each)) for each in table.main_line() if not is_repair(each)]
    return {
        each.id
        for each, of in brought
        if (each.timestamp_ms < since if opened is None else each.sequence < opened)
        and any(of.lower <= span.last and span.first < of.upper for span in gap.spans)
    }


def _kind(note: Repair | Sidecar) -> str:
    """What an exchange is, by what is written down about it."""
    if isinstance(note, Sidecar):
        return MERGE
    return REPAIR if note.parts is None else RESCALE


def cut_by(table: Metadata) -> tuple[str, ...]:
    """The columns that the rows of a log are cut by."""
    return tuple(json.loads(table.properties[PARTITION_BY]))


def cut_into(table: Metadata) -> int:
    """How many parts the rows of a log are cut into."""
    return int(table.properties[PARTS])


def is_cut_as(table: Metadata, parts: int | None) -> bool:
    """Whether rows that were placed into so many parts fit a log: it may have been rescaled since."""
    return parts is None or table.properties.get(PARTS, str(parts)) == str(parts)


def _recut_path(rescale: str, attempt: str) -> str:
    """Where a rescale, given by its own note, wrote down anew what an attempt had brought."""
    return f"{rescale.removesuffix('.json')}/{attempt}.json"


def entries_of(table: Metadata) -> Iterator[Entry]:
    """The layers of a loaded table, the newest range first."""
    exchanged, rescale = newest_exchange(table), newest_rescale(table)
    generation = head_of(table).description.generation
    for snapshot in layers(table):
        entry = entry_of(table, snapshot, rescale)
        entry = replace(entry, description=replace(entry.description, generation=generation))
        if exchanged is not None and snapshot.sequence < exchanged.sequence:
            entry = replace(entry, through=(exchanged.id, description_of(table, exchanged).upper))
        yield entry


def entry_of(table: Metadata, snapshot: Snapshot, rescale: Snapshot | None = None) -> Entry:
    """What the summary of a publish or a merge says; of a layer that a rescale has cut anew, the sidecar is the rescale's."""
    properties = snapshot.summary
    sidecar = properties[SIDECAR]
    if rescale is not None and snapshot.sequence < rescale.sequence:
        sidecar = _recut_path(rescale.summary[SIDECAR], properties[ATTEMPT])
    description, brought = description_of(table, snapshot), range_of(table, snapshot)
    return Entry(
        snapshot=snapshot.id,
        description=replace(description, upper=brought.upper),
        lower=brought.lower,
        rows=int(properties[ROWS]),
        weight=int(properties[WEIGHT]),
        fingerprint=Fingerprint(properties[FINGERPRINT], properties.get(PLAN)),
        attempt=properties[ATTEMPT],
        sidecar=sidecar,
        seconds=float(properties[SECONDS]),
        published_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        through=(snapshot.id, description.upper),
    )
