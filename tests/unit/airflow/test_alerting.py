from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from firnline.airflow.alerting import tell_late
from firnline.plan.frontier import Frontier
from tests.project import make_project

END = "2026-01-02T00:00:00Z"


def told(caplog: pytest.LogCaptureFixture, root: Path, kind: str, queued_at: datetime, end: str | None = END) -> bool:
    run = {"dag_run_id": "r", "run_type": kind, "data_interval_end": end, "queued_at": queued_at.isoformat()}
    context: dict[str, Any] = {"dag_run": run}
    with caplog.at_level(logging.ERROR, "firnline.airflow.alerting"):
        tell_late(root=str(root), pipeline="web", freshness="2:00:00", context=context)
    return any(record.getMessage().startswith("late: ") for record in caplog.records)


@pytest.mark.parametrize(("kind", "is_told"), [("scheduled", True), ("manual", True), ("backfill", False)])
def test_a_run_is_late_unless_it_is_of_a_backfill(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, kind: str, is_told: bool
) -> None:
    project = make_project(tmp_path)
    assert told(caplog, project.settings.root, kind, datetime.now(UTC)) is is_told


@pytest.mark.parametrize(
    ("upper", "minutes", "end", "is_told"),
    [("2026-01-02", 1, END, False), ("2026-01-01", 1, END, True), ("2026-01-02", -1, END, True), ("2026-01-02", 1, None, True)],
    ids=["complete", "not complete", "complete since", "no epoch"],
)
def test_who_runs_an_epoch_again_that_was_complete_is_not_late(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, upper: str, minutes: int, end: str | None, is_told: bool
) -> None:
    project = make_project(tmp_path)
    reached = int(datetime.fromisoformat(upper).replace(tzinfo=UTC).timestamp() * 1e6)
    project.control("web").advance(Frontier(reached, {}))
    queued_at = datetime.now(UTC) + timedelta(minutes=minutes)
    assert told(caplog, project.settings.root, "manual", queued_at, end) is is_told


def test_a_run_is_late_where_nobody_can_tell_what_is_complete(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    assert told(caplog, tmp_path, "manual", datetime.now(UTC))
