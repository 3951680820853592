"""Where errors become messages, and a line stays a line."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from firnline.cli import main
from firnline.errors import FirnlineError
from firnline.runtime.branch import _code
from tests.project import command, make_project


@pytest.mark.parametrize("words", [["status"], ["status", "--json"]])
def test_an_error_of_the_operating_system_is_told_without_a_traceback(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIRNLINE_ROOT", "x" * 300)
    monkeypatch.setattr(sys, "argv", ["firnline", *words])
    with pytest.raises(SystemExit, match="1"):
        main()
    said, complained = capsys.readouterr()
    if "--json" in words:
        error = json.loads(said)["error"]
        assert error["code"] == "PREREQUISITE"
        assert error["what"].endswith("File name too long")
    else:
        assert complained.startswith("PREREQUISITE: ")
        assert complained.endswith("File name too long. Run 'firnline doctor': it says how to mend each prerequisite.\n")


def test_it_tells_its_version(tmp_path: Path) -> None:
    assert command(tmp_path, "--version") == f"{metadata.version('firnline')}\n"


@pytest.mark.parametrize(
    "words", [["plan", "--apply"], ["plan", "web", "--from", "1"], ["rewind", "web"], ["rewind", "web", "--to", "1", "--undo"]]
)
def test_what_is_called_in_a_wrong_way_ends_with_2(tmp_path: Path, words: list[str]) -> None:
    command(tmp_path, *words, code=2)


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    make_project(tmp_path)
    error = command(tmp_path, "maintain", "--report", "nowhere/report.html", "--json", code=1)["error"]
    assert (error["code"], error["what"]) == ("BAD_OPTION", "nowhere/report.html cannot be written: No such file or directory")
    assert command(tmp_path, "maintain", "--report", "report.html", "--json") == {"report": "report.html"}
    assert "Maintenance" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_file_that_is_no_database_is_no_reason_to_wait(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (project.settings.work / "catalog.db").write_text("<html>" * 1000)
    with pytest.raises(FirnlineError, match=r"CATALOG_UNAVAILABLE: .* not a database.*Bring the catalog's database back"):
        project.catalog.names("web")


def test_code_of_a_commit_needs_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FirnlineError, match="PREREQUISITE: 'main' is no folder, and there is no git"):
        _code(project, "web__what_if", "main")
