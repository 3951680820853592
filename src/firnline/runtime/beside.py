"""Rows in data files that may take their place in a log: looked at before they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from firnline.model.stored_file import StoredFile
from firnline.runtime.project import Project
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.log import Log

_NOWHERE_ELSE: Mapping[str, str] = MappingProxyType({})


@contextmanager
def rows_beside(
    project: Project,
    session: SparkSession,
    log: Log,
    files: Sequence[StoredFile],
    places: Mapping[str, str] = _NOWHERE_ELSE,
) -> Iterator[DataFrame]:
    """The rows of data files as rows of a log, beside it, as long as they are looked at; ``places`` is where files are now."""
    from firnline.engine.frames import table_name
    from firnline.engine.staging import staged_rows
    from firnline.tables.beside import name_beside

    attempt = world().new_id()
    try:
        snapshot, parent = name_beside(project.catalog, log, attempt, files, places)
        yield staged_rows(session, table_name(log.pipeline, log.collection), snapshot, parent)
    finally:
        log.discard(attempt)


def is_readable(project: Project, path: str) -> bool:
    """Whether every page of a data file can be read, without an engine that may fail for reasons of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = project.catalog.read(path)
    try:
        for _ in pq.ParquetFile(pa.BufferReader(content)).iter_batches():
            pass
    except (pa.ArrowException, OSError):
        return False
    return True
