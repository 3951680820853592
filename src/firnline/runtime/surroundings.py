"""What a profile names outside of this process: databases, storage, Spark's master and its executors; each can be asked.

Nothing is left behind: the warehouse is written to and read under a name of its own, which is deleted again. Executors are asked
only where they are not this machine's own, since that starts a driver.
"""

from __future__ import annotations

import socket
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from firnline.errors import FirnlineError
from firnline.runtime.prerequisites import Finding, Prerequisite
from firnline.settings import Settings, is_rest

CLOCK_SECONDS = 60
"""How far this machine's clock may be from the database's: as much as Iceberg tolerates."""
_PATIENCE = 5.0


def check_database(uri: str, setting: str) -> Finding:
    """A database answers; one beyond this machine takes a table, and has the same time."""
    if urlsplit(uri).scheme.startswith("sqlite"):
        return _check_file(Path(unquote(urlsplit(uri).path[1:])), setting)
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.exc import SQLAlchemyError

    how = f"Let the server run, and correct {setting} (the password belongs into the environment)."
    try:
        url = make_url(uri)
        shown = url.render_as_string(hide_password=True)
        engine = create_engine(url, connect_args={"connect_timeout": int(_PATIENCE)})
        with engine.connect() as connection:
            there = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
            version = connection.execute(text("SHOW server_version")).scalar_one()
            off = abs(time.time() - float(there))
            connection.execute(text("CREATE TABLE firnline_doctor (one integer)"))
            connection.rollback()
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        reason = _first_line(getattr(error, "orig", None) or error)
        return Finding(False, reason, how)
    if off > CLOCK_SECONDS:
        return Finding(False, f"{shown}: its clock is {off:.0f} s off this machine's", "Set both clocks by NTP.")
    return Finding(True, f"{shown}, PostgreSQL {version}, clock {off:.1f} s off")


def _first_line(error: BaseException) -> str:
    """What an error says first, or at least its kind."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def check_catalog(settings: Settings) -> Finding:
    """The catalog's database, or its service, answers."""
    uri = settings.catalog_uri
    if not is_rest(uri):
        return check_database(uri, "FIRNLINE_CATALOG_URI")
    from firnline.tables.rest import RestPointers

    how = "Let the service run; correct FIRNLINE_CATALOG_URI and FIRNLINE_CATALOG_OPTIONS (secrets belong into the environment)."
    try:
        spaces = RestPointers(uri, settings.catalog_options).spaces()
    except FirnlineError as error:
        return Finding(False, error.what, how)
    return Finding(True, f"{uri}, a REST catalog with {len(spaces)} namespaces")


def _check_file(file: Path, setting: str) -> Finding:
    if not file.exists():
        return Finding(True, f"{file}, not made yet")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return Finding(False, f"{file}: {error}", f"Restore the file from a copy, or set {setting} to another database.")
    return Finding(True, str(file))


def check_warehouse(settings: Settings) -> Finding:
    """The warehouse takes a file, gives it back, and lets it be deleted."""
    import fsspec

    path, content = f"{settings.warehouse}/_doctor/{uuid4().hex}", b"firnline"
    how = "Let the storage run; name it by FIRNLINE_WAREHOUSE, and keys by its own variables (for S3: AWS_*)."
    try:
        filesystem, inner = fsspec.url_to_fs(path)
        filesystem.makedirs(filesystem._parent(inner), exist_ok=True)
        filesystem.pipe_file(inner, content)
        is_same = filesystem.cat_file(inner) == content
        filesystem.rm_file(inner)
        with suppress(OSError):  # on a disk a folder stays, in an object store there never was one
            filesystem.rmdir(filesystem._parent(inner))
    except Exception as error:  # whatever an fsspec backend raises
        return Finding(False, f"{settings.warehouse}: {type(error).__name__}: {error}", how)
    return Finding(is_same, f"{settings.warehouse}: written, read, deleted", how)


def check_master(settings: Settings) -> Finding:
    """Spark's master listens, where it is one of a standalone cluster."""
    master = settings.spark_master
    if not master.startswith("spark://"):
        return Finding(True, master)
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _PATIENCE):
            return Finding(True, f"{master}, {address} listens")
    return Finding(False, f"{master}: nobody listens", "Start the master, or correct FIRNLINE_SPARK_MASTER.")


def check_executors(settings: Settings) -> Finding:
    """Executors beyond this machine find the jars, this Python's packages and the warehouse."""
    if settings.spark_master.startswith("local"):
        return Finding(True, "in the driver")
    from firnline.engine.session import opened

    how = (
        "Let workers run, with the jars of .firnline/jars and this Python environment at the same paths, "
        "the same spark.authenticate.secret, and keys to the warehouse in their environment."
    )
    try:
        with opened(settings, "firnline doctor") as session:
            versions = session.range(2, numPartitions=2).mapInArrow(_versions, "version string").distinct().collect()
    except Exception as error:  # Spark's own, py4j's or gRPC's
        return Finding(False, _first_line(error)[:300], how)
    return Finding(True, ", ".join(sorted(row.version for row in versions)))


def _versions(batches):  # type: ignore[no-untyped-def]  # Spark's signature
    import platform

    import pyarrow as pa
    import pyspark

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [f"Python {platform.python_version()}, PySpark {pyspark.__version__}"]})


SURROUNDINGS: tuple[Prerequisite[Settings], ...] = (
    Prerequisite("catalog", check_catalog),
    Prerequisite("ledger", lambda settings: check_database(settings.ledger_uri, "FIRNLINE_LEDGER_URI")),
    Prerequisite("warehouse", check_warehouse),
    Prerequisite("Spark's master", check_master),
    Prerequisite("executors", check_executors),
)
"""Checked in this order, after what is on this machine."""
