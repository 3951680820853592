"""``firnline.scan`` on real tables, without a JVM: what it gives at every epoch, what it reads for it, and what it refuses."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, Not, Reference

import firnline as fl
from firnline.errors import FirnlineError
from firnline.runtime.project import Project
from tests.project import make_project
from tests.shelf import Delta, Row, Shelf, emptied, multiset, rescaled

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["id"], parts=4)
    def visits(epoch): ...

    @web.source(keys=["id"])
    def pages(epoch): ...
"""
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("small", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("rate", pa.float64()),
        ("thin", pa.float32()),
        ("is_new", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("inner", pa.struct([("x", pa.float64()), ("y", pa.string())])),
        ("tags", pa.list_(pa.string())),
        ("facts", pa.map_(pa.string(), pa.int64())),
    ]
)
FLOATS = (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -2.5, None)
NAMES = ("ä", "ß€", "日本", "a'b", "", None, "z" * 40)


def row(number: int, version: int = 0) -> Row:
    """A row of every type, with all that is odd about it."""
    rate = FLOATS[(number + version) % len(FLOATS)]
    moment = datetime(2026, 3, 29, tzinfo=UTC) + timedelta(hours=number, microseconds=number)
    return {
        "id": number,
        "name": NAMES[number % len(NAMES)],
        "small": None if number % 5 == 0 else number - 10,
        "price": None if number % 7 == 0 else Decimal(number * 37 - 300).scaleb(-2),
        "rate": rate,
        "thin": None if rate is None else pa.scalar(rate / 3, pa.float32()).as_py(),
        "is_new": (None, True, False)[number % 3],
        "day": date(2026, 1, 1) + timedelta(days=number),
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "raw": bytes([number % 256, 255]),
        "inner": None if number % 6 == 0 else {"x": rate, "y": NAMES[(number + 1) % len(NAMES)]},
        "tags": [str(number), None],
        "facts": [("b", number), ("a", version)],
    }


def history() -> list[Delta]:
    """Epochs that insert, change and remove; a removed row is written a little differently where that is the same."""

    def other(number: int, version: int) -> Row:
        same = row(number, version)
        if same["rate"] == 0:
            same["rate"] = -same["rate"]
        same["facts"] = same["facts"][::-1]
        return same

    first: Delta = [(row(number), 1) for number in range(40)]
    second: Delta = [change for number in range(8) for change in ((other(number, 0), -1), (row(number, 1), 1))]
    third: Delta = [(other(number, 0), -1) for number in range(30, 36)] + [(row(number), 1) for number in range(40, 44)]
    fourth: Delta = [change for number in range(8) for change in ((other(number, 1), -1), (row(number, 2), 1))]
    return [first, second, third, fourth, [(row(100), 1)]]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs are compiled once: each takes seconds."""
    root = tmp_path_factory.mktemp("scanned")
    make_project(root, web=PIPELINE).graph("web")
    return root


@pytest.fixture
def project(compiled: Path) -> Project:
    """With nothing in it."""
    return emptied(compiled)


def filled(project: Project) -> Shelf:
    made = Shelf(project, "web", "visits", SCHEMA, ("id",), parts=4)
    made.publish(*history())
    made.complete()
    return made


@pytest.fixture
def shelf(project: Project) -> Shelf:
    return filled(project)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """One that tests only read."""
    return filled(make_project(tmp_path_factory.mktemp("still"), web=PIPELINE))


def test_every_epoch_is_the_sum_of_its_deltas_however_they_are_layered(shelf: Shelf) -> None:
    for merge in (None, (0, 2), (0, 3)):
        if merge is not None:
            shelf.merge(*merge)
        for epoch in range(shelf.since - 1 if shelf.since else 0, 5):
            found = fl.scan("web.visits", as_of=str(epoch), project=shelf.project)
            assert (found.as_of, found.columns) == (str(epoch), tuple(SCHEMA.names))
            assert multiset(found.to_arrow().to_pylist()) == multiset(shelf.state(epoch + 1)), f"epoch {epoch}, {merge}"


def test_rows_that_become_equal_by_leaving_columns_out_are_all_there(still: Shelf) -> None:
    for columns in (["is_new"], ["rate", "is_new"], ["tags"], ["inner", "name"], ["facts"]):
        found = fl.scan("web.visits", columns=columns, project=still.project)
        expected = [{name: each[name] for name in columns} for each in still.state(5)]
        assert found.columns == tuple(columns)
        assert multiset(found.to_arrow().to_pylist()) == multiset(expected)


def above(value: Any, limit: float) -> bool:
    return value is not None and (math.isnan(value) or value > limit)


def inside(each: Row, name: str) -> Any:
    return None if each["inner"] is None else each["inner"][name]


AT = datetime(2026, 3, 29, 5, tzinfo=UTC)
FILTERS: dict[str, tuple[Any, Callable[[Row], bool]]] = {
    "equal": ("id = 7", lambda r: r["id"] == 7),
    "range": ("id between 3 and 9", lambda r: 3 <= r["id"] <= 9),
    "fraction of an integer": ("small > 1.5 and small < 4.5", lambda r: r["small"] in (2, 3, 4)),
    "beyond the type": ("small < 99999999999", lambda r: r["small"] is not None),
    "null is not in a list": ("small not in (1, 2)", lambda r: r["small"] not in (None, 1, 2)),
    "null is neither": ("small = 1 or not (small = 1)", lambda r: r["small"] is not None),
    "decimal": ("price >= 0.33 and price <= 1.81", lambda r: r["price"] is not None and 33 <= r["price"] * 100 <= 181),
    "between decimals": ("price > 0.335", lambda r: r["price"] is not None and r["price"] > Decimal("0.335")),
    "decimal as text": ("price = '0.33'", lambda r: r["price"] == Decimal("0.33")),
    "unicode": ("name = '日本' or name like 'ß%'", lambda r: r["name"] in ("日本", "ß€")),
    "quote": ("name = 'a''b'", lambda r: r["name"] == "a'b"),
    "not like": ("name not like 'z%'", lambda r: r["name"] is not None and not r["name"].startswith("z")),
    "boolean": ("is_new = true", lambda r: r["is_new"] is True),
    "date": ("day < '2026-01-05'", lambda r: r["day"] < date(2026, 1, 5)),
    "moment without zone": ("at < '2026-03-29T05:00:00'", lambda r: r["at"] < AT),
    "moment with zone": ("at < '2026-03-29T07:00:00+02:00'", lambda r: r["at"] < AT),
    "local moment": ("local >= '2026-03-29T05:00:00'", lambda r: r["local"] >= AT.replace(tzinfo=None)),
    "NaN is above": ("rate > 1.5", lambda r: above(r["rate"], 1.5)),
    "NaN is not below": ("rate < 1.5", lambda r: r["rate"] is not None and r["rate"] < 1.5),
    "not below": ("not rate < 1.5", lambda r: r["rate"] == 1.5 or above(r["rate"], 1.5)),
    "zeros are equal": ("rate = 0", lambda r: r["rate"] == 0),
    "not zero": ("rate != -0.0", lambda r: r["rate"] is not None and r["rate"] != 0),
    "NaN": ("rate is nan", lambda r: r["rate"] is not None and math.isnan(r["rate"])),
    "floats of a list": ("rate in (0.0, 1.5)", lambda r: r["rate"] in (0.0, 1.5)),
    "floats not of a list": ("rate not in (0.0, 1.5)", lambda r: r["rate"] is not None and r["rate"] not in (0.0, 1.5)),
    "single precision is not double": ("thin = 0.8333333333333334", lambda r: False),
    "mixed": ("(rate > 1 or id < 4) and id < 20", lambda r: (above(r["rate"], 1) or r["id"] < 4) and r["id"] < 20),
    "inner": ("inner.y = 'ä' and inner.x >= 0", lambda r: inside(r, "y") == "ä" and above(inside(r, "x"), -1e-9)),
    "inner null": ("inner.y is null", lambda r: r["inner"] is None or r["inner"]["y"] is None),
    "whole struct": ("inner is null", lambda r: r["inner"] is None),
    "expression": (Not(EqualTo("name", "ä")), lambda r: r["name"] not in (None, "ä")),
    "bytes": (EqualTo("raw", b"\x07\xff"), lambda r: r["raw"] == b"\x07\xff"),
    "date expression": (GreaterThan(Reference("day"), date(2026, 2, 1)), lambda r: r["day"] > date(2026, 2, 1)),
    "moment expression": (GreaterThan("at", AT), lambda r: r["at"] > AT),
    "equal to NaN": ("rate = 'NaN'", lambda r: r["rate"] is not None and math.isnan(r["rate"])),
    "nothing": ("false", lambda r: False),
    "everything": ("true", lambda r: True),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_gives_the_rows_that_it_holds_for(still: Shelf, name: str) -> None:
    where, holds = FILTERS[name]
    for columns in (None, ["tags"], ["is_new"]):
        for epoch in (0, 1, 4):
            found = fl.scan("web.visits", as_of=str(epoch), columns=columns, where=where, project=still.project).to_arrow()
            kept = columns or SCHEMA.names
            expected = [{each: r[each] for each in kept} for r in still.state(epoch + 1) if holds(r)]
            assert multiset(found.to_pylist()) == multiset(expected)


def test_a_filter_after_another_holds_too(still: Shelf) -> None:
    both = fl.scan("web.visits", project=still.project).where("id < 10").where("rate > 1").select("id")
    expected = [r["id"] for r in still.state(5) if r["id"] < 10 and above(r["rate"], 1)]
    assert sorted(both.to_arrow()["id"].to_pylist()) == sorted(expected)


def test_a_filter_reads_only_files_that_may_hold_its_rows(still: Shelf) -> None:
    def files(where: str | None) -> int:
        return len(fl.scan("web.visits", where=where, project=still.project).files())

    every = files(None)
    assert every > 12
    assert files("id = 100") == 1
    assert files("id = 7") <= 3, "one part of the three epochs that touch it"
    assert files("id in (7, 100)") <= 6, "two parts of them"
    assert files("day > '2026-03-01'") == 1
    assert files("false") == 0
    assert files("rate > '1e300'") == every, "bounds of floating numbers are not believed"


@pytest.mark.parametrize(
    ("where", "code", "told"),
    [
        ("nothing = 1", "NO_SUCH_COLUMN", "id, name"),
        ("_epoch < 3", "NO_SUCH_COLUMN", "_epoch"),
        ("inner.z = 1", "NO_SUCH_COLUMN", "inner.z"),
        ("tags.element = 'x'", "NO_SUCH_COLUMN", "tags.element"),
        ("id ==== 1", "BAD_FILTER", "id ===="),
        ("id = 'seven'", "BAD_FILTER", "seven"),
        ("name = 7", "BAD_FILTER", "7"),
        ("day = '2026-13-01'", "BAD_FILTER", "2026-13-01"),
        ("local < '2026-03-29T05:00:00+02:00'", "BAD_FILTER", "time zone"),
        ("tags = 'x'", "BAD_FILTER", "list"),
        ("id is nan", "BAD_FILTER", "NaN"),
        ("id like '1%'", "BAD_FILTER", "string"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(still: Shelf, where: str, code: str, told: str) -> None:
    with pytest.raises(FirnlineError, match=f"^{code}: ") as refusal:
        fl.scan("web.visits", where=where, project=still.project)
    assert told in str(refusal.value)


def test_what_cannot_be_scanned_is_refused(shelf: Shelf) -> None:
    def code(*names: str, **options: Any) -> str:
        with pytest.raises(FirnlineError) as refusal:
            fl.scan(*names, project=shelf.project, **options)
        return refusal.value.code

    assert code("web.nothing") == "NO_SUCH_COLLECTION"
    assert code("web.pages") == "NO_SUCH_COLLECTION"
    assert code() == "NO_SUCH_COLLECTION"
    assert code("nothing.visits") == "NO_SUCH_PIPELINE"
    assert code("web.visits", columns=["id", "_diff"]) == "NO_SUCH_COLUMN"
    assert code("web.visits", columns=[]) == "BAD_OPTION"
    assert code("web.visits", "web.visits", where="id = 1") == "BAD_OPTION"
    assert code("web.visits", as_of="5") == "EPOCH_NOT_COMPLETE"
    shelf.merge(0, 4)
    assert code("web.visits", as_of="2") == "EPOCH_COMPACTED"
    assert len(fl.scan("web.visits", as_of="3", project=shelf.project).to_arrow()) == len(shelf.state(4))


def test_rows_in_the_words_of_other_tools(still: Shelf) -> None:
    scan = fl.scan("web.visits", columns=["id", "price", "at"], where="id < 5", project=still.project)
    expected = sorted((r["id"], r["price"], r["at"]) for r in still.state(5) if r["id"] < 5)
    assert sorted(scan.to_pandas()["id"]) == [each[0] for each in expected]
    with duckdb.connect() as connection:
        scan.to_duckdb(connection, 'few "visits"')
        found = connection.execute('SELECT id, price, epoch_us("at") FROM "few ""visits""" ORDER BY id').fetchall()
    micros = [
        (number, price, (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)) for number, price, at in expected
    ]
    assert found == micros
    assert sorted(scan.to_polars().rows()) == expected


def test_every_type_reaches_polars(still: Shelf) -> None:
    rows = fl.scan("web.visits", project=still.project).to_polars().to_dicts()
    told = [{**each, "facts": list(each["facts"].items())} for each in rows]
    assert multiset(told) == multiset(still.state(5))
    nothing = fl.changes("web.visits", after="4", project=still.project).to_polars()
    assert nothing.shape == (0, len(SCHEMA) + 3)


def test_a_tool_that_is_not_installed_is_named(still: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(FirnlineError, match=r"MISSING_PACKAGE: polars is not installed\. Install it: pip install polars"):
        fl.scan("web.visits", project=still.project).to_polars()


def test_several_collections_are_read_up_to_one_epoch(shelf: Shelf) -> None:
    pages = Shelf(shelf.project, "web", "pages", pa.schema([("id", pa.int64())]), ("id",))
    pages.publish(*([({"id": epoch}, 1)] for epoch in range(6)))
    visits, scanned = fl.scan("web.visits", "web.pages", project=shelf.project)
    assert (visits.as_of, scanned.as_of) == ("4", "4")
    pages.complete()
    shelf.publish([(row(101), 1)])
    pages.publish([({"id": 6}, 1)])
    assert sorted(scanned.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4], "what it saw when it was made"
    assert len(visits.to_arrow()) == len(shelf.state(5))


def test_a_merge_and_the_removal_of_old_files_do_not_break_a_scan_that_was_begun(shelf: Shelf) -> None:
    before = fl.scan("web.visits", as_of="3", project=shelf.project)
    older = fl.scan("web.visits", as_of="1", project=shelf.project)
    gone = shelf.merge(0, 4)
    assert multiset(before.to_arrow().to_pylist()) == multiset(shelf.state(4))
    assert multiset(older.to_arrow().to_pylist()) == multiset(shelf.state(2)), "its files are still there"
    for path in gone:
        shelf.project.catalog.remove(path)
    assert multiset(before.to_arrow().to_pylist()) == multiset(shelf.state(4))
    assert before.files()
    with pytest.raises(FirnlineError, match="EPOCH_COMPACTED"):
        older.to_arrow()


def test_a_lost_file_is_told(shelf: Shelf) -> None:
    scan = fl.scan("web.visits", project=shelf.project)
    shelf.project.catalog.remove(scan.files()[0])
    with pytest.raises(FirnlineError, match=r"LOG_UNREADABLE: web\.visits"):
        scan.to_arrow()


def test_a_selective_scan_of_many_layers_reads_one_file_a_touching_layer(project: Project) -> None:
    made = Shelf(project, "web", "visits", pa.schema([("id", pa.int64()), ("n", pa.int64())]), ("id",), parts=4)
    made.publish(*([({"id": epoch * 100 + at, "n": epoch}, 1) for at in range(100)] for epoch in range(40)))
    made.publish([({"id": 7, "n": 0}, -1), ({"id": 7, "n": 1}, 1)])
    made.complete()
    scan = fl.scan("web.visits", where="id = 7", project=project)
    assert len(scan.files()) == 2
    assert scan.to_arrow().to_pylist() == [{"id": 7, "n": 1}]


def test_importing_firnline_imports_no_engine() -> None:
    heavy = "'pyspark', 'pyiceberg', 'sqlalchemy', 'great_expectations', 'pyarrow'"
    code = f"import firnline, sys; print([each for each in ({heavy}) if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_parts_are_not_read_of_a_log_that_was_cut_into_others_meanwhile(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = fl.scan("web.visits", project=shelf.project).to_batches()
    monkeypatch.setattr("firnline.runtime.scan._MOST_ROWS", 1)
    by_parts = fl.scan("web.visits", project=shelf.project).to_batches()
    for path in rescaled(shelf, 8):
        shelf.project.catalog.remove(path)
    assert len(at_once.read_all()) == len(shelf.state(5))
    with pytest.raises(FirnlineError, match="GENERATION_CHANGED"):
        by_parts.read_all()
