from __future__ import annotations

import logging
from typing import Any

import pytest

from firnline.airflow.alerting import tell_late


@pytest.mark.parametrize(("kind", "told"), [("scheduled", 1), ("manual", 1), ("backfill", 0)])
def test_a_run_is_late_unless_it_is_of_a_backfill(caplog: pytest.LogCaptureFixture, kind: str, told: int) -> None:
    context: dict[str, Any] = {"dag_run": {"dag_run_id": "r", "run_type": kind}}
    with caplog.at_level(logging.ERROR, "firnline.airflow.alerting"):
        tell_late(pipeline="web", freshness="2:00:00", context=context)
    assert len(caplog.records) == told
