"""A table as its metadata file says: what logs and control tables decide by.

Read as plain JSON. PyIceberg's own model of it takes a second to import, which ``status`` and ``plan`` do not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot, on the main line or staged beside it."""

    id: int
    parent: int | None
    timestamp_ms: int
    summary: Mapping[str, str]
    manifest_list: str = ""
    """The path of the file that names its manifests."""


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
            {field["name"]: field["id"] for field in schema["fields"]},
            {field["name"]: _type(field["type"]) for field in schema["fields"]},
            {snapshot.id: snapshot for snapshot in snapshots},
            None if current == -1 else current,
        )

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot of the main line."""
        return None if self.current is None else self.snapshots[self.current]

    def main_line(self) -> Iterator[Snapshot]:
        """The snapshots of the main line, newest first, as far back as they are kept."""
        snapshot = self.head
        while snapshot is not None:
            yield snapshot
            snapshot = None if snapshot.parent is None else self.snapshots.get(snapshot.parent)


def _type(described: str | Mapping[str, Any]) -> str:
    return described if isinstance(described, str) else json.dumps(described)
