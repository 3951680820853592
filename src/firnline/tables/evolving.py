"""Other columns for a log: one commit that changes the table's columns and puts a snapshot of the same rows onto the head.

Iceberg knows columns by ids, so that files of all epochs are read under the names and types of today, with nulls where they have
nothing. A snapshot is read by the columns of its time: with one on top, older layers are read through that one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from firnline.plan.evolving import Evolution, evolution
from firnline.tables.commit import until_known
from firnline.tables.layers import KIND, SCHEMA
from firnline.tables.log import Log, head_of, repair_summary
from firnline.tables.metadata import Metadata
from firnline.tables.port import Columns, Exchange, Tables
from firnline.tables.sidecar import Repair
from firnline.world import world

if TYPE_CHECKING:
    from pyiceberg.table import Transaction


def evolve(tables: Tables, log: Log, attempt: str, wanted: Callable[[Metadata], Columns | None]) -> Metadata:
    """Let a log have other columns, exactly once, whoever else wants them; the log as it is then.

    Args:
        tables: Where the log is.
        log: The log, which holds something.
        attempt: What the change is called.
        wanted: What is still to be changed of a table that was looked at; None if nothing is.
    """

    def attempt_once() -> Metadata:
        table = log.load()
        assert table is not None, "it holds something"
        columns = wanted(table)
        if columns is None:
            return table
        world().reach("schema.judged")
        note = Repair(table.name, attempt, (), (), (), 0, 0, 0.0)
        path = f"{table.location}/firnline/{attempt}.json"
        tables.write(path, note.as_json())
        world().reach("schema.described")
        summary = {**head_of(table).description.as_properties(), **repair_summary(table, note, path), KIND: SCHEMA}
        tables.exchange(table, summary, Exchange(columns=columns))
        world().reach("schema.committed")
        changed = log.load()
        assert changed is not None, "it was just changed"
        return changed

    return until_known(f"the columns of {log.pipeline}.{log.collection}", attempt_once)


def renamed_between(old: Metadata, new: Metadata) -> tuple[tuple[str, str], ...]:
    """Columns that two logs, one of which began as the other, have under different names: Iceberg knows them by their ids."""
    names = {number: name for name, number in new.columns.items()}
    pairs = ((name, names.get(number, name)) for name, number in old.columns.items())
    return tuple((name, other) for name, other in pairs if name not in new.columns and other not in old.columns)


def names_today(table: Metadata, snapshot: int, names: Collection[str]) -> dict[str, str]:
    """Under which names a log has the columns today that a layer was made with.

    A layer that was merged or reused is committed under the columns of that time. If these are not its own, its own are the last
    that had all of the names.
    """
    own = table.snapshots[snapshot].schema
    known = [columns for _, columns in sorted(table.schemas.items(), key=lambda each: (each[0] == own, each[0]))]
    ids = next((columns for columns in reversed(known) if columns.keys() >= set(names)), table.columns)
    today = {number: name for name, number in table.columns.items()}
    return {name: today.get(ids.get(name, 0), name) for name in names}


def between(old: Metadata, new: Metadata) -> Evolution:
    """What leads from the columns of a log to those of one that began as it did."""
    stored, found = ({name: _in_spark(kind) for name, kind in table.types.items()} for table in (old, new))
    return evolution(stored, found, renamed_between(old, new))


def _in_spark(kind: str) -> str:
    """A type that can become wider, in Spark's words; others as they are."""
    return "bigint" if kind == "long" else kind.replace(" ", "")


def reshape(transaction: Transaction, columns: Columns) -> None:
    """Change a table's columns, in a transaction."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

    there = {field.name: field for field in transaction.table_metadata.schema().fields}
    before = {new: old for old, new in columns.renamed}
    with transaction.update_schema() as update:
        for field in _pyarrow_to_schema_without_ids(columns.made).fields:
            name = before.get(field.name, field.name)
            if name not in there:
                update.add_column((name,), field.field_type)
            elif field.field_type.is_primitive and there[name].field_type != field.field_type:
                update.update_column((name,), field_type=field.field_type)
        for name in columns.gone:
            update.delete_column((name,))
        for name in columns.optional:
            update.make_column_optional((name,))
        for old, new in columns.renamed:
            update.rename_column((old,), new)
