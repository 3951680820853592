"""Copies of a log's files at other places, and what is written down about them.

A *batch* is what one snapshot brought: its data files, manifests, manifest list and sidecar. A record says that all files of a
batch are at a place, as they were read back from there. Paths are those below the warehouse, which are the same at every place.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """A file as it was when it was copied."""

    path: str
    """Below the warehouse."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that a place holds."""

    place: str
    """The place's URL."""
    file: Kept


@dataclass(frozen=True, slots=True)
class Record:
    """All files of a batch at one place."""

    place: str
    collection: str
    attempt: str
    """Of the snapshot: the record's name."""
    generation: int
    lower: int
    upper: int
    """The epochs that the batch holds rows of."""
    at: str
    """When it was copied."""
    files: tuple[Kept, ...]

    def without(self, paths: Collection[str]) -> Record:
        """The record when some of its files are removed."""
        return replace(self, files=tuple(file for file in self.files if file.path not in paths))

    def as_json(self) -> bytes:
        """The file's content.

        >>> record = Record("file:///mnt/b", "visits", "a1", 0, 3, 4, "2026-01-01", (Kept("web/visits/x", 7, "ab"),))
        >>> Record.of_json(record.as_json()) == record
        True
        """
        return json.dumps({"version": VERSION, **asdict(self)}).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Record:
        """Read ``as_json`` back."""
        data: dict[str, Any] = json.loads(content)
        del data["version"]
        return cls(**{**data, "files": tuple(Kept(**each) for each in data["files"])})
