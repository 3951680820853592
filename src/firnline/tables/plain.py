"""A plain Iceberg table that holds a collection's present rows, for whoever knows neither deltas nor views.

Its head says up to which point it is true (``firnline.upper``, of which generation). What changed after it is put in by one
commit onto exactly the version that was looked at, which says the next point. So of two at once one finds the work done, and a
retry neither doubles nor loses a row.

Rows are removed by writing the files that hold them anew, without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression

from firnline.model.names import DIFF
from firnline.tables.commit import until_known
from firnline.tables.erasing import strays
from firnline.tables.expiry import METADATA
from firnline.tables.port import Columns
from firnline.tables.scan import repeated
from firnline.tables.where import term

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

    from firnline.tables.catalog import Catalog
    from firnline.tables.metadata import Metadata

NAMESPACE = "__tables"
UPPER = "firnline.upper"
GENERATION = "firnline.generation"
_AT, _GONE = "_firnline_at", "_firnline_gone"
_SMALL_BYTES = 16 << 20
_MOST_SMALL = 16
"""More files than so many that are small are written anew as one."""
_MOST_LISTED = 200
"""So many keys are looked up one by one; of more, those between the least and the greatest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where a table is true."""

    generation: int
    upper: int

    def as_properties(self) -> dict[str, str]:
        """What the snapshot says."""
        return {GENERATION: str(self.generation), UPPER: str(self.upper)}


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Files that are named no more, and the rows that are written instead."""

    out: frozenset[str]
    rows: pa.Table


class PlainTable:
    """The plain table of one collection."""

    def __init__(self, catalog: Catalog, pipeline: str, collection: str) -> None:
        self._catalog = catalog
        self.namespace = f"{pipeline}{NAMESPACE}"
        self.name = collection

    def load(self) -> Metadata | None:
        """The table as the catalog has it now, or nothing before it is created."""
        return self._catalog.table(self.namespace, self.name)

    def create(self, columns: pa.Schema, keys: Sequence[str]) -> Metadata:
        """Create the table unless it is there."""
        return self._catalog.create(self.namespace, self.name, columns, keys, {"format-version": "2", **METADATA})

    def is_of(self, columns: pa.Schema) -> bool:
        """Whether it has these columns, and takes null where they may be null."""
        table = self.iceberg()
        found = columns_of(table, [field.name for field in table.schema().fields])
        required, nullable = (
            {field.name for field in each if field.nullable is may} for each, may in ((found, False), (columns, True))
        )
        alike = {field.name: field.type for field in found} == {field.name: field.type for field in columns}
        return alike and not required & nullable

    def iceberg(self) -> Table:
        """The table as PyIceberg knows it."""
        return self._catalog.iceberg(self.namespace, self.name)

    def commit(self, table: Metadata, mark: Mark, change: Rewriting, columns: pa.Schema | None = None) -> None:
        """Put the change in, onto exactly the version that was looked at, or fail; with ``columns``, all rows in these."""
        shape = None if columns is None else _shape(table, columns)
        self._catalog.rewrite(table, mark.as_properties(), change.out, change.rows, shape)

    def forget_history(self) -> None:
        """Let the table have no snapshot but one with its present rows, and its folder no file but those that this one names.

        The snapshot is a new one: whoever wrote files before it, for a commit onto an older one, fails and writes them anew.
        """

        def attempt_once() -> None:
            table = self.load()
            mark = None if table is None else mark_of(table)
            if table is None or mark is None:
                return
            listed = tuple(self._catalog.paths(table.location))
            nothing = self.iceberg().schema().as_arrow().empty_table()
            self.commit(table, mark, Rewriting(frozenset(), nothing))
            after = self.load()
            assert after is not None, "it was looked at"
            self._catalog.drop(after, [each for each in after.snapshots if each != after.current])
            last = self.load()
            assert last is not None, "it was looked at"
            for path in strays(self._catalog, last, (*listed, after.version)):
                self._catalog.remove(path)

        until_known(f"the table of {self.namespace}.{self.name}", attempt_once)


def mark_of(table: Metadata) -> Mark | None:
    """Up to where a table is true; None if it is not known, since somebody else wrote to it.

    Who only writes its files anew says that no row changed, and is not somebody else.
    """
    for snapshot in table.main_line():
        if UPPER in snapshot.summary:
            return Mark(int(snapshot.summary[GENERATION]), int(snapshot.summary[UPPER]))
        if snapshot.summary.get("operation") != "replace":
            return None
        if snapshot.parent not in table.snapshots:
            return None
    return None


def _shape(table: Metadata, columns: pa.Schema) -> Columns:
    """What leads to these columns and no others."""
    nullable = {field.name for field in columns if field.nullable}
    gone = tuple(name for name in table.columns if name not in columns.names)
    return Columns(columns, optional=tuple(sorted(table.required & nullable)), gone=gone)


def whole(table: Table, rows: pa.Table) -> Rewriting:
    """All rows instead of all that is there."""
    return Rewriting(frozenset(task.file.file_path for task in table.scan().plan_files()), rows)


def changed(table: Table, weighted: pa.Table, keys: Sequence[str]) -> Rewriting | None:
    """What brings a table from one state to another; None if it does not hold the rows that are to go.

    Args:
        table: The table.
        weighted: The rows that come and go, with ``_diff``.
        keys: The columns that identify a row.
    """
    inserted = repeated(weighted.filter(pc.greater(weighted[DIFF], 0)))
    removed = weighted.filter(pc.less(weighted[DIFF], 0)).select(list(keys))
    tasks = {task.file.file_path: task for task in table.scan().plan_files()}
    small = {path for path, task in tasks.items() if task.file.file_size_in_bytes < _SMALL_BYTES}
    going = small if len(small) > _MOST_SMALL else set()
    touched = {task.file.file_path for task in table.scan(row_filter=_near(removed)).plan_files()} if removed.num_rows else set()
    kept, missing = [], removed.num_rows
    for path in sorted(touched | going):
        rows = _rows(table, tasks[path])
        left = _without(rows, removed) if path in touched else rows
        if left.num_rows < rows.num_rows or path in going:
            going.add(path)
            missing -= rows.num_rows - left.num_rows
            kept.append(left)
    return (
        None if missing else Rewriting(frozenset(going), pa.concat_tables([inserted, *(_like(each, inserted) for each in kept)]))
    )


def _like(rows: pa.Table, other: pa.Table) -> pa.Table:
    """Rows with their columns in the order and the types of others: in the log columns may have come in another order."""
    return rows.select(other.column_names).cast(other.schema)


def _near(removed: pa.Table) -> BooleanExpression:
    """A condition that all rows with some keys meet, and that the statistics of files tell; floating ones lie."""
    found: BooleanExpression = AlwaysTrue()
    for field in removed.schema:
        cells = removed[field.name]
        is_told = not (kinds.is_floating(field.type) or kinds.is_nested(field.type) or kinds.is_boolean(field.type))
        if not is_told or "." in field.name or cells.null_count:
            continue
        if len(removed) <= _MOST_LISTED:
            found = And(found, term(field.name, "in", cells.to_pylist()))
        else:
            bounds = pc.min_max(cells).as_py()
            found = And(found, And(term(field.name, ">=", bounds["min"]), term(field.name, "<=", bounds["max"])))
    return found


def _rows(table: Table, task: FileScanTask) -> pa.Table:
    """All rows of one file."""
    from pyiceberg.io.pyarrow import ArrowScan

    return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table([task])


def _without(rows: pa.Table, removed: pa.Table) -> pa.Table:
    """The rows whose keys are not among those removed; a null is equal to a null, and keys are unique."""
    keys = removed.column_names
    if not keys:
        return rows.slice(0, 0)
    if any(kinds.is_nested(field.type) for field in removed.schema):
        gone = {repr(each) for each in removed.to_pylist()}
        return rows.take([at for at, each in enumerate(rows.select(keys).to_pylist()) if repr(each) not in gone])
    both = pa.concat_tables([_flagged(rows.select(keys), 0), _flagged(removed.cast(rows.select(keys).schema), 1)])
    found = both.group_by(keys).aggregate([(_AT, "max"), (_GONE, "max")])
    left = found.filter(pc.equal(found[f"{_GONE}_max"], 0))[f"{_AT}_max"]
    return rows.take(left.combine_chunks().sort())


def _flagged(keys: pa.Table, gone: int) -> pa.Table:
    size = keys.num_rows
    numbers: Any = pa.nulls(size, pa.int64()) if gone else pa.array(range(size), pa.int64())
    return keys.append_column(_AT, numbers).append_column(_GONE, pa.repeat(pa.scalar(gone, pa.int8()), size))


def columns_of(table: Table, names: Sequence[str]) -> pa.Schema:
    """Some columns of a log, as a table of its own has them."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return schema_to_pyarrow(table.schema().select(*names), include_field_ids=False)
