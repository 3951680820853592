"""What a sink's function returns to have its changes delivered exactly once: to tables of PostgreSQL, or as files.

Each target knows by itself what it holds already: the mark of a table, the folder of an epoch. So a delivery that is repeated,
by whomever, finds the work done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from firnline.errors import FirnlineError
from firnline.runtime.changes import Changes
from firnline.runtime.scan import Scan
from firnline.sinks.files import Folder, Format

if TYPE_CHECKING:
    import pyarrow as pa

    from firnline.sinks.following import Following

Connections = Callable[[str], Mapping[str, Any] | None]
"""Finds the parameters of a database by a name that the environment does not have."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ToPostgres:
    """A table of PostgreSQL that follows a collection."""

    changes: Changes
    table: str
    dsn: str


@dataclass(frozen=True, slots=True)
class ToFiles:
    """A folder with a folder for each epoch."""

    changes: Changes
    path: str
    format: Format


def to_postgres(changes: Changes, *, table: str, dsn: str) -> ToPostgres:
    """Let a table of PostgreSQL follow a collection: rows are inserted, updated and deleted by key, exactly once.

    Args:
        changes: What the sink's function was given, perhaps of some columns and rows only; the keys are among the columns.
        table: ``TABLE`` or ``SCHEMA.TABLE``. It is created if it is not there.
        dsn: The environment variable that holds the connection string, or the Airflow connection; never the string itself.
    """
    if not _VARIABLE.fullmatch(dsn):
        raise FirnlineError("BAD_OPTION", "dsn= names an environment variable or an Airflow connection; it is no address itself")
    return ToPostgres(_checked(changes), table, dsn)


def to_files(changes: Changes, path: str | Path, *, format: Format = "parquet") -> ToFiles:
    """Write the changes of each epoch into a folder of its own, which is there entirely or not at all.

    Args:
        changes: What the sink's function was given, perhaps of some columns and rows only.
        path: Where these folders are, below the project's root.
        format: ``"parquet"``, ``"csv"``, or ``"json"``, one object a line.
    """
    if format not in get_args(Format):
        raise FirnlineError("BAD_OPTION", f"to_files(format={format!r}) takes one of: {', '.join(get_args(Format))}")
    return ToFiles(_checked(changes), str(path), format)


Target = ToPostgres | ToFiles


def write(targets: Iterable[Target], sink: str, folder: str, connections: Connections) -> None:
    """Bring targets up to date. Tables of one database are written in one transaction.

    Args:
        targets: What the function returned.
        sink: ``pipeline.sink``.
        folder: What the epoch's folder is called.
        connections: Where databases are found that the environment does not name.
    """
    several = tuple(targets)
    names = [each.table if isinstance(each, ToPostgres) else each.path for each in several]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FirnlineError("BAD_OPTION", f"the sink {sink!r} writes twice to {twice!r}")
    for each in several:
        if isinstance(each, ToFiles):
            _place(each, sink, folder).write(each.changes.to_batches, each.format)
    tables = sorted((each for each in several if isinstance(each, ToPostgres)), key=lambda each: each.dsn)
    for dsn, group in groupby(tables, key=lambda each: each.dsn):
        _write_tables(_parameters(dsn, connections), [_following(each, sink) for each in group])


def is_written(targets: Iterable[Target], sink: str, folder: str) -> bool:
    """Whether files were written as a folder, all of those that targets ask for; not if they ask for none."""
    places = [_place(each, sink, folder) for each in targets if isinstance(each, ToFiles)]
    return bool(places) and all(place.is_there() for place in places)


def _place(target: ToFiles, sink: str, folder: str) -> Folder:
    return Folder(_inside(target) / folder, sink, target.changes.name)


def _write_tables(parameters: str | Mapping[str, Any], followings: list[Following]) -> None:
    from firnline.sinks.postgresql import write

    write(parameters, followings)


def _following(target: ToPostgres, sink: str) -> Following:
    from firnline.tables.plain import columns_of

    try:
        from firnline.sinks.following import Following, Mark
    except ModuleNotFoundError as error:
        todo = "Install it: pip install 'firnline[postgresql]'."
        raise FirnlineError("MISSING_PACKAGE", f"{error.name} is not installed", todo=todo) from error
    view = target.changes._view
    collection = view.graph.collection(view.collection)

    def changes(point: int) -> pa.RecordBatchReader | None:
        if point < view.since and point > view.graph.schedule.start:
            return None
        return replace(target.changes, _lower=point, _void=(), _view=replace(view, needed=point)).to_batches()

    return Following(
        sink=sink,
        table=tuple(target.table.split(".")),
        keys=collection.keys,
        columns=columns_of(view.table, view.columns),
        goal=Mark(
            f"{view.name} {view.table.metadata.table_uuid} {', '.join(view.columns)} {view.where}", view.generation, view.upto
        ),
        changes=changes,
        rows=Scan(view).to_batches,
    )


def _parameters(dsn: str, connections: Connections) -> str | Mapping[str, Any]:
    found = os.environ.get(dsn) or connections(dsn)
    if found is None:
        raise FirnlineError("BAD_SETTING", f"to_postgres(dsn={dsn!r}): neither the environment nor Airflow has it")
    return found


def _inside(target: ToFiles) -> Path:
    settings = target.changes._view.project.settings
    path = (settings.root / target.path).resolve()
    if not any(path.is_relative_to(allowed) for allowed in settings.roots):
        raise FirnlineError("PATH_OUTSIDE_ROOT", f"{path} is outside the configured roots")
    return path


def _checked(changes: Changes) -> Changes:
    if not isinstance(changes, Changes):
        raise FirnlineError(
            "BAD_OPTION", f"a sink delivers the changes that its function was given, not {type(changes).__name__}"
        )
    return changes
