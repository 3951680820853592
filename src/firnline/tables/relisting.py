"""Manifest lists that are lost, or that name manifests which are, written anew in their place; no snapshot is added.

What a snapshot named follows from its neighbours: what the one before it named, less what it took out, and what it brought; or
what the one after it names of what was there, and what that took out. The totals of its summary tell whether that is all of it.
If it is not, since neighbours were dropped, the list names what is known, as far as nobody reads the log as of the snapshot any
more: then it only keeps files from being removed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)

from firnline.errors import FirnlineError
from firnline.model.stored_file import StoredFile
from firnline.tables.exchanging import named_again
from firnline.tables.layers import description_of, is_repair, newest_exchange
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.storage import answering
from firnline.tables.trash import file_key, is_adopted

if TYPE_CHECKING:
    from pyiceberg.avro.codecs import AvroCompressionCodec
    from pyiceberg.table.metadata import TableMetadata

    from firnline.tables.catalog import Catalog

_CODEC: AvroCompressionCodec = "deflate"
Named = dict[str, ManifestEntry]
"""Data files by path."""


def rebuild_lists(catalog: Catalog, pipeline: str, name: str, lost: Collection[int]) -> None:
    """Write the lists of some snapshots of a table anew, and of all others that cannot be read.

    Raises:
        FirnlineError: ``NOT_REPAIRABLE`` if somebody may read the log as of a snapshot, and not all that it named is known.
    """
    table = catalog.table(pipeline, name)
    assert table is not None, "it was looked at"
    line = [*table.main_line()][::-1]
    with answering(catalog.warehouse):  # what does not answer is not lost
        unreadable = {each.id for each in line if each.id in lost or not _is_readable(catalog, table, each)}
        relisting = _Relisting(catalog, table, catalog.iceberg(pipeline, name).metadata, unreadable)
        refused = [error for each in line if each.id in unreadable and (error := relisting.rebuilt(each)) is not None]
    if refused:
        raise refused[0]


def _is_readable(catalog: Catalog, table: Metadata, snapshot: Snapshot) -> bool:
    """Whether a list, and every manifest that it names, can be read."""
    try:
        for manifest in catalog.manifests(snapshot.manifest_list):
            catalog.listed(table, manifest)
    except (FileNotFoundError, ValueError, EOFError):
        return False
    return True


@dataclass(frozen=True)
class _Brought:
    """What a snapshot did to the files that the one before it named."""

    files: tuple[StoredFile, ...] = ()
    out: frozenset[str] = frozenset()


@dataclass
class _Relisting:
    catalog: Catalog
    table: Metadata
    iceberg: TableMetadata
    lost: set[int]
    """The snapshots whose lists are still to be written."""
    io: FsspecFileIO = field(default_factory=lambda: FsspecFileIO({}))

    def rebuilt(self, snapshot: Snapshot) -> FirnlineError | None:
        """Write the list of a snapshot; why it cannot be."""
        before, after = self._neighbours(snapshot)
        known = [*self._listed(before), *self._listed(after)]
        several = [self._forth(snapshot, before), self._back(snapshot, after)]
        named = next((each for each in several if self._is_all(snapshot, each)), None)
        if named is None and self._is_read(snapshot):
            what = f"{self.table.pipeline}.{self.table.name}: not all that snapshot {snapshot.id} named is known"
            return FirnlineError("NOT_REPAIRABLE", f"{what}, and its manifest list {snapshot.manifest_list} is lost")
        self._write(snapshot, {**several[0], **several[1]} if named is None else named, known)
        self.lost.discard(snapshot.id)
        return None

    def _neighbours(self, snapshot: Snapshot) -> tuple[Snapshot | None, Snapshot | None]:
        """The next snapshots of the main line, older and newer, whose lists can be read."""
        line = [each for each in self.table.main_line() if each.id not in self.lost]
        older = (each for each in line if each.sequence < snapshot.sequence)
        newer = [each for each in line if each.sequence > snapshot.sequence]
        return next(older, None), newer[-1] if newer else None

    def _forth(self, snapshot: Snapshot, before: Snapshot | None) -> Named:
        """What a snapshot named, by the one before it."""
        brought = self._brought(snapshot)
        kept = {path: entry for path, entry in self._named(before).items() if path not in brought.out}
        return {**kept, **self._own(snapshot, brought.files)}

    def _back(self, snapshot: Snapshot, after: Snapshot | None) -> Named:
        """What a snapshot named, by the one after it."""
        named, own = self._named(after), self._own(snapshot, self._brought(snapshot).files)
        kept = {path: entry for path, entry in named.items() if (entry.sequence_number or 0) <= snapshot.sequence}
        out = self._brought(after).out if after is not None else frozenset()
        return {**self._gone(snapshot, out - named.keys() - own.keys()), **kept, **own}

    def _own(self, snapshot: Snapshot, files: Iterable[StoredFile]) -> Named:
        return {file.path: _added(snapshot, named_again(self.io, self.iceberg, file)) for file in files}

    def _gone(self, snapshot: Snapshot, paths: Iterable[str]) -> Named:
        """Files that were taken out afterwards and are still there, by their footers."""
        found: Named = {}
        for path in paths:
            try:
                file = parquet_file_to_data_file(self.io, self.iceberg, path)
            except (OSError, ValueError, KeyError):  # PyArrow's word for a footer that makes no sense is OSError
                continue
            if not is_adopted(self.iceberg.properties, path):
                file.spec_id = self.iceberg.default_spec_id
                found[path] = _existing(snapshot, file)
        return found

    def _brought(self, snapshot: Snapshot) -> _Brought:
        """What a snapshot brought and took out, by what is written down beside it; nothing where that cannot be read."""
        try:
            content = self.catalog.read(snapshot.summary[SIDECAR])
            told = Repair.of_json(content) if is_repair(snapshot) else Sidecar.of_json(content)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return _Brought()
        return _Brought(told.files or (), frozenset(told.out))

    def _is_all(self, snapshot: Snapshot, named: Named) -> bool:
        """Whether files are as many, with as many rows, as the summary of a snapshot says."""
        rows = sum(entry.data_file.record_count for entry in named.values())
        said = (snapshot.summary.get("total-data-files"), snapshot.summary.get("total-records"))
        return said == (str(len(named)), str(rows))

    def _is_read(self, snapshot: Snapshot) -> bool:
        """Whether somebody may read the log as of a snapshot: as of the newest ones, and the last ones of older generations.

        Of a list that is another log's, which a branch began with, that log knows more.
        """
        exchanged = newest_exchange(self.table)
        if exchanged is None or snapshot.sequence >= exchanged.sequence or not self._is_own(snapshot):
            return True
        generation = description_of(self.table, snapshot).generation
        last = next(each for each in self.table.main_line() if description_of(self.table, each).generation == generation)
        return last.id == snapshot.id

    def _is_own(self, snapshot: Snapshot) -> bool:
        return file_key(snapshot.manifest_list).startswith(f"{file_key(self.table.location)}/")

    def _listed(self, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
        return () if snapshot is None else list(read_manifest_list(self.io.new_input(snapshot.manifest_list)))

    def _named(self, snapshot: Snapshot | None) -> Named:
        """The data files that a snapshot names."""
        entries = (entry for manifest in self._listed(snapshot) for entry in manifest.fetch_manifest_entry(self.io))
        return {entry.data_file.file_path: entry for entry in entries}

    def _write(self, snapshot: Snapshot, named: Named, known: Iterable[ManifestFile]) -> None:
        """Write a list: manifests that there are, and one more for what they do not name."""
        rest, manifests = dict(named), list[ManifestFile]()
        for manifest in known:
            paths = {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(self.io)}
            if paths and manifest.sequence_number <= snapshot.sequence and paths <= rest.keys():
                manifests.append(manifest)
                rest = {path: entry for path, entry in rest.items() if path not in paths}
        made = [self._manifest(snapshot, spec, entries) for spec, entries in _by_spec(self.iceberg, rest).items()]
        self.catalog.remove(snapshot.manifest_list)
        output = self.io.new_output(snapshot.manifest_list)
        version, parent = self.iceberg.format_version, snapshot.parent
        with write_manifest_list(version, output, snapshot.id, parent, snapshot.sequence, _CODEC) as writer:
            writer.add_manifests([*made, *manifests])
        present = self.catalog.table(self.table.pipeline, self.table.name)
        if self._is_own(snapshot) and (present is None or snapshot.id not in present.snapshots):  # it was dropped meanwhile
            for path in (snapshot.manifest_list, *(each.manifest_path for each in made)):
                self.catalog.remove(path)

    def _manifest(self, snapshot: Snapshot, spec: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        folder = snapshot.manifest_list.rpartition("/")[0]  # which of a branch's older snapshots is not its own
        output = self.io.new_output(f"{folder}/{uuid4()}-m0.avro")
        of_spec, schema = self.iceberg.specs()[spec], self.iceberg.schema()
        with write_manifest(self.iceberg.format_version, of_spec, schema, output, snapshot.id, _CODEC) as writer:
            for entry in entries:
                writer.add_entry(entry if entry.snapshot_id == snapshot.id else _existing(snapshot, entry.data_file, entry))
        return writer.to_manifest_file()


def _by_spec(table: TableMetadata, named: Mapping[str, ManifestEntry]) -> dict[int, list[ManifestEntry]]:
    found = defaultdict[int, list[ManifestEntry]](list)
    for entry in named.values():
        found[getattr(entry.data_file, "_spec_id", table.default_spec_id)].append(entry)
    return found


def _added(snapshot: Snapshot, file: DataFile) -> ManifestEntry:
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot.id, data_file=file)


def _existing(snapshot: Snapshot, file: DataFile, known: ManifestEntry | None = None) -> ManifestEntry:
    """A file that was there before a snapshot, as far as is known since when."""
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.EXISTING,
        snapshot_id=snapshot.id if known is None else known.snapshot_id,
        sequence_number=snapshot.sequence if known is None else known.sequence_number,
        file_sequence_number=snapshot.sequence if known is None else known.file_sequence_number,
        data_file=file,
    )
