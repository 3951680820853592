"""Rows found through a concordance are those that a look at every row finds."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.tables import concordance
from firnline.tables.catalog import Catalog
from firnline.tables.concordance import Concordance, Field, hashed, is_hashed, kind_of, large

KINDS: dict[str, Any] = {
    "long": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "int": st.integers(-(2**31), 2**31 - 1),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)),
    "decimal(38, 2)": st.decimals(-(10**25), 10**25, places=2) | st.just(Decimal("-0.01")),
    "string": st.text(max_size=4) | st.text(alphabet="ab\0é𝄞", max_size=12),
    "binary": st.binary(max_size=4),
}


@pytest.fixture(params=[0, 1 << 17], ids=["looked up", "read"])
def found_by(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Concordance:
    monkeypatch.setattr(concordance, "_SMALL", request.param)
    return Concordance(tmp_path / "kept")


def written(path: Path, **columns: pa.Array) -> tuple[str, list[Field]]:
    """A data file whose columns have the ids 1, 2, ..."""
    fields = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(at)})
        for at, (name, values) in enumerate(columns.items(), start=1)
    ]
    pq.write_table(pa.table([*columns.values()], pa.schema(fields)), path)
    return f"file://{path}", [Field(at, field.name, field.type) for at, field in enumerate(fields, start=1)]


def wanted(*columns: pa.Array) -> np.ndarray[Any, Any]:
    return np.unique(hashed([large(each) for each in columns]))


@pytest.mark.parametrize("described", KINDS)
def test_rows_are_found_by_values_of_every_type(described: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind = kind_of(described)
    folder = tmp_path_factory.mktemp("files")

    @settings(max_examples=6, deadline=None)
    @given(st.lists(KINDS[described] | st.none(), min_size=1, max_size=60), st.lists(KINDS[described], max_size=5), st.data())
    def check(values: list[Any], others: list[Any], data: st.DataObject) -> None:
        asked = [*others, *data.draw(st.lists(st.sampled_from(values), max_size=5))]
        path, fields = written(
            folder / f"{len(list(folder.iterdir()))}.parquet", key=pa.array(values, kind), n=pa.array(range(len(values)))
        )
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(concordance, "_SMALL", 0)
            keys = wanted(pa.array(asked, kind)) if asked else np.zeros(0, np.uint64)
            found = Concordance(folder / "kept").found(path, len(values), fields[:1], keys, fields)
        expected = [(value, at) for at, value in enumerate(values) if value in asked]
        assert found.schema.types == [kind, pa.int64()]
        assert list(zip(found["key"].to_pylist(), found["n"].to_pylist(), strict=True)) == expected

    check()


def test_keys_of_several_columns_are_taken_together(tmp_path: Path, found_by: Concordance) -> None:
    one, other = pa.array(["a", "a", "b", None]), pa.array([1, 2, 1, 1], pa.int32())
    path, fields = written(tmp_path / "f.parquet", one=one, other=other)
    keys = wanted(pa.array(["a", None]), pa.array([2, 1], pa.int64()))
    found = found_by.found(path, 4, fields, keys, fields)
    assert found.to_pydict() == {"one": ["a", None], "other": [2, 1]}


def test_a_file_older_than_a_column_has_nulls_in_it(tmp_path: Path, found_by: Concordance) -> None:
    path, fields = written(tmp_path / "f.parquet", key=pa.array([1, 2]))
    newer = Field(9, "newer", pa.string())
    assert found_by.found(path, 2, fields, wanted(pa.array([2])), [*fields, newer]).to_pydict() == {"key": [2], "newer": [None]}
    assert found_by.found(path, 2, [newer], wanted(pa.array([None], pa.string())), fields).to_pydict() == {"key": [1, 2]}


def test_a_renamed_and_widened_column_is_known_by_its_id(tmp_path: Path, found_by: Concordance) -> None:
    path, _ = written(tmp_path / "f.parquet", old=pa.array([1, 2], pa.int32()))
    new = Field(1, "new", pa.int64())
    assert found_by.found(path, 2, [new], wanted(pa.array([2])), [new]).to_pydict() == {"new": [2]}
    assert found_by.rows(path, [new]).schema.types == [pa.int64()]


@pytest.mark.parametrize("small", [0, 100])
def test_what_an_adopted_file_does_not_say_of_its_rows_is_not_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(concordance, "_SMALL", small)
    path, fields = written(tmp_path / "f.parquet", key=pa.array([1, 2]))
    columns = [*fields, Field(77, "_diff", pa.int64())]
    kept = Concordance(tmp_path / "kept")
    with pytest.raises(ValueError, match="was adopted"):
        kept.rows(path, columns)
    with pytest.raises(ValueError, match="was adopted"):
        kept.found(path, 2, fields, wanted(pa.array([2])), columns)


def test_what_is_kept_goes_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concordance, "_SMALL", 0)
    kept = Concordance(tmp_path / "kept")
    path, fields = written(tmp_path / "f.parquet", key=pa.array([1, 2]))
    kept.found(path, 2, fields, wanted(pa.array([2])), fields)
    assert [*(tmp_path / "kept").glob("*/*/*")]
    catalog = Catalog(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}", concordance=tmp_path / "kept")
    assert catalog.remove(path) > 0
    assert not [*(tmp_path / "kept").glob("*/*/*")]


def test_nothing_stays_of_a_file_that_is_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concordance, "_SMALL", 0)
    path, fields = written(tmp_path / "f.parquet", key=pa.array([1, 2]))
    read = concordance._read

    def removing(path: str, columns: list[Field]) -> list[pa.Array]:
        values = read(path, columns)
        (tmp_path / "f.parquet").unlink()
        return values

    monkeypatch.setattr(concordance, "_read", removing)
    with pytest.raises(FileNotFoundError):
        Concordance(tmp_path / "kept").found(path, 2, fields, wanted(pa.array([2])), fields)
    assert not [*(tmp_path / "kept").glob("*/*/*")]


def test_rows_are_not_looked_up_by_numbers_that_are_equal_without_being_the_same() -> None:
    assert not is_hashed(pa.float64())
    assert kind_of("struct") is None
