"""A log that gets other columns, on real tables, without a JVM: what readers of every epoch see, whatever dies or doubles."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import firnline as fl
from firnline.model.epoch import Epoch
from firnline.runtime.advance import complete
from firnline.runtime.verify import verify
from firnline.tables.evolving import evolve
from firnline.tables.layers import KIND, SCHEMA
from firnline.tables.metadata import Metadata
from firnline.tables.port import Columns
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.project import make_project
from tests.shelf import Row, Shelf, emptied

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"], publish="table")
    def visits(epoch): ...
"""
BEFORE = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("n", pa.int32()),
        ("rate", pa.float32()),
        ("price", pa.decimal128(5, 2)),
        pa.field("note", pa.string(), nullable=False),
    ]
)
AFTER = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("count", pa.int64()),
        ("rate", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("note", pa.string()),
        ("tags", pa.list_(pa.string())),
    ]
)
LARGE = 5_000_000_000


def wanted(table: Metadata) -> Columns | None:
    if "count" in table.columns:
        return None
    made = pa.schema([field for field in AFTER if field.name not in ("id", "note")])
    return Columns(made, (("n", "count"),), ("note",))


def old(number: int) -> Row:
    return {"id": number, "n": number, "rate": 0.5, "price": Decimal("1.25"), "note": "a"}


def seen(number: int) -> Row:
    """An old row as it is read afterwards."""
    return {"id": number, "count": number, "rate": 0.5, "price": Decimal("1.25"), "note": "a", "tags": None}


def new(number: int) -> Row:
    return {"id": number, "count": LARGE, "rate": 0.1, "price": Decimal("1234567.25"), "note": None, "tags": ["ä"]}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("columns")
    make_project(root, web=PIPELINE).graph("web")
    return root


@pytest.fixture
def shelf(compiled: Path) -> Shelf:
    made = Shelf(emptied(compiled), "web", "visits", BEFORE, ("id",))
    made.publish([(old(0), 1)], [(old(1), 1)])
    follow(made)
    return made


def follow(shelf: Shelf) -> None:
    complete(shelf.project, shelf.project.graph("web"), Epoch(len(shelf.deltas) - 1, len(shelf.deltas)))


def rows(shelf: Shelf, as_of: str | None = None) -> list[Row]:
    found: list[Row] = fl.scan("web.visits", as_of=as_of, project=shelf.project).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def grow(shelf: Shelf) -> None:
    """Let the columns be others, and an epoch bring rows of them."""
    evolve(shelf.project.catalog, shelf.log, "columns", wanted)
    shelf.schema = AFTER
    shelf.publish([(seen(0), -1), (new(0), 1), (new(2), 1)])
    follow(shelf)


def test_every_epoch_is_read_under_the_columns_of_today(shelf: Shelf) -> None:
    grow(shelf)
    assert rows(shelf, "0") == [seen(0)]
    assert rows(shelf, "1") == [seen(0), seen(1)]
    assert rows(shelf) == [new(0), seen(1), new(2)]
    told = fl.changes("web.visits", after="1", project=shelf.project).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in told) == [("DELETE", 0), ("INSERT", 0), ("INSERT", 2)]
    plain = shelf.project.catalog.iceberg("web__tables", "visits").scan().to_arrow().to_pylist()
    assert sorted(plain, key=lambda row: row["id"]) == rows(shelf)
    assert [each.kind for each in verify(shelf.project, "web").problems] == []


def test_a_column_that_may_be_null_from_now_on_may_be_so_everywhere(shelf: Shelf) -> None:
    def optional(table: Metadata) -> Columns | None:
        return Columns(pa.schema([]), optional=("note",)) if "note" in table.required else None

    evolve(shelf.project.catalog, shelf.log, "optional", optional)
    shelf.schema = pa.schema([field.with_nullable(field.name != "id") for field in BEFORE])
    shelf.publish([(old(1), -1), ({**old(1), "note": None}, 1)])
    follow(shelf)
    assert rows(shelf) == [old(0), {**old(1), "note": None}]
    plain = shelf.project.catalog.iceberg("web__tables", "visits").scan().to_arrow().to_pylist()
    assert sorted(plain, key=lambda row: row["id"]) == rows(shelf)


def test_a_filter_on_a_widened_or_renamed_column_finds_rows_of_old_files(shelf: Shelf) -> None:
    grow(shelf)
    for where, expected in (("count = 1", [1]), ("rate = 0.5", [1]), ("price = 1.25", [1]), (f"count > {LARGE - 1}", [0, 2])):
        found = fl.scan("web.visits", where=where, project=shelf.project).to_arrow().to_pylist()
        assert sorted(row["id"] for row in found) == expected, where


def test_merged_layers_hold_the_same(shelf: Shelf) -> None:
    grow(shelf)
    shelf.deltas = [[(seen(0), 1)], [(seen(1), 1)], *shelf.deltas[2:]]
    shelf.merge(0, 2)
    assert rows(shelf, "1") == [seen(0), seen(1)]
    assert rows(shelf) == [new(0), seen(1), new(2)]


def test_it_happens_once_wherever_it_is_killed(shelf: Shelf) -> None:
    for number, point in enumerate(("schema.judged", "schema.described", "schema.committed")):
        mortal = Mortal()
        mortal.kill_at = point
        with replaced(mortal), pytest.raises(Killed):
            evolve(shelf.project.catalog, shelf.log, f"killed{number}", wanted)
    grow(shelf)
    table = shelf.log.load()
    assert table is not None
    assert [each.summary.get(KIND) for each in table.main_line()].count(SCHEMA) == 1
    assert rows(shelf) == [new(0), seen(1), new(2)]
