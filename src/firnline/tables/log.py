"""A collection's log: an Iceberg v2 table of (row, _epoch, _diff, _part), append-only, one publish rule.

Every snapshot on the main line carries the description (generation, since, upper). ``publish`` of [l, u) commits only onto a head
of its generation that ends at l (``model.description``), so each epoch is in exactly one snapshot of its generation. Staged
snapshots hang beside the main line, invisible to readers, until a publish takes their files over.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot, ancestors_of
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform

from firnline.errors import FirnlineError
from firnline.model.description import Description, Verdict
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import DIFF, EPOCH, PART
from firnline.tables.catalog import Catalog, reachable
from firnline.tables.commit import commit_once, drop_once, until_known
from firnline.tables.sidecar import Sidecar

if TYPE_CHECKING:
    import pyarrow as pa

START = "firnline.start"
ATTEMPT = "firnline.attempt"
LOWER = "firnline.lower"
ROWS = "firnline.rows"
WEIGHT = "firnline.weight"
FINGERPRINT = "firnline.fingerprint"
PLAN = "firnline.plan"
SECONDS = "firnline.seconds"
SIDECAR = "firnline.sidecar"

_PROPERTIES = {
    "format-version": "2",
    "gc.enabled": "false",
    "write.wap.enabled": "true",
    "write.distribution-mode": "hash",
    "write.metadata.metrics.column._epoch": "full",
    "write.metadata.metrics.column._part": "full",
}
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest state of a log's main line."""

    description: Description
    snapshot: int | None
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One published snapshot, as its summary tells."""

    snapshot: int
    description: Description
    lower: int
    rows: int
    weight: int
    fingerprint: Fingerprint
    attempt: str
    sidecar: str
    seconds: float
    published_at: datetime


class Log:
    """The log of one collection."""

    def __init__(self, catalog: Catalog, pipeline: str, collection: str) -> None:
        self._catalog = catalog
        self.pipeline = pipeline
        self.collection = collection

    def load(self) -> Table | None:
        """The table as the catalog has it now, or nothing before the first publish."""
        with reachable():
            try:
                return self._catalog.sql.load_table((self.pipeline, self.collection))
            except NoSuchTableError:
                return None
            except OSError as error:
                raise FirnlineError("LOG_UNREADABLE", f"{self.pipeline}.{self.collection}: {error}") from error

    def create(self, columns: pa.Schema, keys: tuple[str, ...], start: int, properties: Mapping[str, str]) -> Table:
        """Create the table unless it is there; two creators at once agree on one."""
        self._catalog.ensure_namespace(self.pipeline)
        schema = _schema(columns)
        with reachable():
            try:
                return self._catalog.sql.create_table(
                    (self.pipeline, self.collection),
                    schema=schema,
                    partition_spec=PartitionSpec(
                        PartitionField(schema.find_field(PART).field_id, 1000, IdentityTransform(), PART)
                    ),
                    sort_order=SortOrder(
                        *(SortField(schema.find_field(key).field_id, transform=IdentityTransform()) for key in keys)
                    ),
                    properties={**_PROPERTIES, START: str(start), **properties},
                )
            except TableAlreadyExistsError:
                return self._loaded()

    def recreate(self, columns: pa.Schema, keys: tuple[str, ...], start: int, properties: Mapping[str, str]) -> Table:
        """Create the table anew while it has never held an epoch; whoever staged something in the old one finds it gone."""
        table = self._loaded()
        if table.current_snapshot() is not None or not self._catalog.forget(table):
            raise FirnlineError("GENERATION_CHANGED", f"somebody else published {self.pipeline}.{self.collection} first")
        return self.create(columns, keys, start, properties)

    def head(self) -> Head | None:
        """The head of the main line."""
        table = self.load()
        return None if table is None else head_of(table)

    def entries(self, after: int | None = None) -> Iterator[Entry]:
        """The published snapshots of the present generation, newest first, down to those that end after ``after``."""
        table = self.load()
        if table is None:
            return
        for snapshot in _main_line(table):
            entry = _entry(snapshot)
            if after is not None and entry.description.upper <= after:
                return
            yield entry

    def stored_bytes(self) -> int | None:
        """The bytes of all data files of the head; None before the first publish."""
        table = self.load()
        snapshot = table.current_snapshot() if table is not None else None
        total = _property(snapshot, "total-files-size") if snapshot is not None else None
        return None if total is None else int(total)

    def staged(self, attempt: str) -> Snapshot:
        """The snapshot that an attempt staged."""
        for snapshot in self._loaded().snapshots():
            if _property(snapshot, ATTEMPT) == attempt and _property(snapshot, SIDECAR) is None:
                return snapshot
        raise FirnlineError("GENERATION_CHANGED", f"what was staged for {self.pipeline}.{self.collection} is gone")

    def publish(self, generation: int, sidecar: Sidecar, staged: int | None) -> Verdict:
        """Make [lower, upper) exist, exactly once, whoever else tries.

        Returns:
            FREE when this attempt published it; any other verdict says why it did not have to or may not. The attempt's own
            staging is gone afterwards in every case.
        """
        path: str | None = None

        def attempt_once() -> Verdict | None:
            nonlocal path
            table = self._loaded()
            if any(_property(snapshot, ATTEMPT) == sidecar.attempt for snapshot in _main_line(table)):
                return Verdict.FREE
            head = head_of(table)
            verdict = head.description.judge(generation, sidecar.lower, sidecar.upper)
            drop = [staged] if staged is not None and table.snapshot_by_id(staged) is not None else []
            if verdict is Verdict.FREE and staged is not None and not drop:
                return Verdict.MOVED
            try:
                if verdict is not Verdict.FREE:
                    if drop:
                        drop_once(table, drop)
                    return verdict
                if path is None:
                    path = f"{table.location()}/firnline/{sidecar.attempt}.json"
                    sidecar.write(table.io, path)
                files = [] if staged is None else list(_files(table, staged))
                description = head.description.advanced(sidecar.upper)
                commit_once(table, files, drop, {**description.as_properties(), **_summary(sidecar, path)})
                return Verdict.FREE
            except Exception as error:
                _logger.info("commit to %s.%s is uncertain, looking again: %s", self.pipeline, self.collection, error)
                return None

        return until_known(f"{self.pipeline}.{self.collection}", attempt_once)

    def discard(self, staged: int) -> None:
        """Forget a staged snapshot of our own after a failure; leaving it behind would be harmless, only untidy."""
        table = self.load()
        if table is not None and table.snapshot_by_id(staged) is not None:
            try:
                drop_once(table, [staged])
            except Exception as error:
                _logger.info("staging of %s.%s was left behind: %s", self.pipeline, self.collection, error)

    def _loaded(self) -> Table:
        table = self.load()
        if table is None:
            raise FirnlineError("NO_SUCH_COLLECTION", f"{self.pipeline}.{self.collection} has no log yet")
        return table


def head_of(table: Table) -> Head:
    """The head of a loaded table."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        start = int(table.properties[START])
        return Head(Description(0, start, start), None, None)
    return Head(_described(snapshot), snapshot.snapshot_id, _fingerprint(snapshot))


def field_ids(table: Table) -> dict[str, int]:
    """Iceberg's ids of a table's columns, by name."""
    return {field.name: field.field_id for field in table.schema().fields}


def _schema(columns: pa.Schema) -> Schema:
    """The log's schema: the user's columns, then ours; ids given in this order."""
    import pyarrow as pa  # late, as is what imports pandas: ``status`` needs neither
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

    ours = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64()), pa.field(PART, pa.int32())]
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(pa.schema([*columns, *ours])))


def _main_line(table: Table) -> Iterator[Snapshot]:
    """The published snapshots of the head's generation, newest first."""
    current = table.current_snapshot()
    if current is None:
        return
    generation = _described(current).generation
    for snapshot in ancestors_of(current, table.metadata):
        if _described(snapshot).generation != generation:
            return
        yield snapshot


def _described(snapshot: Snapshot) -> Description:
    assert snapshot.summary is not None
    return Description.of_properties(snapshot.summary.additional_properties)


def _property(snapshot: Snapshot, key: str) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(key)


def _fingerprint(snapshot: Snapshot) -> Fingerprint | None:
    code = _property(snapshot, FINGERPRINT)
    return None if code is None else Fingerprint(code, _property(snapshot, PLAN))


def _files(table: Table, snapshot_id: int) -> Iterator[DataFile]:
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file


def _summary(sidecar: Sidecar, path: str) -> dict[str, str]:
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


def _entry(snapshot: Snapshot) -> Entry:
    assert snapshot.summary is not None
    properties = snapshot.summary.additional_properties
    return Entry(
        snapshot=snapshot.snapshot_id,
        description=Description.of_properties(properties),
        lower=int(properties[LOWER]),
        rows=int(properties[ROWS]),
        weight=int(properties[WEIGHT]),
        fingerprint=Fingerprint(properties[FINGERPRINT], properties.get(PLAN)),
        attempt=properties[ATTEMPT],
        sidecar=properties[SIDECAR],
        seconds=float(properties[SECONDS]),
        published_at=datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
    )
