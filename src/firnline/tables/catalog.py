"""The Iceberg catalog, shared with Spark: one namespace per pipeline, one table per collection.

Where a table's metadata is, the catalog's pointers tell; what it says is read as JSON. All that writes, or reads rows, goes
through PyIceberg, which is imported then. A commit is tried once, onto the very version that was looked at: PyIceberg would
retry and re-parent it blindly, so that two publishers that both looked first would both commit. Whoever calls must look again
after any failure, because everything but a definite conflict leaves the outcome unknown.
"""

from __future__ import annotations

import glob
import gzip
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fsspec.implementations.local import LocalFileSystem

from firnline.errors import FirnlineError
from firnline.model.names import DRAFT, EPOCH, PART, parted
from firnline.model.stored_file import StoredFile
from firnline.tables.avro import check_whole
from firnline.tables.metadata import Metadata
from firnline.tables.pointers import pointers
from firnline.tables.port import Columns, Exchange, Manifest
from firnline.tables.storage import answering, contents, located
from firnline.world import world

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_RETRIES = "commit.retry.num-retries"
_OF_SPARK = ("write.parquet.bloom-filter", "write.parquet.row-group-size-bytes")
_CLOCK_SECONDS = 60
"""How far clocks may differ: as much as Iceberg tolerates."""


class Catalog:
    """A lazily opened catalog; ``uri`` is SQLAlchemy's, or that of a REST service, which ``options`` are for."""

    def __init__(
        self,
        uri: str,
        warehouse: str,
        options: Mapping[str, str] = MappingProxyType({}),
        concordance: Path | None = None,
    ) -> None:
        self._concordance = concordance
        self.warehouse = warehouse.rstrip("/")
        self.pointers = pointers(uri, self.warehouse, options)

    def table(self, pipeline: str, name: str) -> Metadata | None:
        """A table as the catalog has it now, or nothing before it is created."""
        version = self.version(pipeline, name)
        if version is None:
            return None
        try:
            with answering(self.warehouse):
                return self.at(pipeline, name, version)
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:  # lost, or cut
            raise FirnlineError("LOG_UNREADABLE", f"{pipeline}.{name}: {error}") from error

    def version(self, pipeline: str, name: str) -> str | None:
        """The path of a table's present metadata file, or nothing before it is created."""
        found = self.pointers.table(pipeline, name)
        if found is None:
            self._check_made(pipeline)
        return found

    def at(self, pipeline: str, name: str, version: str) -> Metadata:
        """A table as one of its metadata files says."""
        filesystem, inner = located(version)
        content: bytes = filesystem.cat_file(inner)
        if version.endswith(".gz.metadata.json"):
            content = gzip.decompress(content)
        return Metadata.of_json(pipeline, name, version, content)

    def names(self, pipeline: str) -> set[str]:
        """The tables of a pipeline."""
        return self.pointers.names(pipeline) or self._check_made(pipeline)

    def branches(self, pipeline: str) -> set[str]:
        """The names under which the collections of a pipeline's branches are."""
        return {space for space in self.pointers.spaces() if parted(space)[0] == pipeline and space != pipeline}

    def create(
        self, pipeline: str, name: str, columns: pa.Schema, keys: Sequence[str], properties: Mapping[str, str]
    ) -> Metadata:
        """Create a table, cut by ``_part`` if it has one, unless it is there; two creators at once agree on one."""
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.table.sorting import SortField, SortOrder
        from pyiceberg.transforms import IdentityTransform

        schema = _schema(columns)
        ids = {field.name: field.field_id for field in schema.fields}
        parts = (PartitionField(ids[PART], 1000, IdentityTransform(), PART),) if PART in ids else ()
        sortable = [key for key in keys if schema.find_type(key).is_primitive]
        order = SortOrder(*(SortField(ids[key], transform=IdentityTransform()) for key in sortable))
        self._ensure_namespace(pipeline)
        with self._answering(), suppress(TableAlreadyExistsError):
            self.opened.create_table(
                (pipeline, name),
                schema,
                self._free_folder(f"{self.warehouse}/{pipeline}/{name}"),
                PartitionSpec(*parts),
                order,
                dict(properties),
            )
        found = self.table(pipeline, name)
        assert found is not None, "a table that is created stays"
        return found

    def _free_folder(self, folder: str) -> str:
        """A folder that no table has, nor had: one that was renamed keeps its own, and of one that was retired files wait."""
        return f"{folder}-{uuid4().hex[:8]}" if self.paths(f"{folder}/metadata") else folder

    def rename(self, pipeline: str, name: str, new: str) -> None:
        """Let a table have another name; its folder stays. Of two who do it at once, one does."""
        from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

        with self._answering(), suppress(NoSuchTableError, TableAlreadyExistsError):
            self.opened.rename_table((pipeline, name), (pipeline, new))

    def forget(self, table: Metadata) -> bool:
        """Take a table out of the catalog, files untouched, if it is still exactly as it was looked at; whether it was."""
        return self.pointers.forget(table.pipeline, table.name, table.version)

    def point(self, pipeline: str, name: str, lost: str, version: str) -> bool:
        """Let a table's metadata be another file, if it is still the one that was lost; whether it was."""
        return self.pointers.point(pipeline, name, lost, version)

    def view(self, namespace: str, name: str) -> tuple[str, dict[str, Any]] | None:
        """What tells this version of a view from others, and what it says; nothing before it is made."""
        return self.pointers.view(namespace, name, self.read)

    def put_view(self, namespace: str, name: str, before: str | None, made: dict[str, Any]) -> None:
        """Let a view say something else, if it is still the version that was looked at, or is not there; or fail."""
        self._ensure_namespace(namespace)
        if not self.pointers.put_view(namespace, name, before, made, self.write):
            raise FirnlineError("COMMIT_CONTENDED", f"the view {namespace}.{name} moved meanwhile")

    def forget_view(self, namespace: str, name: str) -> None:
        """Take a view out of the catalog, if it is there."""
        self.pointers.forget_view(namespace, name)

    def commit(self, table: Metadata, summary: Mapping[str, str], staged: Sequence[int] = ()) -> None:
        """Append the files of staged snapshots, and drop these, in one transaction that knows no retry."""
        from pyiceberg.table.update.snapshot import ExpireSnapshots

        from firnline.tables.appending import append
        from firnline.tables.transaction import SparingTransaction

        with self._committing(table) as loaded, SparingTransaction(loaded) as transaction:
            append(transaction, [file for snapshot in staged for file in _files(loaded, snapshot)], summary)
            if staged:
                ExpireSnapshots(transaction).by_ids(list(staged)).commit()

    def append(self, table: Metadata, summary: Mapping[str, str], files: Sequence[DataFile]) -> None:
        """Append data files that another table names, in one transaction that knows no retry."""
        self.append_each(table, [(summary, files)])

    def append_beside(self, table: Metadata, summary: Mapping[str, str], files: Sequence[DataFile]) -> None:
        """Append data files that another table names, as a snapshot beside the main line."""
        with self._committing(table) as loaded:
            _append_beside(loaded, files, summary)

    def written(self, table: Metadata, several: Sequence[pa.Table]) -> list[list[DataFile]]:
        """Data files of rows, sorted by the table's order, that no snapshot names yet."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        loaded = self._loaded(table)
        with self._answering():
            writable = _writable(loaded.metadata)
            return [
                list(_dataframe_to_data_files(writable, _sorted(loaded, rows), loaded.io)) if rows.num_rows else []
                for rows in several
            ]

    def append_each(self, table: Metadata, several: Sequence[tuple[Mapping[str, str], Sequence[DataFile]]]) -> None:
        """Append data files by several snapshots, one after the other, in one transaction that knows no retry."""
        from firnline.tables.appending import append
        from firnline.tables.transaction import SparingTransaction

        with self._committing(table) as loaded, SparingTransaction(loaded) as transaction:
            for summary, files in several:
                append(transaction, files, summary)

    def register(self, pipeline: str, name: str, version: str) -> None:
        """Let a table be what a metadata file says, unless it is there."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        self._ensure_namespace(pipeline)
        with self._answering(), suppress(TableAlreadyExistsError):
            self.opened.register_table((pipeline, name), version)

    def stage(self, table: Metadata, rows: pa.Table, summary: Mapping[str, str]) -> None:
        """Write rows as a snapshot beside the main line, sorted by the table's order; the files go again if it surely failed."""
        from pyiceberg.exceptions import CommitFailedException
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        with self._committing(table) as loaded:
            files = list(_dataframe_to_data_files(_writable(loaded.metadata), _sorted(loaded, rows), loaded.io))
            try:
                _append_beside(loaded, files, summary)
            except CommitFailedException:
                for file in files:
                    loaded.io.delete(file.file_path)
                raise

    def gather(self, table: Metadata, staged: Sequence[int], summary: Mapping[str, str]) -> None:
        """Put the files of staged snapshots into one more, beside the main line."""
        with self._committing(table) as loaded:
            _append_beside(loaded, [file for snapshot in staged for file in _files(loaded, snapshot)], summary)

    def exchange(self, table: Metadata, summary: Mapping[str, str], change: Exchange) -> None:
        """Put a snapshot that names other data files onto the head, in one transaction that knows no retry."""
        from pyiceberg.table.update.snapshot import ExpireSnapshots

        from firnline.tables.evolving import reshape
        from firnline.tables.exchanging import exchanging
        from firnline.tables.transaction import SparingTransaction

        with self._committing(table) as loaded, SparingTransaction(loaded) as transaction:
            coming = [file for snapshot in change.staged for file in _files(loaded, snapshot)]
            if change.columns is not None:
                reshape(transaction, change.columns)  # before the snapshot, which is read by the columns of its time
            exchanging(transaction, summary, change, coming).commit()
            if change.properties:
                transaction.set_properties(dict(change.properties))
            if change.staged or change.undone:
                ExpireSnapshots(transaction).by_ids([*change.staged, *change.undone]).commit()

    def rewrite(
        self, table: Metadata, summary: Mapping[str, str], out: Collection[str], rows: pa.Table, columns: Columns | None = None
    ) -> None:
        """Let the head name a file of these rows instead of some files, in one transaction that knows no retry.

        The new files go again if it surely failed. With ``columns`` the table gets these first.
        """
        from pyiceberg.exceptions import CommitFailedException
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        from firnline.tables.evolving import reshape

        with self._committing(table) as loaded:
            tasks = loaded.scan().plan_files() if out else ()
            going = [task.file for task in tasks if task.file.file_path in out]
            transaction = loaded.transaction()
            if columns is not None:
                reshape(transaction, columns)
            shaped = _writable(transaction.table_metadata)
            coming = list(_dataframe_to_data_files(shaped, _sorted(loaded, rows), loaded.io)) if rows.num_rows else []
            world().reach("table.written")
            try:
                with transaction, transaction.update_snapshot(snapshot_properties=dict(summary)).overwrite() as overwrite:
                    for file in going:
                        overwrite.delete_data_file(file)
                    for file in coming:
                        overwrite.append_data_file(file)
            except CommitFailedException:
                for file in coming:
                    loaded.io.delete(file.file_path)
                raise

    def data_files(self, table: Metadata, snapshot: int) -> tuple[StoredFile, ...]:
        """The data files that a snapshot brought."""
        with self._answering():
            loaded = self.iceberg(table.pipeline, table.name)
            return tuple(stored_file(file, table.columns[EPOCH]) for file in _files(loaded, snapshot))

    def held(self, table: Metadata) -> tuple[StoredFile, ...]:
        """All data files that the head names."""
        with self._answering():
            loaded = self.iceberg(table.pipeline, table.name)
            head = None if table.current is None else loaded.snapshot_by_id(table.current)
            manifests = [] if head is None else head.manifests(loaded.io)
            entries = (entry for manifest in manifests for entry in manifest.fetch_manifest_entry(loaded.io))
            return tuple(stored_file(entry.data_file, table.columns[EPOCH]) for entry in entries)

    def drop(self, table: Metadata, snapshots: Sequence[int], properties: Mapping[str, str] = MappingProxyType({})) -> None:
        """Drop snapshots, leaving the head as it is, and set properties, in one transaction that knows no retry."""
        from pyiceberg.table.refs import MAIN_BRANCH
        from pyiceberg.table.update import AssertRefSnapshotId
        from pyiceberg.table.update.snapshot import ExpireSnapshots

        from firnline.tables.transaction import SparingTransaction

        with self._answering(), SparingTransaction(self._loaded(table)) as transaction:
            transaction._apply((), (AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": table.current}),))
            if properties:
                transaction.set_properties(dict(properties))
            if snapshots:
                ExpireSnapshots(transaction).by_ids(list(snapshots)).commit()

    def manifests(self, manifest_list: str) -> tuple[Manifest, ...]:
        """The manifests that a manifest list names; one that was cut is refused."""
        from pyiceberg.manifest import read_manifest_list

        check_whole(self.read(manifest_list))
        with answering(self.warehouse):
            found = read_manifest_list(self._io.new_input(manifest_list))
            return tuple(Manifest(each.manifest_path, each.manifest_length) for each in found)

    def listed(self, table: Metadata, manifest: Manifest) -> tuple[StoredFile, ...]:
        """The data files that a manifest of a table names; one that was cut is refused."""
        from pyiceberg.manifest import ManifestContent, ManifestFile

        check_whole(self.read(manifest.path))
        named = ManifestFile.from_args(
            manifest_path=manifest.path, manifest_length=manifest.bytes, partition_spec_id=0, content=ManifestContent.DATA
        )
        with answering(self.warehouse):
            entries = named.fetch_manifest_entry(self._io)
            return tuple(stored_file(entry.data_file, table.columns.get(EPOCH)) for entry in entries)

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, whole or not at all."""
        filesystem, inner = located(path)
        with answering(self.warehouse):
            filesystem.makedirs(filesystem._parent(inner), exist_ok=True)
            if isinstance(filesystem, LocalFileSystem):
                with _drafted(inner, content) as draft:
                    draft.replace(inner)
            else:
                filesystem.pipe_file(inner, content)

    def write_once(self, path: str, content: bytes) -> bytes:
        """Write a small file, whole or not at all, unless it is there; returns what stands there."""
        filesystem, inner = located(path)
        with answering(self.warehouse):
            while True:
                filesystem.makedirs(filesystem._parent(inner), exist_ok=True)
                try:
                    if isinstance(filesystem, LocalFileSystem):
                        with _drafted(inner, content) as draft:
                            os.link(draft, inner)
                    else:
                        filesystem.pipe_file(inner, content, mode="create")
                    return content
                except FileExistsError:
                    with suppress(FileNotFoundError):  # removed meanwhile: then it is ours to write
                        return self.read(path)

    def read(self, path: str) -> bytes:
        """Read a small file."""
        filesystem, inner = located(path)
        with answering(self.warehouse):
            content: bytes = filesystem.cat_file(inner)
        return content

    def remove(self, path: str) -> int:
        """Remove a file, if it is there, and the checksum that Spark puts beside one on a local disk; how many bytes went."""
        filesystem, inner = located(path)
        with answering(self.warehouse), suppress(FileNotFoundError), self._forgetting(path):
            size = int(filesystem.size(inner) or 0)
            filesystem.rm_file(inner)
            if isinstance(filesystem, LocalFileSystem):
                Path(inner).with_name(f".{Path(inner).name}.crc").unlink(missing_ok=True)
            return size
        return 0

    @contextmanager
    def _forgetting(self, path: str) -> Iterator[None]:
        """Let what is known about a data file go after the file: whoever writes it down looks for the file afterwards."""
        try:
            yield
        finally:
            if self._concordance is not None and self._concordance.exists():
                from firnline.tables.concordance import Concordance

                Concordance(self._concordance).forget(path)

    def paths(self, folder: str) -> list[str]:
        """The paths of the files below a folder, drafts among them: what is to be erased may be in one."""
        filesystem, inner = located(folder)
        with answering(self.warehouse):
            return [filesystem.unstrip_protocol(path) for path in sorted(filesystem.find(inner))]

    def read_all(self, folder: str) -> dict[str, bytes]:
        """The small files below a folder that are whole, by path; none if it is not there."""
        filesystem, inner = located(folder)
        with answering(self.warehouse):
            return contents(filesystem, filesystem.find(inner))

    def iceberg(self, pipeline: str, name: str) -> Table:
        """A table as PyIceberg knows it."""
        with self._answering():
            return self.opened.load_table((pipeline, name))

    @property
    def opened(self) -> IcebergCatalog:
        """PyIceberg's catalog."""
        return self.pointers.opened

    @cached_property
    def _io(self) -> FileIO:
        from pyiceberg.io.fsspec import FsspecFileIO

        return FsspecFileIO({})

    def _ensure_namespace(self, pipeline: str) -> None:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError
        from sqlalchemy.exc import IntegrityError

        with self.pointers.reachable():
            if not self.opened.namespace_exists((pipeline,)):
                try:
                    self.opened.create_namespace((pipeline,))
                except (NamespaceAlreadyExistsError, IntegrityError):
                    return  # somebody else was faster

    def _check_made(self, pipeline: str) -> set[str]:
        """Refuse to take a catalog that has gone astray for one that is not made yet: the warehouse knows better. No tables."""
        if self.pointers.names(pipeline) is None:
            with answering(self.warehouse):
                filesystem, inner = located(f"{glob.escape(self.warehouse)}/{pipeline}/*/metadata/*.metadata.json")
                if filesystem.glob(inner):
                    what = f"the warehouse holds logs of {pipeline!r}, but the catalog's database is not there"
                    raise FirnlineError("CATALOG_UNAVAILABLE", what)
        return set()

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Turn what a catalog and a warehouse do not answer into coded errors."""
        with self.pointers.reachable(), answering(self.warehouse):
            yield

    @contextmanager
    def _committing(self, table: Metadata) -> Iterator[Table]:
        """The table for one attempt at a commit that puts a snapshot onto it."""
        loaded = self._loaded(table)
        _check_clock(table)
        with self._answering():
            yield loaded

    def _loaded(self, table: Metadata) -> Table:
        """The table for one attempt at a commit: none if it moved since it was looked at."""
        loaded = self.iceberg(table.pipeline, table.name)
        if loaded.metadata_location != table.version:
            raise FirnlineError("COMMIT_CONTENDED", f"{table.pipeline}.{table.name} moved meanwhile")
        loaded.metadata.properties[_RETRIES] = "0"  # in memory only: the commit itself starts from the catalog's own copy
        return loaded


def _writable(table: TableMetadata) -> TableMetadata:
    """A table's metadata, without the options of Spark's writer that PyIceberg warns of: what it writes is small."""
    properties = {name: value for name, value in table.properties.items() if not name.startswith(_OF_SPARK)}
    return table.model_copy(update={"properties": properties})


def _sorted(table: Table, rows: pa.Table) -> pa.Table:
    """Rows in the table's order."""
    names = {field.field_id: field.name for field in table.schema().fields}
    order = [(names[field.source_id], "ascending") for field in table.sort_order().fields]
    return rows.sort_by(order) if order else rows


def _append_beside(table: Table, files: Sequence[DataFile], summary: Mapping[str, str]) -> None:
    """A snapshot that stands on the head, and that no branch leads to."""
    from firnline.tables.appending import append
    from firnline.tables.transaction import SparingTransaction

    with SparingTransaction(table) as transaction:
        append(transaction, files, summary, branch=None)


def _check_clock(table: Metadata) -> None:
    """Refuse a snapshot that would look older than the one before it: Spark reads no table with such a history."""
    ahead = table.head.timestamp_ms / 1000 - time.time() if table.head is not None else 0.0
    if ahead > _CLOCK_SECONDS:
        what = f"{table.pipeline}.{table.name} was last published {ahead:.0f} seconds after what this machine's clock says"
        raise FirnlineError("CLOCK_BEHIND", what)


def _schema(columns: pa.Schema) -> Schema:
    """Iceberg's schema of columns; ids given in their order."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import assign_fresh_schema_ids

    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(columns))


@contextmanager
def _drafted(path: str, content: bytes) -> Iterator[Path]:
    """All of a local file's content under another name, to be given its own."""
    draft = Path(f"{path}.{uuid4().hex}{DRAFT}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _files(table: Table, snapshot_id: int) -> Iterator[DataFile]:
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None, "whoever commits looked at it"
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id == snapshot_id:
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file


def stored_file(file: DataFile, epoch: int | None) -> StoredFile:
    """A data file as a manifest names it; ``epoch`` is the id of the column of epochs."""
    several = (each.get(epoch, b"") if epoch is not None and each else b"" for each in (file.lower_bounds, file.upper_bounds))
    first, last = (int.from_bytes(bound, "little", signed=True) for bound in several)
    part = file.partition[0] if len(file.partition) else 0
    return StoredFile(file.file_path, part, file.record_count, file.file_size_in_bytes, first, last)
