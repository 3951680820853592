"""Files of a table that is not ours, named by a log: read, taken out, brought back, let go of, and never touched; no JVM."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.fingerprint import Fingerprint
from firnline.tables import adopting
from firnline.tables.adopting import Adoptable
from firnline.tables.catalog import Catalog
from firnline.tables.log import PARTITION_BY, PARTS, Log
from firnline.tables.rewinding import rewind, undo
from firnline.tables.scan import state
from firnline.tables.sidecar import Sidecar
from firnline.tables.trash import Trash


@pytest.fixture
def theirs(iceberg: Catalog) -> int:
    """A table of which a column went and one came; its snapshot."""
    iceberg.opened.create_namespace("legacy")
    columns = pa.schema([("k", pa.int64()), ("gone", pa.string()), ("v", pa.string())])
    table = iceberg.opened.create_table(("legacy", "orders"), columns, location=f"{iceberg.warehouse}/legacy/orders")
    table.append(pa.table({"k": [1, 2], "gone": ["x", "y"], "v": ["a", None]}, schema=columns))
    with table.update_schema() as change:
        change.delete_column("gone")
    table.append(pa.table({"k": [3], "v": ["雪"]}, schema=pa.schema([("k", pa.int64()), ("v", pa.string())])))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def rows(iceberg: Catalog) -> list[tuple[int, str | None]]:
    found = state(iceberg.iceberg("shop", "orders"), 1)
    return sorted((row["k"], row["v"]) for row in found.to_pylist())


def test_adopted_files_go_and_come_back_and_are_never_removed(iceberg: Catalog, theirs: int) -> None:
    log = Log(iceberg, "shop", "orders")
    found = adopting.adoptable(iceberg, "lake.legacy.orders", theirs, 1)
    assert isinstance(found, Adoptable)
    adopting.create(iceberg, log, found, ("k",), 0, {PARTITION_BY: '["k"]', PARTS: "1"})
    assert adopting.is_ready(iceberg, log, found)
    adopting.keep(found, theirs, "firnline_shop_orders")
    adopting.keep(found, theirs, "firnline_shop_orders")
    adopting.stage(iceberg, log, found, "first", 0)
    sidecar = Sidecar("orders", 0, 1, "first", Fingerprint("f" * 32), {}, {(0, 0): Digest(3, 3, 1, 1)}, 0.1, parts=1)
    assert log.publish(0, sidecar, log.staged("first")) is Verdict.FREE
    expected = [(1, "a"), (2, None), (3, "雪")]
    assert rows(iceberg) == expected

    assert rewind(iceberg, log, "back", 1, 0) is not None
    assert rows(iceberg) == []
    assert undo(iceberg, log, "back", "forth", 2) is not None
    assert rows(iceberg) == expected, "named again as they were"

    rewind(iceberg, log, "again", 3, 0)
    log.expire(timedelta())
    table = log.load()
    assert table is not None
    trash = Trash(iceberg)
    named = trash.named(table)
    pieces = [piece.path for record in trash.records(table) for piece in trash.contents(table, record, named)]
    files = [each.file_path for each in found.files]
    assert pieces, "what was written beside them goes"
    assert not set(pieces) & set(files)
    assert all(Path(path.removeprefix("file://")).exists() for path in files)
    assert "firnline_shop_orders" in iceberg.iceberg("legacy", "orders").refs()

    other = Log(iceberg, "shop", "other").create(pa.schema([("k", pa.int64())]), (), 0, {PARTITION_BY: "[]", PARTS: "1"})
    trash.put_tables(other, [table])
    iceberg.forget(table)
    (record,) = trash.records(other)
    pieces = [piece.path for piece in trash.contents(other, record, trash.named(other))]
    assert pieces, "the log goes"
    assert not set(pieces) & set(files), "what it has adopted stays"


def test_a_later_snapshot_that_is_adopted_is_tagged_beside_the_earlier_one(iceberg: Catalog, theirs: int) -> None:
    table = iceberg.iceberg("legacy", "orders")
    table.append(pa.table({"k": [4], "v": ["b"]}, schema=pa.schema([("k", pa.int64()), ("v", pa.string())])))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for number in (theirs, snapshot.snapshot_id, theirs, snapshot.snapshot_id):
        found = adopting.adoptable(iceberg, "lake.legacy.orders", number, 1)
        assert isinstance(found, Adoptable)
        adopting.keep(found, number, "firnline_shop_orders")
    tags = {name: ref.snapshot_id for name, ref in table.refresh().refs().items() if name != "main"}
    later = snapshot.snapshot_id
    assert tags == {"firnline_shop_orders": theirs, f"firnline_shop_orders_{later}": later}


@pytest.mark.parametrize(
    ("name", "parts", "reason"),
    [
        ("lake.legacy.orders", 2, "2 parts"),
        ("other.legacy.orders", 1, "catalog 'lake'"),
        ("lake.a.b.c", 1, "catalog 'lake'"),
    ],
)
def test_what_cannot_be_named_says_why(iceberg: Catalog, theirs: int, name: str, parts: int, reason: str) -> None:
    found = adopting.adoptable(iceberg, name, theirs, parts)
    assert isinstance(found, str)
    assert reason in found
    assert adopting.adoptable(iceberg, "lake.legacy.orders", None, 1) == "it holds nothing"
