"""A snapshot that names other data files than the head: Iceberg's operation ``replace``, or ``append`` of a publish.

Manifests of which no file goes are kept as they are. Of the others what stays is written into a new one, with its old snapshot
and sequence numbers. What comes, and what a lost manifest had named, is in a manifest of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.typedef import Record

from firnline.errors import FirnlineError
from firnline.model.names import EPOCH
from firnline.model.stored_file import StoredFile
from firnline.tables.adopting import as_adopted
from firnline.tables.appending import OfSeveralSpecs
from firnline.tables.layers import KIND
from firnline.tables.port import Exchange
from firnline.tables.trash import is_adopted

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata


class _Exchanging(OfSeveralSpecs):
    change: Exchange

    def _deleted_entries(self) -> list[ManifestEntry]:
        return []

    def _validate_concurrency(self) -> None:
        """Nothing came between: the commit is tried once, onto what was looked at."""

    def _build_delete_files_partition_predicate(self) -> None:
        """Files go by name."""

    def _existing_manifests(self) -> list[ManifestFile]:
        kept, missing = [], set(self.change.out)
        for manifest in self._listed():
            if manifest.manifest_path in self.change.manifests:
                continue
            entries = manifest.fetch_manifest_entry(self._io)
            going = {entry.data_file.file_path for entry in entries} & self.change.out
            missing -= going
            kept += [manifest] if not going else self._without(manifest, entries)
        if missing:
            raise FirnlineError("COMMIT_CONTENDED", f"somebody else has exchanged {len(missing)} of the data files already")
        return kept

    def _listed(self) -> list[ManifestFile]:
        number = self._parent_snapshot_id if self.change.instead_of_head is None else self.change.instead_of_head
        snapshot = self._transaction.table_metadata.snapshot_by_id(number) if number else None
        return [] if snapshot is None else snapshot.manifests(self._io)

    def _without(self, manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> list[ManifestFile]:
        """What stays of a manifest, in a new one."""
        staying = []
        for entry in entries:
            if entry.data_file.file_path in self.change.out:
                self._deleted_data_files.add(entry.data_file)
            else:
                staying.append(entry)
        if not staying:
            return []
        with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
            for entry in staying:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.EXISTING,
                        snapshot_id=entry.snapshot_id,
                        sequence_number=entry.sequence_number,
                        file_sequence_number=entry.file_sequence_number,
                        data_file=entry.data_file,
                    )
                )
        return [writer.to_manifest_file()]

    def _summary(self, snapshot_properties: Mapping[str, str] | None = None) -> Summary:
        # PyIceberg adds up totals for an overwrite only.
        counted = super()._summary(dict(snapshot_properties or {}))
        # Spark's reading of what came between two snapshots knows appends only: a publish that brings files back is one.
        is_publish = KIND not in counted.additional_properties
        return Summary(operation=Operation.APPEND if is_publish else Operation.REPLACE, **counted.additional_properties)


def exchanging(transaction: Transaction, summary: Mapping[str, str], change: Exchange, coming: Sequence[DataFile]) -> _Exchanging:
    """The update of a table; nothing is written before it is committed."""
    io = transaction._table.io
    producer = _Exchanging(Operation.OVERWRITE, transaction, io, snapshot_properties=dict(summary))
    producer.change = change
    for file in coming:
        producer.append_data_file(file)
    for stored in (*change.named, *change.back):
        file = named_again(io, transaction.table_metadata, stored)
        producer.append_data_file(file)
        if stored in change.named:
            producer._deleted_data_files.add(file)  # the totals counted it already
    return producer


def named_again(io: FileIO, table: TableMetadata, stored: StoredFile) -> DataFile:
    """A file with the statistics of its footer; of one that is lost itself, or not ours, what the sidecar knows."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    if is_adopted(table.properties, stored.path):  # it may have columns that are nobody's any more
        return as_known(table, stored, stored.path)
    try:
        file = parquet_file_to_data_file(io, table, stored.path)
    except (OSError, ValueError, KeyError):  # PyIceberg does not know columns whose names Spark's files write otherwise
        return as_known(table, stored, stored.path)
    file.spec_id = table.default_spec_id
    return file


def as_known(table: TableMetadata, stored: StoredFile, path: str) -> DataFile:
    """A file, wherever it is now, with the statistics that the sidecar knows."""
    file = _bare(table, stored, path)
    if is_adopted(table.properties, stored.path):
        return as_adopted(table.schema(), file, stored.first)
    file.spec_id = table.default_spec_id
    return file


def _bare(table: TableMetadata, stored: StoredFile, path: str) -> DataFile:
    epoch = table.schema().find_field(EPOCH).field_id
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(stored.part),
        record_count=stored.rows,
        file_size_in_bytes=stored.bytes,
        lower_bounds={epoch: stored.first.to_bytes(8, "little", signed=True)},
        upper_bounds={epoch: stored.last.to_bytes(8, "little", signed=True)},
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
