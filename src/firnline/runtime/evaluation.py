"""Calling a user's function for an epoch, and telling what went wrong in it.

An error of a source or stage is wrapped once, with the collection, the epoch and the user's file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
from pyspark.errors import PySparkException, QueryContextType
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from firnline.engine.hashing import check_kind
from firnline.engine.playing import NULL_SEQUENCE
from firnline.errors import FirnlineError, Location
from firnline.model.declaration import Collection
from firnline.model.names import is_reserved, quoted
from firnline.runtime.project import user_line
from firnline.settings import Settings

# What Spark says, by a part of its message or the beginning of its error condition, and what it means here.
_CONDITIONS: Mapping[str, str] = {
    "FAILED_READ_FILE": "UNREADABLE_FILE",
    "PATH_NOT_FOUND": "MISSING_FILE",
    "CANNOT_READ_FILE_FOOTER": "UNREADABLE_FILE",
    "UNABLE_TO_INFER_SCHEMA": "UNREADABLE_FILE",
}
_MESSAGES: Mapping[str, str] = {
    "No space left on device": "STORAGE_UNAVAILABLE",
    "Disk quota exceeded": "STORAGE_UNAVAILABLE",
    "Read-only file system": "STORAGE_UNAVAILABLE",
    "Mkdirs failed to create": "STORAGE_UNAVAILABLE",
    "UncheckedSQLException": "CATALOG_UNAVAILABLE",
    "before last snapshot log entry": "CLOCK_BEHIND",
    "CSV header does not conform to the schema": "SCHEMA_MISMATCH",
    "Number of column in CSV header is not equal": "SCHEMA_MISMATCH",
    "is not a Parquet file": "UNREADABLE_FILE",
    NULL_SEQUENCE: "NULL_SEQUENCE",
    "Permission denied": "UNREADABLE_FILE",
    # The driver tells them one way, an executor the other.
    **{
        f"org.postgresql.util.PSQLException{end} {said}": "SOURCE_UNAVAILABLE"
        for end in (")", ":")
        for said in ("Connection to", "FATAL", "An I/O error")
    },
    "Could not read footer": "UNREADABLE_FILE",
}


@contextmanager
def told(collection: Collection, label: str, settings: Settings) -> Iterator[None]:
    """Wrap whatever goes wrong inside, once."""
    root = settings.root
    try:
        yield
    except FirnlineError as error:
        where = error.where or user_line(error, root) or collection.where
        what = f"{collection.kind} {collection.name!r} at {label}: {error.what}"
        raise FirnlineError(error.code, what, where, todo=error.todo) from error
    except Exception as error:
        where = _line(error, root) or collection.where
        code, text = diagnosed(error)
        if code == "STORAGE_UNAVAILABLE":
            text = f"{_storage(error, settings)}: {text}"
        what = f"{collection.kind} {collection.name!r} at {label}: {type(error).__name__}: {text}"
        raise FirnlineError(code, what, where) from error


def framed(returned: object, collection: Collection) -> DataFrame:
    """What a function returned, if it is a DataFrame."""
    if not isinstance(returned, DataFrame):
        raise FirnlineError("NOT_A_DATAFRAME", f"it returned {type(returned).__name__}, not a DataFrame", collection.where)
    return returned


def checked(returned: object, collection: Collection, apart: Sequence[str] = ()) -> DataFrame:
    """The frame that a function returned, if a log can hold its columns; but for those ``apart``, which tell about rows."""
    frame = framed(returned, collection)
    names = frame.columns
    twice = {name for name in names if [other.lower() for other in names].count(name.lower()) > 1}
    if twice:
        raise FirnlineError("WRONG_COLUMNS", f"it returned {', '.join(sorted(twice))} more than once", collection.where)
    for name in names:
        if is_reserved(name) and name not in apart:
            raise FirnlineError("RESERVED_COLUMN", f"it returned the column {name!r}", collection.where)
    missing = [name for name in dict.fromkeys((*collection.keys, *collection.partition_by)) if name not in names]
    if missing:
        listed = ", ".join(names) or "none"
        raise FirnlineError(
            "WRONG_COLUMNS", f"it returned no column {', '.join(missing)}; its columns: {listed}", collection.where
        )
    columns = StructType([field for field in frame.schema.fields if field.name not in apart])
    for field in columns.fields:
        check_kind(field.dataType)
    _refuse_maps(columns, collection)
    return frame


def _refuse_maps(columns: StructType, collection: Collection) -> None:
    """Spark 4.1 groups by a map only after sorting it, and there a null value of a primitive type becomes a zero."""
    for field in columns.fields:
        if "map<" in field.dataType.simpleString():
            raise FirnlineError(
                "UNSUPPORTED_TYPE",
                f"the column {field.name!r} holds a map, and Spark cannot compare maps without losing nulls",
                collection.where,
                todo="Return it as an array of structs: F.array_sort(F.map_entries(...)).",
            )


def difference_of(found: StructType, stored: StructType) -> str | None:
    """How columns differ from those that a collection has; None if they do not."""
    now, before = (shape(schema) for schema in (found, stored))
    if now == before:
        return None
    new = [f"{name} {kind}" for name, kind in sorted(now.items() - before.items())]
    gone = [f"{name} {kind}" for name, kind in sorted(before.items() - now.items())]
    return f"it returned {', '.join(new) or 'fewer columns'} where the collection has {', '.join(gone) or 'none'}"


def in_order(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame's columns in a given order."""
    return frame.select(*(F.col(quoted(name)) for name in names))


def shape(schema: StructType) -> dict[str, str]:
    """Types as Iceberg keeps them: every integer below bigint is an int."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    return {name: kind.replace("tinyint", "int").replace("smallint", "int") for name, kind in kinds.items()}


_OF_ANOTHER_DRIVER = ("INVALID_HANDLE.", "RESPONSE_ALREADY_RECEIVED", "incorrect server side session identifier")


def diagnosed(error: Exception) -> tuple[str, str]:
    """The code of an error that is not ours, and its text without the JVM's stack."""
    whole = str(error).strip()
    if _is_lost(error):
        return "ENGINE_LOST", "Spark's driver does not answer any more"
    text = _shortened(whole.split("\n\nJVM stacktrace")[0])
    for part, code in _MESSAGES.items():
        if part in whole:
            at = whole.rindex("Caused by: ") if code == "CATALOG_UNAVAILABLE" and "Caused by: " in whole else whole.index(part)
            cause = whole[whole.rfind("\n", 0, at) + 1 :].split("\n\tat ")[0]
            return code, _shortened(" ".join(cause.split()).removeprefix("Caused by: "))
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    known = [code for beginning, code in _CONDITIONS.items() if condition.startswith(beginning)]
    return known[0] if known else "STAGE_FAILED", text


def _storage(error: Exception, settings: Settings) -> str:
    """What refused to be written: Spark's text names no folder, but its stack shows who wrote."""
    return f"the warehouse {settings.warehouse}" if "org.apache.iceberg." in str(error) else "Spark's scratch folder"


def _is_lost(error: BaseException | None) -> bool:
    """Whether an error came from a driver that is gone, or from the next one, which knows nothing of the session."""
    while error is not None:
        if isinstance(error, grpc.RpcError) and error.code() is grpc.StatusCode.UNAVAILABLE:
            return True
        if any(word in str(error) for word in _OF_ANOTHER_DRIVER):
            return True
        error = error.__cause__ or error.__context__
    return False


def _line(error: Exception, root: Path) -> Location | None:
    """The user's line: where the error passed through the project's code, or where Spark says that the expression was written."""
    passed = user_line(error, root)
    if passed is not None or not isinstance(error, PySparkException):
        return passed
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.DataFrame:
            file, _, line = context.callSite().rpartition(":")
            if line.isdigit() and Path(file).is_relative_to(root):
                return Location(file, int(line))
    return None


def _shortened(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[:most]} ..."
