"""Adopted files: data files of a table that is not ours, named by a log as they are.

They have none of the columns ``_part``, ``_epoch`` and ``_diff``. What these are is the same for all rows of such a file, and
stands in the manifest: the log has a second partition spec, of the identities of the three, and readers take a column that a file
lacks from its partition. The log's columns have the ids that the other table gave them. No file that we write is of that spec.

The files stay somebody else's: nothing of ours removes them (``is_adopted``). A tag keeps the other table's housekeeping from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from firnline.errors import FirnlineError
from firnline.model.names import BOOKKEEPING, DIFF, EPOCH, PART
from firnline.tables.catalog import Catalog
from firnline.tables.commit import until_known
from firnline.tables.layers import LOWER
from firnline.tables.log import ATTEMPT, Log, created_with, staged_by
from firnline.tables.metadata import ADOPTED, SHARES
from firnline.tables.pointers import NAME
from firnline.tables.trash import file_key
from firnline.world import world

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

_SPEC = 1
_MAPPING = "schema.name-mapping.default"


@dataclass(frozen=True)
class Adoptable:
    """A snapshot of a table that is not ours, of which a log can name the files."""

    table: Table
    files: tuple[DataFile, ...]


def adoptable(catalog: Catalog, name: str, snapshot: int | None, parts: int) -> Adoptable | str:
    """A table's snapshot, if its files can be named as they are; if not, why.

    Args:
        catalog: Ours.
        name: ``catalog.namespace.table``.
        snapshot: None if the table holds nothing.
        parts: How many parts the log has.
    """
    if snapshot is None:
        return "it holds nothing"
    if parts != 1:
        return f"its files are not cut into {parts} parts"
    space, _, table = name.removeprefix(f"{NAME}.").rpartition(".")
    if not name.startswith(f"{NAME}.") or "." in space:
        return f"it is not a table of the catalog {NAME!r}"
    loaded = catalog.iceberg(space, table)
    if _MAPPING in loaded.properties:
        return f"it has the property {_MAPPING}, so that its files may not say what their columns are"
    try:
        files = tuple(_whole_files(loaded, snapshot))
    except ValueError as reason:
        return str(reason)
    folder = file_key(loaded.location()) + "/"
    if not folder.startswith(file_key(catalog.warehouse) + "/"):
        return "it is outside the warehouse"
    if not all(file_key(each.file_path).startswith(folder) for each in files):
        return "some of its files are outside its folder"
    return Adoptable(loaded, files)


def keep(adopted: Adoptable, snapshot: int, tag: str) -> None:
    """Tag a snapshot of a table that is not ours, so that expiry leaves its files.

    One that was adopted before stays tagged, since a branch may name its files, or an undo bring them back. Then the tag of the
    later one has its number in its name.
    """

    def attempt_once() -> None:
        table = adopted.table.refresh()
        there = table.refs().get(tag)
        if there is not None and there.snapshot_id == snapshot:
            return
        name = tag if there is None else f"{tag}_{snapshot}"
        if name not in table.refs():
            table.manage_snapshots().create_tag(snapshot, name).commit()

    until_known(f"the tag {tag}", attempt_once)


def create(
    catalog: Catalog, log: Log, adopted: Adoptable, keys: Sequence[str], start: int, properties: Mapping[str, str]
) -> None:
    """Create a log whose columns have the ids of a table's, unless it is there."""
    if log.load() is not None:
        return
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.serializers import ToOutputFile
    from pyiceberg.table.metadata import TableMetadataV2
    from pyiceberg.table.sorting import SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform, Transform
    from pyiceberg.types import IntegerType, LongType, NestedField

    theirs = adopted.table
    identity: Transform[Any, Any] = IdentityTransform()
    ids = {name: theirs.metadata.last_column_id + at for at, name in enumerate((EPOCH, DIFF, PART), 1)}
    kinds = {EPOCH: LongType(), DIFF: LongType(), PART: IntegerType()}
    users = [each.model_copy(update={"required": False}) for each in theirs.schema().fields]
    schema = Schema(*users, *(NestedField(ids[name], name, kinds[name], required=False) for name in ids))
    several = [PartitionField(ids[name], 1000 + at, identity, name) for at, name in enumerate((PART, EPOCH, DIFF))]
    sortable = [schema.find_field(key) for key in keys]
    order = [SortField(each.field_id, transform=identity) for each in sortable if each.field_type.is_primitive]
    number = 1 if order else 0
    location = f"{catalog.warehouse}/{log.pipeline}/{log.collection}-{uuid4().hex[:8]}"
    folder = theirs.location()
    made = TableMetadataV2.model_validate(
        {
            "location": location,
            "last-column-id": max(ids.values()),
            "schemas": [schema],
            "current-schema-id": 0,
            "partition-specs": [PartitionSpec(several[0], spec_id=0), PartitionSpec(*several, spec_id=_SPEC)],
            "default-spec-id": 0,
            "last-partition-id": several[-1].field_id,
            "sort-orders": [SortOrder(*order, order_id=number)],
            "default-sort-order-id": number,
            "properties": {**created_with(start, properties), ADOPTED: folder, SHARES: json.dumps([folder])},
        }
    )
    version = f"{location}/metadata/00000-{uuid4()}.metadata.json"
    ToOutputFile.table_metadata(made, theirs.io.new_output(version))
    catalog.register(log.pipeline, log.collection, version)
    world().reach("log.created")


def stage(catalog: Catalog, log: Log, adopted: Adoptable, attempt: str, epoch: int) -> None:
    """Name the files of a table beside the main line of a log, as rows of one epoch."""
    schema = catalog.iceberg(log.pipeline, log.collection).schema()
    files = [as_adopted(schema, each, epoch) for each in adopted.files]

    def attempt_once() -> None:
        table = log.load()
        assert table is not None, "it was created for them"
        if not staged_by(table, attempt):
            catalog.append_beside(table, {ATTEMPT: attempt, LOWER: str(epoch)}, files)

    until_known(f"the staging of {log.pipeline}.{log.collection}", attempt_once)


def is_ready(catalog: Catalog, log: Log, adopted: Adoptable) -> bool:
    """Whether a log was created for the files of a table."""
    table = log.load()
    if table is None or table.properties.get(ADOPTED) != adopted.table.location():
        return False
    ours = catalog.iceberg(log.pipeline, log.collection).schema()
    return all(_is_same(ours, each) for each in adopted.table.schema().fields)


def as_adopted(schema: Schema, file: DataFile, epoch: int) -> DataFile:
    """A file as rows that were inserted once, in an epoch; the statistics of what it lacks are those of one value."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile
    from pyiceberg.typedef import Record
    from pyiceberg.types import IntegerType, LongType

    values = {PART: 0, EPOCH: epoch, DIFF: 1}
    kinds = {PART: IntegerType(), EPOCH: LongType(), DIFF: LongType()}
    bounds = {schema.find_field(name).field_id: to_bytes(kinds[name], value) for name, value in values.items()}
    counts = dict.fromkeys(bounds, file.record_count)
    made = DataFile.from_args(
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        partition=Record(*values.values()),
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        column_sizes=file.column_sizes,
        value_counts={**(file.value_counts or {}), **counts},
        null_value_counts={**(file.null_value_counts or {}), **dict.fromkeys(bounds, 0)},
        nan_value_counts=file.nan_value_counts,
        lower_bounds={**(file.lower_bounds or {}), **bounds},
        upper_bounds={**(file.upper_bounds or {}), **bounds},
        key_metadata=None,
        split_offsets=file.split_offsets,
        equality_ids=None,
        sort_order_id=None,
    )
    made.spec_id = _SPEC
    return made


def _is_same(ours: Schema, theirs: Any) -> bool:
    try:
        field = ours.find_field(theirs.name)
    except ValueError:
        return False
    return bool(field.field_id == theirs.field_id and field.field_type == theirs.field_type)


def _whole_files(table: Table, number: int) -> Iterator[DataFile]:
    """The data files of a snapshot, if no row of them is deleted beside its file."""
    from pyiceberg.manifest import FileFormat, ManifestContent

    snapshot = table.snapshot_by_id(number)
    if snapshot is None:
        raise FirnlineError("TABLE_REPLACED", f"{'.'.join(table.name())} does not know the snapshot {number} that was adopted")
    if snapshot.schema_id not in (None, table.schema().schema_id):
        raise ValueError("its columns have changed since the snapshot")
    if {each.name for each in table.schema().fields} & set(BOOKKEEPING):
        raise ValueError("it has columns with the names of ours")
    for manifest in snapshot.manifests(table.io):
        if manifest.content != ManifestContent.DATA:
            raise ValueError("rows of it are deleted beside their files")
        for entry in manifest.fetch_manifest_entry(table.io):
            if entry.data_file.file_format != FileFormat.PARQUET:
                raise ValueError(f"it has files in {entry.data_file.file_format.value}")
            yield entry.data_file
