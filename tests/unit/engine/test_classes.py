"""The archive of classes helps where it fits and harms nowhere."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from firnline.engine.classes import archive_of, identity, with_archive
from firnline.runtime.training import check_archive
from firnline.settings import FILE, Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / FILE).touch()
    found = Settings.load(tmp_path)
    found.jars.mkdir(parents=True)
    (found.jars / "one.jar").write_bytes(b"one")
    return found


def test_without_an_archive_options_are_as_they_were(settings: Settings) -> None:
    assert with_archive(settings, "-Xss4m") == "-Xss4m"


def test_an_archive_is_given_to_the_jvm(settings: Settings) -> None:
    archive_of(settings).touch()
    assert f"-XX:SharedArchiveFile={archive_of(settings)}" in with_archive(settings, "-Xss4m")


@pytest.mark.parametrize("own", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"])
def test_whoever_shares_classes_themselves_is_left_alone(settings: Settings, own: str) -> None:
    archive_of(settings).touch()
    assert with_archive(settings, own) == own


@pytest.mark.parametrize("content", [b"", b"no archive", os.urandom(100_000)])
def test_a_jvm_starts_without_a_word_about_an_archive_that_does_not_fit(tmp_path: Path, content: bytes) -> None:
    root = tmp_path / "with spaces"
    root.mkdir()
    (root / FILE).touch()
    settings = Settings.load(root)
    settings.jars.mkdir(parents=True)
    archive_of(settings).write_bytes(content)
    run = subprocess.run(["java", *shlex.split(with_archive(settings, "")), "-version"], capture_output=True, text=True)
    assert run.returncode == 0
    assert run.stdout == ""
    assert "rchive" not in run.stderr


def test_a_missing_or_outdated_archive_is_told_and_is_nothing_wrong(settings: Settings) -> None:
    missing = check_archive(settings)
    archive_of(settings).touch()
    archive_of(settings).with_suffix(".made-for").write_text(identity(settings))
    current = check_archive(settings)
    (settings.jars / "two.jar").touch()
    outdated = check_archive(settings)
    assert [each.ok for each in (missing, current, outdated)] == [False, True, False]
    assert not any(each.is_wrong for each in (missing, current, outdated))
    assert "other jars" in outdated.detail


def test_another_java_needs_another_archive(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity(settings)
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert identity(settings) != before
