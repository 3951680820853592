"""Trash: what was dropped from a log, written down before it is dropped, until its bytes are gone.

A record names snapshots by their manifest lists and sidecars, through which everything that they named is found. A file of the
trash is removed only if no snapshot that any table still has names it, after the grace time; first data files, then the manifests
that name them, then the lists: whoever dies in between leaves a record from which the rest is found. Nothing is found by listing
a folder of files, and nothing is judged by its age alone. A snapshot that is written down and still there was not dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from firnline.errors import FirnlineError
from firnline.model.names import DRAFT
from firnline.model.stored_file import StoredFile
from firnline.tables.layers import KIND, RESCALE
from firnline.tables.metadata import ADOPTED, SIDECAR, Metadata, Snapshot
from firnline.tables.port import Manifest, Tables
from firnline.world import world

FOLDER = "firnline/trash"
COPIED = "firnline/replicas"
"""Where it is written down which copies of a log there are."""
ERASED = "erased"
"""Why the files of a table go that an erasure forgets as a whole: at once."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped snapshot: where all that it named is found."""

    snapshot: int
    manifest_list: str
    sidecar: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """Snapshots that somebody drops in one commit."""

    path: str
    at: datetime
    why: str
    dropped: tuple[Dropped, ...]
    files: tuple[str, ...] = ()
    """Other files that go last: of a table that is forgotten, its versions."""
    folders: tuple[str, ...] = ()
    """Those of tables that are about to be forgotten; nothing goes before they are."""
    adopted: tuple[str, ...] = ()
    """Those of somebody else, whose files these tables have adopted: they stay."""

    def as_json(self) -> bytes:
        """The file's content."""
        document = {"version": _VERSION, "at": self.at.isoformat(), "why": self.why, "dropped": [*map(asdict, self.dropped)]}
        forgotten = {"files": self.files, "folders": self.folders, "adopted": self.adopted}
        return json.dumps({**document, **{name: found for name, found in forgotten.items() if found}}).encode()

    @classmethod
    def of_json(cls, path: str, content: bytes) -> Record:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(content)
        dropped = tuple(Dropped(**each) for each in data["dropped"])
        more = (tuple(data.get(name, ())) for name in ("files", "folders", "adopted"))
        return cls(path, datetime.fromisoformat(data["at"]), data["why"], dropped, *more)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of the trash."""

    path: str
    bytes: int
    """As far as whoever named it told."""


@dataclass
class Trash:
    """The trash of one table."""

    tables: Tables
    _read: dict[str, tuple[StoredFile, ...]] = field(default_factory=dict)
    """What manifests name; they never change."""
    _lists: dict[str, tuple[Manifest, ...]] = field(default_factory=dict)
    """What the lists of kept snapshots name; nor do these."""
    _by_version: dict[str, frozenset[str]] = field(default_factory=dict)
    """What versions of tables name."""

    def put(self, table: Metadata, snapshots: Iterable[int], why: str) -> None:
        """Write down which snapshots are about to be dropped."""
        path = f"{table.location}/{FOLDER}/{world().new_id()}.json"
        dropped = tuple(_dropped(table.snapshots[each]) for each in snapshots)
        self.tables.write(path, Record(path, world().now(), why, dropped).as_json())
        world().reach("trash.written")

    def put_tables(self, table: Metadata, forgotten: Iterable[Metadata], why: str = "dropped") -> Record:
        """Write down which tables are about to be forgotten, with what is in their own trash, in that of another.

        If they are ``ERASED``, with every file in their folders.
        """
        path = f"{table.location}/{FOLDER}/{world().new_id()}.json"
        dropped, files, folders, adopted = list[Dropped](), list[str](), list[str](), list[str]()
        for each in forgotten:
            records = self.records(each)
            dropped += map(_dropped, each.snapshots.values())
            dropped += (of for record in records for of in record.dropped)
            folder = f"{each.location}/metadata"
            versions = (found for found in self.tables.paths(folder) if found.endswith(".metadata.json"))
            copied = self.tables.paths(f"{each.location.rpartition('/')[0]}/{each.name}/{COPIED}")  # by name, wherever the log is
            files += self.tables.paths(each.location) if why == ERASED else (*versions, *(of.path for of in records))
            files += sorted({*copied} - {*files})
            folders.append(each.location)
            adopted += _adopted(each.properties)
        record = Record(path, world().now(), why, tuple(dropped), tuple(files), tuple(folders), tuple(adopted))
        self.tables.write(path, record.as_json())
        world().reach("trash.written")
        return record

    def records(self, table: Metadata) -> list[Record]:
        """What is in the trash, the oldest first."""
        found = []
        for path in self.tables.paths(f"{table.location}/{FOLDER}"):
            if path.endswith(DRAFT):
                continue  # whoever wrote it dropped nothing yet
            try:
                found.append(Record.of_json(path, self.tables.read(path)))
            except FileNotFoundError:
                continue  # somebody else emptied it
        return sorted(found, key=lambda record: (record.at, record.path))

    def named(self, table: Metadata) -> set[str]:
        """Every file that a snapshot of a table names; refused if one of them cannot be read.

        What is staged and lost, nobody can publish: it keeps nothing.
        """
        if table.version not in self._by_version:
            self._by_version[table.version] = frozenset(self._named(table))
        return {*self._by_version[table.version]}

    def _named(self, table: Metadata) -> set[str]:
        found, published = {file_key(table.version)}, {each.id for each in table.main_line()}
        for snapshot in table.snapshots.values():
            try:
                if snapshot.manifest_list not in self._lists:
                    self._lists[snapshot.manifest_list] = self.tables.manifests(snapshot.manifest_list)
                manifests = self._lists[snapshot.manifest_list]
                files = [file for manifest in manifests for file in self._files(table, manifest)]
            except (OSError, ValueError, EOFError) as error:
                if snapshot.id not in published and isinstance(error, FileNotFoundError | ValueError | EOFError):
                    continue
                what = f"{table.pipeline}.{table.name}: what snapshot {snapshot.id} names: {type(error).__name__}: {error}"
                raise FirnlineError("LOG_UNREADABLE", what) from error
            own = (snapshot.manifest_list, snapshot.summary.get(SIDECAR, ""), *self._recut(snapshot))
            below = (*(each.path for each in manifests), *(each.path for each in files))
            found.update(map(file_key, (*own, *below)))
        return found

    def contents(self, table: Metadata, record: Record, named: Container[str]) -> list[Piece]:
        """The files of a record that are not among those that anybody names, in the order in which they may be removed."""
        layers: tuple[dict[str, Piece], ...] = ({}, {}, {})
        for dropped in record.dropped:
            lists = [dropped.manifest_list, *self._noted(dropped.sidecar, "left")]
            for path in lists:
                for manifest in self._manifests(path):
                    if file_key(manifest.path) in named:
                        continue
                    for file in self._listed(table, manifest):
                        if _is_below(file.path, (*_adopted(table.properties), *record.adopted)):
                            continue  # it is somebody else's
                        layers[0][file.path] = Piece(file.path, file.bytes)
                    layers[1][manifest.path] = Piece(manifest.path, manifest.bytes)
                layers[2][path] = Piece(path, 0)
            if dropped.sidecar:
                notes = (*self._noted(dropped.sidecar, "recut"), dropped.sidecar)
                layers[2].update({path: Piece(path, 0) for path in notes})
        layers[2].update({path: Piece(path, 0) for path in record.files})
        return [piece for layer in layers for piece in layer.values() if file_key(piece.path) not in named]

    def is_due(self, record: Record, grace: timedelta) -> bool:
        """Whether a record is old enough."""
        return world().now() - record.at >= grace

    def is_waiting(self, table: Metadata, record: Record) -> bool:
        """Whether a record says what was not done, or not yet: some of its snapshots are still there."""
        return any(each.snapshot in table.snapshots for each in record.dropped)

    def remove(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Remove files, each as it is asked for, with the bytes that went."""
        for piece in pieces:
            size = self.tables.remove(piece.path)
            world().reach("trash.removed")
            yield Piece(piece.path, size)

    def close(self, table: Metadata, record: Record) -> None:
        """Forget a record whose files are gone."""
        if not self.is_waiting(table, record):
            self.tables.remove(record.path)
            world().reach("trash.closed")

    def _recut(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The sidecars that a rescale wrote anew."""
        is_rescale = snapshot.summary.get(KIND) == RESCALE
        return self._noted(snapshot.summary.get(SIDECAR, ""), "recut") if is_rescale else ()

    def _noted(self, sidecar: str, what: str) -> tuple[str, ...]:
        """Other files that a sidecar tells of: lists of staging that it took over, or sidecars that were written anew."""
        try:
            return tuple(json.loads(self.tables.read(sidecar)).get(what, ())) if sidecar else ()
        except (FileNotFoundError, ValueError):
            return ()

    def _manifests(self, manifest_list: str) -> tuple[Manifest, ...]:
        """Those of a list in the trash; of one that is gone or damaged none are known."""
        try:
            return self.tables.manifests(manifest_list)
        except (FileNotFoundError, ValueError, EOFError):
            return ()

    def _listed(self, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
        """The data files of a manifest in the trash; those of one that is gone are gone."""
        try:
            return self._files(table, manifest)
        except (FileNotFoundError, ValueError, EOFError):
            return ()

    def _files(self, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
        if manifest.path not in self._read:
            self._read[manifest.path] = self.tables.listed(table, manifest)
        return self._read[manifest.path]


def file_key(path: str) -> str:
    """A path however it is written: engines disagree about how many slashes follow a scheme, and about its name."""
    return re.sub(r"^[a-z0-9+]+:/*", "/", path)


def is_adopted(properties: Mapping[str, str], path: str) -> bool:
    """Whether a file that a log names is somebody else's."""
    return _is_below(path, _adopted(properties))


def _adopted(properties: Mapping[str, str]) -> list[str]:
    return [properties[ADOPTED]] if ADOPTED in properties else []


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(file_key(path).startswith(f"{file_key(folder)}/") for folder in folders)


def _dropped(snapshot: Snapshot) -> Dropped:
    return Dropped(snapshot.id, snapshot.manifest_list, snapshot.summary.get(SIDECAR, ""))
