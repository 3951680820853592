"""The one Spark session of a process for all of its tests, on a catalog and a warehouse of their own, which end with it.

They are in memory where there is a file system for that. Nothing of the project's own tables is read or written.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from firnline.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

_BELOW_WORK = {"FIRNLINE_WAREHOUSE": "", "FIRNLINE_CATALOG_URI": "", "FIRNLINE_LEDGER_URI": "", "FIRNLINE_REPLICAS": "[]"}
_IN_MEMORY = Path("/dev/shm")
_ENOUGH = 2**30
_PREFIX = "firnline-tests-"
_ALIVE = "alive"
"""A file that is locked as long as its folder is in use."""
# Rows of tests are few, and the process is short: no time for more than the quickest compiler, nor to compile every plan.
_QUICK = {"spark_master": "local[2]", "spark_shuffle_partitions": 2, "spark_java_options": "-XX:TieredStopAtLevel=1"}
_QUICK_CONF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings that change no answer; those of the project come before them."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A session, and the folder of its catalog and warehouse."""

    work: Path
    session: SparkSession


_lake: Lake | None = None
_numbers = count(1)


def lake(root: Path | None = None) -> Lake:
    """The lake of this process; who asks first opens it, with the jars and the Spark settings of their project."""
    global _lake
    if _lake is None:
        from firnline.engine.session import opened  # late: it loads PySpark

        with ExitStack() as ending:
            work = ending.enter_context(_folder())
            settings = moved(root, work)
            settings = settings.model_copy(update={**_QUICK, "spark_conf": {**_QUICK_CONF, **settings.spark_conf}})
            _lake = Lake(work, ending.enter_context(opened(settings, "tests")))
            atexit.register(ending.pop_all().close)
    return _lake


def namespace(pipeline: str) -> str:
    """A name for tables that no other test of this process has."""
    return f"{pipeline}__{next(_numbers)}"


def frame_of(session: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return session.createDataFrame(table if table.num_rows else [], schema)


def moved(root: Path | None, work: Path) -> Settings:
    """The project's settings with everything that is written below another folder, and the jars where they are."""
    work = work.resolve()
    jars = work / "jars"
    if not jars.exists():
        work.mkdir(parents=True, exist_ok=True)
        jars.symlink_to(Settings.load(root).jars)
    with mock.patch.dict(os.environ, {"FIRNLINE_WORK": str(work), **_BELOW_WORK}):
        return Settings.load(root)


@contextmanager
def _folder() -> Iterator[Path]:
    """A new folder that ends with the process; those of processes that were killed end here, since memory is not for good."""
    is_there = os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free >= _ENOUGH
    above = _IN_MEMORY if is_there else Path(tempfile.gettempdir())
    for old in above.glob(f"{_PREFIX}*"):
        if _is_left(old / _ALIVE):
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
    with (work / "starting").open("w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        (work / "starting").rename(work / _ALIVE)  # by now it is locked
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _is_left(alive: Path) -> bool:
    try:
        with alive.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
