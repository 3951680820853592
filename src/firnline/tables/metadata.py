"""A table as its metadata file says: what logs and control tables decide by.

Read as plain JSON. PyIceberg's own model of it takes a second to import, which ``status`` and ``plan`` do not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SIDECAR = "firnline.sidecar"
"""Of a snapshot that was published, or exchanged files: where more is written down about it."""

SHARES = "firnline.shares"
"""Of a table: the folders of those whose files it names beside its own."""

ADOPTED = "firnline.adopted"
"""Of a log: the folder of the table that is not ours whose files it names (``adopting``)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot, on the main line or staged beside it."""

    id: int
    parent: int | None
    timestamp_ms: int
    summary: Mapping[str, str]
    manifest_list: str = ""
    """The path of the file that names its manifests."""
    sequence: int = 0
    """Its number among all commits to the table: later ones have greater ones."""
    schema: int | None = None
    """Which of the table's columns it was committed under."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """One version of a table; ``version`` is the path of its file and names it."""

    pipeline: str
    name: str
    version: str
    location: str
    properties: Mapping[str, str]
    columns: Mapping[str, int]
    """Iceberg's ids of the columns, by name."""
    types: Mapping[str, str]
    """Their types, in Iceberg's words."""
    snapshots: Mapping[int, Snapshot]
    current: int | None
    required: frozenset[str] = frozenset()
    """The columns that are never null."""
    schemas: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The columns that it has or had, each time as ``columns``, by a number that grows."""
    older: tuple[str, ...] = ()
    """The versions before this one, as far as it tells."""

    @classmethod
    def of_json(cls, pipeline: str, name: str, version: str, text: bytes) -> Metadata:
        """Read a metadata file."""
        data: dict[str, Any] = json.loads(text)
        (schema,) = (each for each in data["schemas"] if each["schema-id"] == data["current-schema-id"])
        snapshots = (
            Snapshot(
                each["snapshot-id"],
                each.get("parent-snapshot-id"),
                each["timestamp-ms"],
                each.get("summary", {}),
                each.get("manifest-list", ""),
                each.get("sequence-number", 0),
                each.get("schema-id"),
            )
            for each in data.get("snapshots") or ()
        )
        current = data.get("current-snapshot-id")
        return cls(
            pipeline,
            name,
            version,
            data["location"],
            data.get("properties") or {},
            _ids(schema),
            {field["name"]: _type(field["type"]) for field in schema["fields"]},
            {snapshot.id: snapshot for snapshot in snapshots},
            None if current == -1 else current,
            frozenset(field["name"] for field in schema["fields"] if field["required"]),
            {each["schema-id"]: _ids(each) for each in data["schemas"]},
            tuple(each["metadata-file"] for each in data.get("metadata-log") or ()),
        )

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot of the main line."""
        return None if self.current is None else self.snapshots[self.current]

    @property
    def shares(self) -> tuple[str, ...]:
        """The folders of the tables whose files it names beside its own."""
        return tuple(json.loads(self.properties.get(SHARES, "[]")))

    def main_line(self) -> Iterator[Snapshot]:
        """The snapshots of the main line, newest first; where some are not kept any more, those before them that are."""
        snapshot = self.head
        while snapshot is not None:
            yield snapshot
            # PyIceberg lets those that followed a dropped one have no parent at all.
            parent = None if snapshot.parent is None else self.snapshots.get(snapshot.parent)
            snapshot = parent or self._published_before(snapshot)

    def _published_before(self, snapshot: Snapshot) -> Snapshot | None:
        """The newest one that was published before a snapshot; what is only staged names no sidecar."""
        older = [each for each in self.snapshots.values() if each.sequence < snapshot.sequence and SIDECAR in each.summary]
        return max(older, key=lambda each: each.sequence, default=None)


def _ids(schema: Mapping[str, Any]) -> dict[str, int]:
    return {field["name"]: field["id"] for field in schema["fields"]}


def _type(described: str | Mapping[str, Any]) -> str:
    return described if isinstance(described, str) else json.dumps(described)
