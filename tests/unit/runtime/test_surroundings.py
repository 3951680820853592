from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from firnline.runtime.surroundings import _first_line, check_database, check_executors, check_master, check_warehouse
from firnline.settings import FILE, Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("FIRNLINE_")]:
        monkeypatch.delenv(name)
    (tmp_path / FILE).touch()
    return Settings.load(tmp_path)


def test_a_catalog_that_is_no_database_is_wrong(settings: Settings) -> None:
    assert check_database(settings.catalog_uri, "X").ok
    settings.work.mkdir()
    (settings.work / "catalog.db").write_bytes(b"not a database, whatever its name says" * 100)
    assert not check_database(settings.catalog_uri, "X").ok


def test_a_database_that_is_away_is_told_without_its_password() -> None:
    found = check_database("postgresql+psycopg://me:hush@127.0.0.1:1/catalog", "FIRNLINE_CATALOG_URI")
    assert not found.ok
    assert "hush" not in found.detail
    assert "FIRNLINE_CATALOG_URI" in found.how_to_mend


def test_an_error_without_a_word_is_told_by_its_kind() -> None:
    assert [_first_line(error) for error in (TimeoutError(), ValueError("one\ntwo"))] == ["TimeoutError", "one"]


def test_a_warehouse_is_left_as_it_was(settings: Settings) -> None:
    assert check_warehouse(settings).ok
    assert not list((settings.work / "warehouse").iterdir())


def test_a_warehouse_that_takes_nothing_is_wrong(settings: Settings) -> None:
    settings.work.write_text("a file where a folder should be")
    assert not check_warehouse(settings).ok


def test_a_master_is_one_that_listens(settings: Settings) -> None:
    assert check_master(settings).ok
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}"
        assert check_master(settings.model_copy(update={"spark_master": master})).ok
    assert not check_master(settings.model_copy(update={"spark_master": master})).ok


def test_executors_of_this_machine_are_not_asked(settings: Settings) -> None:
    assert check_executors(settings).ok
