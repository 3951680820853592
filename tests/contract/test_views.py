"""Views in the catalog, as Iceberg's specification has them; Spark reads them in ``tests/spark/test_views.py``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from firnline.errors import FirnlineError
from firnline.tables.catalog import Catalog
from firnline.tables.log import Log
from firnline.tables.metadata import Metadata
from firnline.tables.views import keep


def made(iceberg: Catalog) -> Metadata:
    columns = pa.schema([("id", pa.int64()), ("odd`name", pa.float64()), ("inner", pa.struct([("x", pa.int32())]))])
    return Log(iceberg, "web", "visits").create(columns, ("id",), 0, {})


def view(iceberg: Catalog) -> dict[str, Any]:
    found = iceberg.view("web__views", "visits")
    assert found is not None
    return found[1]


def test_a_view_has_the_users_columns_and_is_no_table(iceberg: Catalog) -> None:
    assert keep(iceberg, made(iceberg), "Visits of pages.")
    found = view(iceberg)
    assert [field["name"] for field in found["schemas"][0]["fields"]] == ["id", "odd`name", "inner"]
    assert found["properties"]["comment"] == "Visits of pages."
    (version,) = found["versions"]
    assert version["version-id"] == found["current-version-id"]
    assert "coalesce(`odd``name`, `odd``name`)" in version["representations"][0]["sql"]
    assert iceberg.names("web") == {"visits"}
    assert iceberg.opened.list_tables("web__views") == []


def test_a_view_is_made_anew_only_if_it_says_something_else(iceberg: Catalog) -> None:
    log = made(iceberg)
    assert keep(iceberg, log, "")
    first = iceberg.view("web__views", "visits")
    assert not keep(iceberg, log, "")
    assert iceberg.view("web__views", "visits") == first
    wider = replace(log, columns={**log.columns, "more": 99}, types={**log.types, "more": "string"})
    assert keep(iceberg, wider, "")
    assert [field["name"] for field in view(iceberg)["schemas"][0]["fields"]][-1] == "more"


def test_of_two_who_make_a_view_one_finds_it_made(iceberg: Catalog) -> None:
    assert keep(iceberg, made(iceberg), "")
    first = iceberg.view("web__views", "visits")
    assert first is not None
    with pytest.raises(FirnlineError, match="COMMIT_CONTENDED"):
        iceberg.put_view("web__views", "visits", None, first[1])
    iceberg.put_view("web__views", "visits", first[0], first[1])
    with pytest.raises(FirnlineError, match="COMMIT_CONTENDED"):
        iceberg.put_view("web__views", "visits", first[0], first[1])
