"""Tables of a PostgreSQL database that follow collections, exactly once: rows and mark change in one transaction.

The mark, a row of the table ``firnline_sinks`` beside it, says up to where a table is true. It alone decides what is written, and
is locked while that is done. So of two writers the second finds the work done, and a transaction that nobody knows the end of was
either committed with its mark, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier

from firnline.errors import FirnlineError
from firnline.sinks.following import Following, Mark, apply, has_rows, is_there, shape, stage
from firnline.world import world

Parameters = str | Mapping[str, Any]
"""How to reach a database: the text that libpq takes, or its parameters."""
MARKS = "firnline_sinks"
_COLUMNS = SQL("sink text, relation text, follows text, generation bigint, upper bigint, PRIMARY KEY (sink, relation)")


def write(parameters: Parameters, followings: Iterable[Following]) -> None:
    """Bring tables of one database to their goals, all in one transaction."""
    several = sorted(followings, key=lambda each: each.name)  # marks are locked in one order
    for each in several:
        each.check()
    with _answering(", ".join(each.name for each in several)), _connected(parameters) as connection:
        for each in several:
            _keep_marks(connection, each)
        with connection.transaction():
            for each in several:
                _bring(connection, each)
            world().reach("sink.written")


def _connected(parameters: Parameters) -> Connection[Any]:
    try:
        if isinstance(parameters, str):
            return psycopg.connect(parameters, autocommit=True)
        return psycopg.connect(**parameters, autocommit=True)
    except psycopg.ProgrammingError:  # its message repeats the text, with the password
        raise FirnlineError("SINK_REFUSED", "what names the database is nothing that PostgreSQL's client understands") from None


@contextmanager
def _answering(tables: str) -> Iterator[None]:
    """Turn what the database says into coded errors."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InternalError) as error:
        raise FirnlineError("SINK_UNAVAILABLE", f"PostgreSQL, for {tables}: {_line(error)}") from error
    except psycopg.Error as error:
        raise FirnlineError("SINK_REFUSED", f"PostgreSQL, for {tables}: {_line(error)}") from error


def _line(error: psycopg.Error) -> str:
    """What the database says, on one line."""
    return " ".join(str(error).split())


def _keep_marks(connection: Connection[Any], following: Following) -> None:
    """Create the table of marks unless it is there."""
    if is_there(connection, _marks(following)):
        return
    with connection.transaction():  # two at once would both create it
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (MARKS,))
        connection.execute(SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(Identifier(*_marks(following)), _COLUMNS))


def _bring(connection: Connection[Any], following: Following) -> None:
    mark = _locked(connection, following)
    if mark is not None and mark.is_reached(following.goal):
        return
    exists = is_there(connection, following.table)
    if mark is None and exists and has_rows(connection, following.table):
        what = f"the table {following.name} has rows that {following.sink!r} did not write"
        raise FirnlineError("SINK_REFUSED", what, todo="Name another table, or empty this one first.")
    shape(connection, following, exists)
    changed = following.changes(mark.upper) if mark is not None and exists and mark.leads_to(following.goal) else None
    stage(connection, following, following.rows() if changed is None else changed)
    apply(connection, following, is_whole=changed is None)
    goal, marks = following.goal, Identifier(*_marks(following))
    query = SQL("UPDATE {} SET follows = %s, generation = %s, upper = %s WHERE sink = %s AND relation = %s").format(marks)
    connection.execute(query, (goal.follows, goal.generation, goal.upper, following.sink, following.name))


def _locked(connection: Connection[Any], following: Following) -> Mark | None:
    """Up to where the table is true, which nobody else changes until the transaction ends; None if nothing was written yet."""
    marks, of = Identifier(*_marks(following)), (following.sink, following.name)
    connection.execute(SQL("INSERT INTO {} (sink, relation) VALUES (%s, %s) ON CONFLICT DO NOTHING").format(marks), of)
    query = SQL("SELECT follows, generation, upper FROM {} WHERE sink = %s AND relation = %s FOR UPDATE").format(marks)
    found = connection.execute(query, of).fetchone()
    return None if found is None or found[0] is None else Mark(*found)


def _marks(following: Following) -> tuple[str, ...]:
    """The name of the table of marks, in the schema of the table."""
    return (*following.table[:-1], MARKS)
