from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from firnline.errors import FirnlineError
from firnline.settings import Settings


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRNLINE_ROOT", raising=False)
    monkeypatch.delenv("FIRNLINE_PROFILE", raising=False)


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


@pytest.mark.parametrize(
    ("profile", "memory", "master"), [(None, "1g", "local[*]"), ("local", "1g", "local[*]"), ("cluster", "4g", "spark://m:7077")]
)
def test_a_profile_wins_over_the_rest_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str | None, memory: str, master: str
) -> None:
    text = "spark_memory = '1g'\ntrash = '2d'\n[profile.cluster]\nspark_memory = '4g'\nspark_master = 'spark://m:7077'\n"
    (tmp_path / "firnline.toml").write_text(text)
    if profile is not None:
        monkeypatch.setenv("FIRNLINE_PROFILE", profile)
    settings = Settings.load(tmp_path)
    assert (settings.profile, settings.spark_memory, settings.spark_master, settings.trash) == (
        profile or "local",
        memory,
        master,
        "2d",
    )


def test_an_unknown_profile_is_refused_with_those_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "firnline.toml").write_text("[profile.cluster]\nspark_memory = '4g'\n")
    monkeypatch.setenv("FIRNLINE_PROFILE", "clutser")
    with pytest.raises(FirnlineError, match=r"no \[profile.clutser\]; there are: cluster, local"):
        Settings.load(tmp_path)


@pytest.mark.parametrize("text", ["profile = 'cluster'", "[profile]\ncluster = 1", "[profile.local]\ntypo = 1"])
def test_a_wrong_profile_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "firnline.toml").write_text(text)
    with pytest.raises(FirnlineError, match="BAD_SETTING"):
        Settings.load(tmp_path)


def test_outside_of_a_project_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FirnlineError, match="NO_PROJECT"):
        Settings.load(tmp_path)


@pytest.mark.parametrize("line", ["quarantine_fraction = 2", "spark_shuffle_partitions = 0", "typo = 1", "= broken"])
def test_a_wrong_setting_is_refused_with_its_name(tmp_path: Path, line: str) -> None:
    (tmp_path / "firnline.toml").write_text(line)
    with pytest.raises(FirnlineError, match="BAD_SETTING"):
        Settings.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("root = '.'", "there is no setting 'root'"),
        ("wrok = 'x'", "there is no setting 'wrok'; nearest: 'work'"),
        ("[profile.cluster]\nspark_mastre = 'x'", r"no setting 'spark_mastre' in \[profile.cluster\]; nearest: 'spark_master'"),
        ("[profile.cluster]\nprofile = 'x'", r"there is no setting 'profile' in \[profile.cluster\]"),
    ],
)
def test_a_name_that_is_no_setting_is_refused_in_every_table(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "firnline.toml").write_text(text)
    with pytest.raises(FirnlineError, match=f"BAD_SETTING: .*{told}"):
        Settings.load(tmp_path)


def test_a_variable_that_is_no_setting_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "firnline.toml").touch()
    for name in ("FIRNLINE_FAILPOINTS", "FIRNLINE_AIRFLOW_SERVICE_HOST", "FIRNLINE_PORT", "FIRNLINE_PORT_8080_TCP_ADDR"):
        monkeypatch.setenv(name, "")  # drills' and Kubernetes'
    Settings.load(tmp_path)
    monkeypatch.setenv("FIRNLINE_WAREHUOSE", "s3://b")
    with pytest.raises(FirnlineError, match="FIRNLINE_WAREHUOSE in the environment is no setting; nearest: 'FIRNLINE_WAREHOUSE'"):
        Settings.load(tmp_path)


def test_a_file_that_cannot_be_read_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "firnline.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FirnlineError, match=r"BAD_SETTING: .*firnline.toml: "):
        Settings.load(tmp_path)


def test_a_home_is_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "firnline.toml").write_text("work = '~/work'\nroots = ['.', '~/in']")
    settings = Settings.load(tmp_path)
    assert (settings.work, settings.roots) == (tmp_path / "me" / "work", (tmp_path, tmp_path / "me" / "in"))


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "firnline.toml").write_text("")
    with pytest.raises(ValidationError):
        Settings.load(tmp_path).spark_memory = "8g"
