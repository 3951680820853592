"""``firnline run`` before any Spark starts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.project import command, make_project

PIPELINE = """
    import firnline as fl

    timed = fl.Pipeline("timed", schedule="@daily", start="2026-01-01")


    @timed.source(keys=["id"])
    def readings(epoch): ...
"""


def test_an_epoch_that_is_not_over_is_not_run(tmp_path: Path) -> None:
    make_project(tmp_path, timed=PIPELINE)
    told = command(tmp_path, "run", "timed", "--to", (datetime.now(UTC) + timedelta(days=1)).isoformat(), "--json", code=1)
    assert told["error"]["code"] == "EPOCH_NOT_OVER"
