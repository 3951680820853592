from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from firnline.errors import FirnlineError
from firnline.settings import Settings


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRNLINE_ROOT", raising=False)


def test_defaults_keep_everything_inside_the_project(tmp_path: Path) -> None:
    (tmp_path / "firnline.toml").write_text("")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    settings = Settings.load(tmp_path / "deep" / "er")
    assert settings.root == tmp_path
    assert settings.warehouse == f"file://{tmp_path}/.firnline/warehouse"
    assert settings.catalog_uri == f"sqlite:///{tmp_path}/.firnline/catalog.db"
    assert settings.roots == (tmp_path,)


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "firnline.toml").write_text("quarantine_fraction = 0.5\nspark_memory = '1g'\n")
    monkeypatch.setenv("FIRNLINE_QUARANTINE_FRACTION", "0.25")
    settings = Settings.load(tmp_path)
    assert (settings.quarantine_fraction, settings.spark_memory) == (0.25, "1g")


def test_outside_of_a_project_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FirnlineError, match="NO_PROJECT"):
        Settings.load(tmp_path)


@pytest.mark.parametrize("line", ["quarantine_fraction = 2", "spark_shuffle_partitions = 0", "typo = 1", "= broken"])
def test_a_wrong_setting_is_refused_with_its_name(tmp_path: Path, line: str) -> None:
    (tmp_path / "firnline.toml").write_text(line)
    with pytest.raises(FirnlineError, match="BAD_SETTING"):
        Settings.load(tmp_path)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "firnline.toml").write_text("")
    with pytest.raises(ValidationError):
        Settings.load(tmp_path).spark_memory = "8g"
