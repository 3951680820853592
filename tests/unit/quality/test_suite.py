"""Suites as files: what is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import FirnlineError
from firnline.quality.suite import is_about_columns, path_of, read

EXPECTATION = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "n"}, "severity": "critical"}


def written(folder: Path, document: Any) -> Path:
    path = folder / "sane.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_suite_is_read_as_great_expectations_writes_it(tmp_path: Path) -> None:
    stored = {
        "name": "sane",
        "id": None,
        "expectations": [EXPECTATION],
        "meta": {"great_expectations_version": "1"},
        "notes": None,
    }
    suite = read(written(tmp_path, stored))
    assert suite.name == "sane"
    assert suite.expectations == ({**EXPECTATION, "meta": {}},)
    assert path_of(tmp_path, "sane") == suite.path


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        {"expectations": {}},
        {"name": "other", "expectations": []},
        {"expectations": [{"kwargs": {}}]},
        {"expectations": [{**EXPECTATION, "severty": "warning"}]},
        {"expectations": [{**EXPECTATION, "severity": "dire"}]},
        {"expectations": [{**EXPECTATION, "id": "mine"}]},
        {"expectations": [{**EXPECTATION, "meta": 5}]},
        {"expectations": [{**EXPECTATION, "description": 5}]},
    ],
    ids=[
        "no JSON",
        "no object",
        "no list",
        "another name",
        "no type",
        "an unknown field",
        "an unknown severity",
        "an id that is none",
        "meta that is none",
        "a description that is none",
    ],
)
def test_what_is_no_suite_is_refused(tmp_path: Path, document: Any) -> None:
    with pytest.raises(FirnlineError) as refused:
        read(written(tmp_path, document))
    assert refused.value.code == "BAD_SUITE"
    assert "sane.json" in refused.value.what


def test_a_suite_is_one_file(tmp_path: Path) -> None:
    with pytest.raises(FirnlineError, match="UNKNOWN_SUITE"):
        path_of(tmp_path, "sane")
    written(tmp_path, {"expectations": []})
    (tmp_path / "sane.py").touch()
    with pytest.raises(FirnlineError, match="there twice"):
        path_of(tmp_path, "sane")


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    pair = {"type": "expect_column_pair_values_to_be_equal", "kwargs": {"column_A": "n", "column_B": "m"}}
    exist = {"type": "expect_column_to_exist", "kwargs": {"column": "never"}}
    inner = {"type": "expect_column_values_to_be_null", "kwargs": {"column": "n.inner"}}
    all_of = {"type": "expect_table_columns_to_match_ordered_list", "kwargs": {"column_list": ["n", "never"]}}
    suite = read(written(tmp_path, {"expectations": [EXPECTATION, exist, inner, pair, all_of]}))
    suite.check_columns(["n", "m"])
    with pytest.raises(FirnlineError, match="asks for the column 'm'; the columns: n"):
        suite.check_columns(["n"])
    assert [is_about_columns(each) for each in suite.expectations] == [True, False, True, True, False]
