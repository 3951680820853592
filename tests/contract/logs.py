"""Attempts at a log."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.model.stored_file import StoredFile
from firnline.tables.log import ATTEMPT, Log
from firnline.tables.sidecar import Input, Sidecar
from tests.simulation.memory import MemoryTables

in_a_database = pytest.mark.parametrize("iceberg", ["sqlite", "postgresql"], indirect=True)
"""A catalog that can name a metadata file which is lost, and be locked; a service cannot."""

STORED = pa.schema([("k", pa.string()), ("_epoch", pa.int64()), ("_diff", pa.int64()), ("_part", pa.int32())])


def attempt(lower: int, upper: int, name: str) -> Sidecar:
    inputs = {"pages": Input(0, upper, 7, 3, "all")}
    return Sidecar(
        "visits", lower, upper, name, Fingerprint("f" * 32, "p" * 32), inputs, {(lower, 0): Digest(2, 0, 3, 2**64 - 1)}, 1.5
    )


def uppers(log: Log) -> list[int]:
    return [entry.description.upper for entry in log.entries()]


def stage(log: Log, name: str, epoch: int) -> int:
    """Stage two rows of one epoch, as Spark does."""
    tables: Any = log._catalog
    values = [f"{epoch} first", f"{epoch} second"]
    if isinstance(tables, MemoryTables):
        tables.stage_by_spark("web", "visits", [((value,), epoch, 1) for value in values], {ATTEMPT: name})
    else:
        rows = [{"k": value, "_epoch": epoch, "_diff": 1, "_part": 0} for value in values]
        table = tables.iceberg("web", "visits")
        table.append(pa.Table.from_pylist(rows, schema=STORED), snapshot_properties={ATTEMPT: name}, branch=None)
    return log.staged(name)


def publish(log: Log, name: str, epoch: int) -> None:
    assert log.publish(0, attempt(epoch, epoch + 10, name), stage(log, name, epoch)) is Verdict.FREE


def file_of(log: Log, epoch: int) -> StoredFile:
    (entry,) = (entry for entry in log.entries() if entry.lower == epoch)
    (file,) = log.sidecar(entry).files or ()
    return file


def rows(log: Log) -> list[str]:
    """What the head holds, with every file opened."""
    tables: Any = log._catalog
    table = log.load()
    assert table is not None
    if isinstance(tables, MemoryTables):
        return sorted(row[0] for row in tables.state(table, table.current, 1000))
    found: list[str] = tables.iceberg("web", "visits").scan(selected_fields=("k",)).to_arrow()["k"].to_pylist()
    return sorted(found)


def lose(log: Log, file: StoredFile) -> None:
    if isinstance(log._catalog, MemoryTables):
        del log._catalog.rows[int(file.path)]
    else:
        log._catalog.remove(file.path)
