"""``firnline status`` of a pipeline that asks for freshness."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import command, compiled, make_project

PIPELINE = """
    import firnline as fl

    timed = fl.Pipeline("timed", schedule="@daily", start="{start}", freshness="2h")


    @timed.source(keys=["id"])
    def readings(epoch): ...
"""


@pytest.mark.parametrize(("start", "is_late"), [("2026-01-01", True), ("2090-01-01", False)])
def test_a_pipeline_that_is_late_says_so(tmp_path: Path, start: str, is_late: bool) -> None:
    compiled(make_project(tmp_path, timed=PIPELINE.format(start=start)), "timed")
    (told,) = command(tmp_path, "status", "--json")
    assert told["freshness"] == 7200.0
    assert (told["late_by"] > 0) is is_late
