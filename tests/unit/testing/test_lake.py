from __future__ import annotations

from pathlib import Path

import pytest

from firnline.testing import lake
from firnline.testing.lake import moved
from tests.project import make_project


def test_a_test_stays_in_its_work_folder_wherever_the_settings_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(
        tmp_path / "project", 'catalog_uri = "postgresql://prod/lake"\nwarehouse = "s3://prod"\nspark_memory = "1g"\n'
    )
    monkeypatch.setenv("FIRNLINE_LEDGER_URI", "postgresql://prod/ledger")
    work = tmp_path / "work"
    found = moved(project.settings.root, work)
    assert (found.warehouse, found.catalog_uri) == (f"file://{work}/warehouse", f"sqlite:///{work}/catalog.db")
    assert found.ledger_uri == f"sqlite:///{work}/ledger.db"
    assert found.spark_memory == "1g"
    assert found.jars.resolve() == project.settings.jars.resolve()


def test_the_folder_of_a_process_that_was_killed_is_removed_and_that_of_a_living_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake, "_IN_MEMORY", tmp_path)
    killed, strange = (tmp_path / f"firnline-tests-{name}" for name in ("killed", "strange"))
    for folder in (killed, strange):
        folder.mkdir()
    (killed / "alive").touch()
    with lake._folder() as one, lake._folder() as other:
        assert one.is_dir()
        assert other.is_dir()
        assert not killed.exists()
    assert [*tmp_path.iterdir()] == [strange]
