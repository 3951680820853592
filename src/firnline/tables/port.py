"""What logs and control tables need of a catalog and its storage. ``catalog`` is the real one; the simulation has another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from firnline.model.stored_file import StoredFile
from firnline.tables.metadata import Metadata

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Columns:
    """How a table's columns change."""

    made: pa.Schema
    """Those that are added, widened, or as they were, as they are then called."""
    renamed: tuple[tuple[str, str], ...] = ()
    optional: tuple[str, ...] = ()
    """Those that may be null from then on, as they are called now."""
    gone: tuple[str, ...] = ()
    """Those that are dropped; never of a log."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Data files for others, in one commit that changes no row.

    Args:
        out: The paths of data files that are named no more.
        staged: The staged snapshots whose files are named instead.
        manifests: The paths of manifests that cannot be read, and are named no more.
        named: The data files that these named, to be named anew.
        back: Data files that were taken out and are named again.
        instead_of_head: The snapshot whose manifest list stands for the head's, which cannot be read; zero if none can.
        undone: Snapshots of the main line that are dropped with it, since they are not true any more.
        properties: What the table's properties say from then on.
        columns: How the table's columns change; the rows are the same, with nulls in what is added.
    """

    out: frozenset[str] = frozenset()
    staged: tuple[int, ...] = ()
    manifests: frozenset[str] = frozenset()
    named: tuple[StoredFile, ...] = ()
    back: tuple[StoredFile, ...] = ()
    instead_of_head: int | None = None
    undone: tuple[int, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as a manifest list names it."""

    path: str
    bytes: int


class Tables(Protocol):
    """Tables by pipeline and name, and small files beside them."""

    warehouse: str

    def table(self, pipeline: str, name: str) -> Metadata | None:
        """A table as it is now, or nothing before it is created."""

    def names(self, pipeline: str) -> set[str]:
        """The tables of a pipeline."""

    def branches(self, pipeline: str) -> set[str]:
        """The names under which the collections of a pipeline's branches are."""

    def create(
        self, pipeline: str, name: str, columns: pa.Schema, keys: Sequence[str], properties: Mapping[str, str]
    ) -> Metadata:
        """Create a table unless it is there; two creators at once agree on one."""

    def forget(self, table: Metadata) -> bool:
        """Take a table out of the catalog, files untouched, if it is still exactly as it was looked at; whether it was."""

    def commit(self, table: Metadata, summary: Mapping[str, str], staged: Sequence[int] = ()) -> None:
        """Append the files of staged snapshots, and drop these, onto exactly the version that was looked at, or fail."""

    def stage(self, table: Metadata, rows: Any, summary: Mapping[str, str]) -> None:
        """Write rows as a snapshot beside the main line of exactly the version that was looked at, or fail."""

    def gather(self, table: Metadata, staged: Sequence[int], summary: Mapping[str, str]) -> None:
        """Put the files of staged snapshots into one more, beside the main line of exactly the version that was looked at."""

    def exchange(self, table: Metadata, summary: Mapping[str, str], change: Exchange) -> None:
        """Put a snapshot that names other data files onto exactly the version that was looked at, or fail."""

    def data_files(self, table: Metadata, snapshot: int) -> tuple[StoredFile, ...]:
        """The data files that a snapshot brought."""

    def held(self, table: Metadata) -> tuple[StoredFile, ...]:
        """All data files that the head names."""

    def drop(self, table: Metadata, snapshots: Sequence[int], properties: Mapping[str, str] = MappingProxyType({})) -> None:
        """Drop snapshots but the head from exactly the version that was looked at, and set properties, or fail."""

    def manifests(self, manifest_list: str) -> tuple[Manifest, ...]:
        """The manifests that a manifest list names."""

    def listed(self, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
        """The data files that a manifest of a table names."""

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""

    def write_once(self, path: str, content: bytes) -> bytes:
        """Write a small file, whole or not at all, unless it is there; the content that stands."""

    def remove(self, path: str) -> int:
        """Remove a file, if it is there; how many bytes went."""

    def read(self, path: str) -> bytes:
        """Read a small file."""

    def paths(self, folder: str) -> list[str]:
        """The paths of the files below a folder, drafts among them; none if it is not there."""

    def read_all(self, folder: str) -> dict[str, bytes]:
        """The small files below a folder that are whole, by path; none if it is not there."""
