"""Data files named beside a log, wherever they are, are read as its rows are."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.tables.beside import name_beside
from firnline.tables.catalog import Catalog
from firnline.tables.log import Log
from tests.contract.logs import file_of, publish


@pytest.mark.parametrize("iceberg", ["sqlite"], indirect=True)
def test_files_are_read_by_the_ids_of_their_columns_where_they_are_and_the_log_stays_as_it_is(iceberg: Catalog) -> None:
    log = Log(iceberg, "web", "visits")
    log.create(pa.schema([("k", pa.string())]), ("k",), 0, {})
    for name, epoch in (("a", 0), ("b", 10), ("c", 20)):
        publish(log, name, epoch)
    first, second = file_of(log, 0), file_of(log, 10)
    elsewhere = second.path + ".elsewhere"
    shutil.copy(second.path.removeprefix("file://"), elsewhere.removeprefix("file://"))
    with iceberg.iceberg("web", "visits").update_schema() as schema:
        schema.rename_column("k", "renamed")
    before = log.load()
    assert before is not None

    snapshot, parent = name_beside(iceberg, log, "look", [first, second], {second.path: elsewhere})
    assert parent == before.current
    assert (snapshot, parent) == name_beside(iceberg, log, "look", [first, second], {second.path: elsewhere}), "not twice"
    table = log.load()
    assert table is not None
    assert table.current == before.current
    assert set(iceberg.data_files(table, snapshot)) == {first, replace(second, path=elsewhere)}
    read = iceberg.iceberg("web", "visits").scan(snapshot_id=snapshot).to_arrow()["renamed"].to_pylist()
    assert sorted(read) == sorted([*("0 first", "0 second", "10 first", "10 second") * 2, "20 first", "20 second"])

    log.discard("look")
    assert sorted(iceberg.iceberg("web", "visits").scan().to_arrow()["renamed"].to_pylist()) == sorted(set(read))
    assert Path(first.path.removeprefix("file://")).exists()
