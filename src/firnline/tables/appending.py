"""A snapshot whose new files may be of several partition specs: PyIceberg takes all for the table's present one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles, _SnapshotProducer

if TYPE_CHECKING:
    from pyiceberg.table import Transaction


class OfSeveralSpecs(_SnapshotProducer[Any]):
    """A producer that writes a manifest for each spec; it deletes nothing by entry."""

    def _manifests(self) -> list[ManifestFile]:
        present = self._transaction.table_metadata.default_spec_id
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in self._added_data_files:
            by_spec[getattr(file, "_spec_id", present)].append(file)  # of one that was just written PyIceberg does not say it
        added = [self._added(number, files) for number, files in sorted(by_spec.items())]
        return [*added, *self._existing_manifests()]

    def _added(self, spec: int, files: Iterable[DataFile]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec)) as writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()


class _Appending(OfSeveralSpecs, _FastAppendFiles):
    pass


def append(
    transaction: Transaction, files: Iterable[DataFile], summary: Mapping[str, str], branch: str | None = MAIN_BRANCH
) -> None:
    """Append data files as a snapshot that carries a summary; beside all branches if there is none."""
    io = transaction._table.io
    with _Appending(Operation.APPEND, transaction, io, snapshot_properties=dict(summary), branch=branch) as producer:
        for file in files:
            producer.append_data_file(file)
