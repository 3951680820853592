from __future__ import annotations

from pathlib import Path

import pytest

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
