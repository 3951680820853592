"""A project's graphs are made from its code as it is now."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

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
