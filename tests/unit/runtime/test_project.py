"""A project's graphs are made from its code as it is now."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from firnline.runtime.cache import keep, recall
from tests.project import compiled, make_project

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["a"])
    def visits(epoch): ...
"""


def test_a_text_of_the_same_length_and_second_is_told_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    project = compiled(make_project(tmp_path, web=PIPELINE), "web")
    file = tmp_path / "include" / "pipelines" / "web.py"
    assert Path(cache_from_source(str(file))).exists(), "Python kept what it compiled"
    then = file.stat().st_mtime
    file.write_text(file.read_text().replace('"a"', '"b"'))
    os.utime(file, (then, then))
    assert compiled(project, "web").graph("web").collection("visits").keys == ("b",)


def test_an_editors_lock_an_environment_and_a_dangling_link_are_no_code(tmp_path: Path) -> None:
    project = compiled(make_project(tmp_path, web=PIPELINE), "web")
    before, pipelines = project.state(), tmp_path / "include" / "pipelines"
    (pipelines / ".#web.py").symlink_to("me@here.4711:1")
    (tmp_path / "venv" / "lib").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "venv" / "lib" / "theirs.py").write_text("x = 1\n")
    (tmp_path / "include" / "expectations").mkdir()
    (tmp_path / "include" / "expectations" / ".#suite.json").symlink_to("me@here.4711:1")
    assert project.state() == before
    assert (project.pipelines(), project.suites()) == (("web",), ())
    (tmp_path / "include" / "gone.py").symlink_to("nowhere")
    assert project.state() != before


def test_an_answer_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    for text in ("", '{"a": [', "\x00"):
        keep(tmp_path, "web", "s", {"a": [1]})
        assert recall(tmp_path, "web", "s") == {"a": [1]}
        (tmp_path / "web-s.json").write_text(text)
        assert recall(tmp_path, "web", "s") is None
