"""A PostgreSQL table that follows a collection: created with fitting types, then changed by key, inside of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.types as kinds
from psycopg.sql import SQL, Composable, Composed, Identifier

from firnline.errors import FirnlineError
from firnline.model.names import CHANGE_TYPE, DELETE
from firnline.plan.evolving import is_wider
from firnline.sinks.encoding import as_json

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection

_STAGED = SQL("pg_temp.{}").format(Identifier("_firnline_staged"))
_GONE = Identifier("_firnline_gone")
_LONGEST = 63
"""Bytes of a name; PostgreSQL cuts longer ones without a word."""
_TYPES = (
    (kinds.is_boolean, "boolean"),
    (kinds.is_int32, "integer"),
    (kinds.is_int64, "bigint"),
    (kinds.is_float32, "real"),
    (kinds.is_float64, "double precision"),
    (kinds.is_date, "date"),
    (kinds.is_string, "text"),
    (kinds.is_large_string, "text"),
    (kinds.is_binary, "bytea"),
    (kinds.is_large_binary, "bytea"),
    (kinds.is_nested, "jsonb"),
)


_COLUMNS_OF = """
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where a table is true, and of what."""

    follows: str
    """The collection, and after a space the id of its log; after another one, which columns and rows of it."""
    generation: int
    upper: int

    def is_reached(self, goal: Mark) -> bool:
        """Whether nothing is to be done for a goal; one of an older generation of the same log is out of date."""
        if self.follows.split(" ")[:2] != goal.follows.split(" ")[:2]:
            return False
        if self.generation != goal.generation:
            return self.generation > goal.generation
        return self.follows == goal.follows and self.upper >= goal.upper

    def leads_to(self, goal: Mark) -> bool:
        """Whether the changes from here lead to a goal."""
        return (self.follows, self.generation) == (goal.follows, goal.generation)


@dataclass(frozen=True, slots=True)
class Following:
    """A table, and the rows that it follows up to a point."""

    sink: str
    table: tuple[str, ...]
    """Its name, perhaps after that of its schema."""
    keys: tuple[str, ...]
    columns: pa.Schema
    goal: Mark
    changes: Callable[[int], Iterable[pa.RecordBatch] | None]
    """What changed from a point to the goal, told by ``_change_type``; None if nothing tells it any more."""
    rows: Callable[[], Iterable[pa.RecordBatch]]
    """All rows at the goal."""

    @property
    def name(self) -> str:
        """The table's name, for people."""
        return ".".join(self.table)

    def check(self) -> None:
        """Refuse names that PostgreSQL cannot have, and changes without keys."""
        if not 1 <= len(self.table) <= 2 or not all(self.table):
            raise FirnlineError("BAD_OPTION", f"table={self.name!r} is neither TABLE nor SCHEMA.TABLE")
        for key in self.keys:
            if key not in self.columns.names:
                raise FirnlineError(
                    "BAD_OPTION", f"the table {self.name} is written by key, and its changes lack the key {key!r}"
                )
        for each in (*self.table, *self.columns.names):
            if len(each.encode()) > _LONGEST:
                raise FirnlineError("SINK_REFUSED", f"PostgreSQL has no names as long as {each!r}")


def is_there(connection: Connection[Any], table: tuple[str, ...]) -> bool:
    """Whether a table is there."""
    name = Identifier(*table).as_string(connection)
    return _answer(connection, SQL("SELECT to_regclass(%s) IS NOT NULL"), name)


def has_rows(connection: Connection[Any], table: tuple[str, ...]) -> bool:
    """Whether there is any row in a table."""
    return _answer(connection, SQL("SELECT EXISTS (SELECT FROM {})").format(Identifier(*table)))


def shape(connection: Connection[Any], following: Following, exists: bool) -> None:
    """Create the table, or the columns that it lacks; those that became wider in the log become so here."""
    types, table = _types(following.columns), Identifier(*following.table)
    if exists:
        there = dict(connection.execute(_COLUMNS_OF, (table.as_string(connection),)).fetchall())
        for name, kind in types.items():
            said, column = kind.as_string(connection), Identifier(name)
            if name not in there:
                connection.execute(SQL("ALTER TABLE {} ADD COLUMN {} {}").format(table, column, kind))
            elif is_wider(_in_spark(there[name]), _in_spark(said)):
                connection.execute(SQL("ALTER TABLE {} ALTER COLUMN {} TYPE {}").format(table, column, kind))
        return
    columns: list[Composable] = [SQL("{} {}").format(Identifier(name), kind) for name, kind in types.items()]
    if following.keys:  # not a primary key: a key may be null
        columns.append(SQL("UNIQUE ({})").format(_names(following.keys)))
    connection.execute(SQL("CREATE TABLE {} ({})").format(table, SQL(", ").join(columns)))


def stage(connection: Connection[Any], following: Following, batches: Iterable[pa.RecordBatch]) -> None:
    """Bring rows, and keys that are gone, into a table of the transaction."""
    names = following.columns.names
    columns = [SQL("{} {}").format(Identifier(name), kind) for name, kind in _types(following.columns).items()]
    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(_STAGED))
    shape = SQL(", ").join([*columns, SQL("{} boolean").format(_GONE)])
    connection.execute(SQL("CREATE TEMP TABLE {} ({}) ON COMMIT DROP").format(_STAGED, shape))
    nested = [field.name for field in following.columns if kinds.is_nested(field.type)]
    with connection.cursor().copy(SQL("COPY {} FROM STDIN").format(_STAGED)) as copy:
        for batch in batches:
            for row in _rows(batch):
                for name in nested:
                    row[name] = None if row[name] is None else as_json(row[name])
                copy.write_row([*(row[name] for name in names), row.get(CHANGE_TYPE) == DELETE])
    connection.execute(SQL("ANALYZE {}").format(_STAGED))


def apply(connection: Connection[Any], following: Following, *, is_whole: bool) -> None:
    """Let the table follow what is staged: keys that are gone are deleted, those that are there updated, others inserted.

    A changed row is staged twice, as it was and as it is. Rows with a null key have statements of their own: no index finds them.
    """
    keys, names, table = following.keys, following.columns.names, Identifier(*following.table)
    values = [name for name in names if name not in keys]
    no_null = SQL(" AND ").join([SQL("TRUE"), *(SQL("s.{} IS NOT NULL").format(Identifier(key)) for key in keys)])
    some_null = SQL("NOT ({})").format(no_null)
    ways = [(no_null, "=")]
    if _answer(connection, SQL("SELECT EXISTS (SELECT FROM {} s WHERE {})").format(_STAGED, some_null)):
        ways.append((some_null, "IS NOT DISTINCT FROM"))
    if is_whole:
        known = SQL("EXISTS (SELECT FROM {} s WHERE {} AND {})")
        stays = SQL(" OR ").join(known.format(_STAGED, which, _equal("t", keys, how)) for which, how in ways)
        connection.execute(SQL("DELETE FROM {} t WHERE NOT ({})").format(table, stays))
    for which, how in ways:
        replaced = SQL("EXISTS (SELECT FROM {} n WHERE NOT n.{} AND {})").format(_STAGED, _GONE, _equal("n", keys, how))
        there = SQL("{} AND {}").format(which, _equal("t", keys, how))
        query = SQL("DELETE FROM {} t USING {} s WHERE s.{} AND {} AND NOT {}")
        connection.execute(query.format(table, _STAGED, _GONE, there, replaced))
        if values:
            changes = SQL(", ").join(SQL("{0} = s.{0}").format(Identifier(name)) for name in values)
            differs = SQL("ROW({}) IS DISTINCT FROM ROW({})").format(_names(values, "t"), _names(values, "s"))
            query = SQL("UPDATE {} t SET {} FROM {} s WHERE NOT s.{} AND {} AND {}")
            connection.execute(query.format(table, changes, _STAGED, _GONE, there, differs))
        query = SQL("INSERT INTO {} ({}) SELECT {} FROM {} s WHERE NOT s.{} AND {} AND NOT EXISTS (SELECT FROM {} t WHERE {})")
        connection.execute(query.format(table, _names(names), _names(names, "s"), _STAGED, _GONE, which, table, there))


def _equal(other: str, keys: Iterable[str], how: str) -> Composable:
    """Whether a row has the keys of a staged one."""
    return SQL(" AND ").join([SQL("TRUE"), *(SQL(f"{other}.{{0}} {how} s.{{0}}").format(Identifier(key)) for key in keys)])


def _types(columns: pa.Schema) -> dict[str, Composable]:
    """The type of each column in PostgreSQL."""
    return {field.name: SQL(_type(field)) for field in columns}


def _in_spark(kind: str) -> str:
    """A type that can become wider, as the log's rule knows it; others as they are."""
    words = {"integer": "int", "real": "float", "double precision": "double"}
    return words.get(kind, kind.replace("numeric", "decimal").replace(" ", ""))


def _type(field: pa.Field) -> str:
    kind = field.type
    if kinds.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if kinds.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    for is_kind, name in _TYPES:
        if is_kind(kind):
            return name
    raise FirnlineError("SINK_REFUSED", f"PostgreSQL has no type for the column {field.name!r}, which is {kind}")


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (OverflowError, ValueError) as error:
        raise FirnlineError("SINK_REFUSED", f"Python has no such moment: {error}") from error
    return rows


def _names(names: Iterable[str], of: str | None = None) -> Composable:
    return SQL(", ").join(Identifier(name) if of is None else Identifier(of, name) for name in names)


def _answer(connection: Connection[Any], question: SQL | Composed, *values: object) -> bool:
    return bool(connection.execute(question, values).fetchone() == (True,))
