"""What storage holds of a log, as facts: one listing of its folder, its small files, and the footers of its data files.

The metadata is read before the folder is listed, so that a log which grows meanwhile looks whole. Nothing that cannot be read
ends it: that is a fact, too. Of all manifest lists only the newest readable one is parsed, since it names the manifests of all
snapshots before it, and the newest readable ones before exchanges, whose manifests are only seen to be whole; as are all others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.model.names import EPOCH, PART
from firnline.plan.verification import Account, DataFile, File, Holding, Manifest, Revision
from firnline.tables.avro import check_whole
from firnline.tables.catalog import Catalog
from firnline.tables.control import TABLE as CONTROL
from firnline.tables.layers import description_of, is_merge, is_repair, newest_exchange, newest_rescale, subsumed, taken_out
from firnline.tables.log import START, entry_of
from firnline.tables.metadata import SIDECAR, Metadata, Snapshot
from firnline.tables.sidecar import Repair, Sidecar
from firnline.tables.storage import located

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile as Listed
    from pyiceberg.manifest import ManifestFile

_AT_ONCE = 8
_TAIL = 1 << 16
"""Bytes of a data file's end that are read: nearly every footer fits."""
_MAGIC = b"PAR1"


def inventory(catalog: Catalog, pipeline: str, name: str) -> Holding:
    """What storage holds of a table that the catalog knows."""
    version = catalog.version(pipeline, name)
    if version is None:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{pipeline}.{name} has no log yet")
    file = File(version, None)
    try:
        table = catalog.at(pipeline, name, version)
        published = [*table.main_line()][::-1]
        file = File(table.location, None)
        storage = _Storage.of(table.location, table.shares)
    except FileNotFoundError:
        return Holding(pipeline, name, file, name == CONTROL)
    except Exception as error:
        return Holding(pipeline, name, replace(file, size=0, fault=_told(error)), name == CONTROL)
    return _Inventory(table, published, storage).taken()


@dataclass(frozen=True)
class _Storage:
    """The files below a table's folder, and those whose files it shares, by path as the filesystem writes it."""

    filesystem: Any
    sizes: Mapping[str, int]
    own: str
    """The table's folder."""
    named: set[str] = field(default_factory=set)
    """Those that somebody names."""

    @classmethod
    def of(cls, folder: str, shared: Sequence[str]) -> _Storage:
        filesystem, inner = located(folder)
        folders = (inner, *map(filesystem._strip_protocol, shared))
        found = {path: info["size"] for each in folders for path, info in filesystem.find(each, detail=True).items()}
        # Names that begin with a dot are checksums, which Spark puts beside its files.
        return cls(filesystem, {path: size for path, size in found.items() if not _name(path).startswith(".")}, inner)

    def file(self, path: str, expected: int | None = None) -> File:
        """A file as the listing shows it."""
        inner = self.filesystem._strip_protocol(path)
        self.named.add(inner)
        return File(path, self.sizes.get(inner), expected)

    def content(self, file: File, tail: int | None = None) -> bytes:
        """All of a file that is there, or its last bytes."""
        start = None if tail is None or file.size is None else max(0, file.size - tail)
        content: bytes = self.filesystem.cat_file(self.filesystem._strip_protocol(file.path), start=start)
        return content

    def unnamed(self) -> list[str]:
        """What nobody names; older metadata files are nobody's loss, and what is noted about copies is no part of the log."""
        unnamed = [path for path in self.sizes.keys() - self.named if path.startswith(f"{self.own}/")]
        return [path for path in unnamed if not path.endswith(".metadata.json") and "/firnline/replicas/" not in path]


@dataclass(frozen=True)
class _Inventory:
    """One table while it is looked through."""

    table: Metadata
    published: Sequence[Snapshot]
    """Its main line, the oldest first."""
    storage: _Storage

    def taken(self) -> Holding:
        table, published, storage = self.table, self.published, self.storage
        metadata = storage.file(table.version)
        staged = [table.snapshots[number] for number in table.snapshots.keys() - {each.id for each in published}]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            lists = list(pool.map(self._list, published))
            known = self._parse_newest(lists)
            revisions = [*pool.map(self._published, published, lists, known), *pool.map(self._staged, staged)]
            revisions = self._with_lost(revisions, {each.manifest_path for several in known for each in several or ()})
        unnamed = storage.unnamed()
        found = storage.named & storage.sizes.keys()
        # What a merge stands for may not be kept any more; the layers begin where the log does all the same.
        is_whole = bool(published) and (published[0].parent is None or any(map(is_merge, published)))
        return Holding(
            table.pipeline,
            table.name,
            metadata,
            table.name == CONTROL,
            int(table.properties[START]) if is_whole and START in table.properties else None,
            tuple(revisions),
            len(found),
            sum(storage.sizes[path] for path in found),
            len(unnamed),
            sum(storage.sizes[path] for path in unnamed),
        )

    def _parse_newest(self, lists: list[File]) -> list[list[ManifestFile] | None]:
        """What each snapshot brought by the newest list that can be read; nothing is known of those after it.

        Lists before the newest exchange name files that are not the log's any more. Manifests of snapshots that are not kept any
        more are given to the oldest that is.
        """
        exchanged = newest_exchange(self.table)
        first = 0 if exchanged is None else next(at for at, each in enumerate(self.published) if each.id == exchanged.id)
        position: dict[int | None, int] = {snapshot.id: at for at, snapshot in enumerate(self.published)}
        known: list[list[ManifestFile] | None] = [None] * len(lists)
        for at in reversed(range(first, len(lists))):
            lists[at], found = self._parsed_list(lists[at])
            if found is not None:
                known[: at + 1] = [[] for _ in range(at + 1)]
                for manifest in found:
                    several = known[position.get(manifest.added_snapshot_id, 0)]
                    if several is not None:
                        several.append(manifest)
                break
        return known

    def _with_lost(self, revisions: list[Revision], read: Collection[str]) -> list[Revision]:
        """With the manifests that are lost and that only lists before the newest exchange name, which nobody has read yet.

        Between two exchanges a list names all that those before it name, so that the newest one tells.
        """
        found, position = list(revisions), {snapshot.id: at for at, snapshot in enumerate(self.published)}
        exchanges = [at for at, snapshot in enumerate(self.published) if is_repair(snapshot) or is_merge(snapshot)]
        for first, end in pairwise(dict.fromkeys([0, *exchanges])):
            sound = [at for at in range(first, end) if found[at].manifest_list.is_sound()]
            _, listed = self._parsed_list(found[sound[-1]].manifest_list) if sound else (None, None)
            for manifest in (each for each in listed or () if each.manifest_path not in read):
                file = self._whole(self.storage.file(manifest.manifest_path, manifest.manifest_length))
                if not file.is_sound():
                    for at in range(max(first, position.get(manifest.added_snapshot_id or 0, 0)), end):
                        found[at] = replace(found[at], lost=(*found[at].lost, file))
        return found

    def _published(self, snapshot: Snapshot, listed: File, manifests: Sequence[ManifestFile] | None) -> Revision:
        read = None if manifests is None else tuple(self._manifest(each) for each in manifests)
        is_subsumed = snapshot.id in self._subsumed
        revision = Revision(
            snapshot.id, listed, read, at=snapshot.timestamp_ms, is_subsumed=is_subsumed, is_merge=is_merge(snapshot)
        )
        if is_repair(snapshot):
            return self._repaired(snapshot, revision)
        try:
            entry = entry_of(self.table, snapshot, None if is_subsumed else self._rescale)
        except (FirnlineError, KeyError, ValueError):
            return revision
        said = Account(
            entry.attempt, entry.lower, entry.description.upper, entry.fingerprint, entry.rows, entry.weight, entry.seconds
        )
        revision = replace(revision, description=description_of(self.table, snapshot), summary=said)
        self.storage.file(snapshot.summary[SIDECAR])
        file = self.storage.file(entry.sidecar)
        if file.size is None:
            return replace(revision, sidecar=file)
        try:
            sidecar = Sidecar.of_json(self.storage.content(file))
        except Exception as error:
            return replace(revision, sidecar=replace(file, fault=_told(error)))
        total = sidecar.total()
        told = Account(sidecar.attempt, sidecar.lower, sidecar.upper, sidecar.fingerprint, total.rows, total.weight)
        return replace(revision, sidecar=file, told=told, digests=sidecar.digests, files=sidecar.files, out=sidecar.out)

    def _repaired(self, snapshot: Snapshot, revision: Revision) -> Revision:
        """A repair; without its note only its history is lost, and that is said of no use but for manifests."""
        revision = replace(revision, is_repair=True)
        if self.table.name == CONTROL:
            return revision
        revision = replace(revision, description=Description.of_properties(snapshot.summary))
        file = self.storage.file(snapshot.summary[SIDECAR])
        try:
            note = Repair.of_json(self.storage.content(file))
        except Exception:
            return revision
        return replace(revision, sidecar=file, files=note.files, out=note.out, gap=note.gap)

    def _staged(self, snapshot: Snapshot) -> Revision:
        file, found = self._parsed_list(self._list(snapshot))
        own = None if found is None else (each for each in found if each.added_snapshot_id == snapshot.id)
        return Revision(snapshot.id, file, None if own is None else tuple(map(self._manifest, own)), is_staged=True)

    def _list(self, snapshot: Snapshot) -> File:
        return self._whole(self.storage.file(snapshot.manifest_list))

    def _whole(self, file: File) -> File:
        """An Avro file, its content looked through unless its size is wrong already."""
        if file.size is None or file.expected not in (None, file.size):
            return file
        try:
            check_whole(self.storage.content(file))
        except EOFError:
            return replace(file, is_cut=True)
        except Exception as error:
            return replace(file, fault=_told(error))
        return file

    def _parsed_list(self, file: File) -> tuple[File, list[ManifestFile] | None]:
        from pyiceberg.manifest import read_manifest_list

        if not file.is_sound():
            return file, None
        try:
            return file, list(read_manifest_list(self._io.new_input(file.path)))
        except Exception as error:
            return replace(file, fault=_told(error)), None

    def _manifest(self, listed: ManifestFile) -> Manifest:
        file = self._whole(self.storage.file(listed.manifest_path, listed.manifest_length))
        if not file.is_sound():
            return Manifest(file)
        try:
            entries = listed.fetch_manifest_entry(self._io)
            data = tuple(self._data_file(entry.data_file) for entry in entries)
        except Exception as error:
            return Manifest(replace(file, fault=_told(error)))
        live = (listed.added_files_count or 0) + (listed.existing_files_count or 0)
        if len(data) != live:
            file = replace(file, fault=f"it names {len(data)} data files, its list says {live}")
        return Manifest(file, data)

    def _data_file(self, listed: Listed) -> DataFile:
        columns = self.table.columns
        bounds = [(each or {}).get(columns.get(EPOCH, -1)) for each in (listed.lower_bounds, listed.upper_bounds)]
        first, last = (None if each is None else int.from_bytes(each, "little", signed=True) for each in bounds)
        part = listed.partition[0] if PART in columns else None
        file = self.storage.file(listed.file_path, listed.file_size_in_bytes)
        rows = None
        if file.is_sound():
            try:
                rows = self._footer_rows(file)
            except Exception as error:
                file = replace(file, fault=_told(error))
        return DataFile(file, first, last, part, listed.record_count, rows)

    def _footer_rows(self, file: File) -> int:
        """The number of rows by the footer of a Parquet file; nothing but its tail is read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tail = self.storage.content(file, _TAIL)
        if not tail.endswith(_MAGIC):
            raise ValueError("it does not end as a Parquet file")
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if length > len(tail):
            tail = self.storage.content(file, length)
        rows: int = pq.read_metadata(pa.BufferReader(tail)).num_rows
        return rows

    @cached_property
    def _subsumed(self) -> set[int]:
        try:
            return subsumed(self.table) | taken_out(self.table).keys()
        except (FirnlineError, KeyError, ValueError):
            return set()  # a snapshot that is not ours is told of where it stands

    @cached_property
    def _rescale(self) -> Snapshot | None:
        try:
            return newest_rescale(self.table)
        except (FirnlineError, KeyError, ValueError):
            return None

    @cached_property
    def _io(self) -> FileIO:
        from pyiceberg.io.fsspec import FsspecFileIO

        return FsspecFileIO({})


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _told(error: Exception) -> str:
    """What keeps a file from being read."""
    lines = str(error).strip().splitlines()
    return f"the file cannot be read: {type(error).__name__}" + (f": {lines[0]}" if lines else "")
