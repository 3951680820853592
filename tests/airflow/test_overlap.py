"""Epochs overlap: a collection begins the next one while others are still at this one, and no delay changes a row."""

from __future__ import annotations

from itertools import pairwise

import pytest

from firnline.airflow.following import follow
from firnline.airflow.server import Server
from firnline.runtime.project import Project
from tests.airflow.conftest import epochs_of
from tests.airflow.test_pipeline import history, rows

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]


def test_epochs_overlap_under_random_delays_and_each_is_published_once(project: Project, server: Server) -> None:
    epochs = epochs_of(project, "relay")
    server.api.unpause("relay")
    list(follow(server, project.graph("relay"), epochs))

    runs = sorted(server.api.runs("relay"), key=lambda run: str(run.lower))
    spans = [{task.id: (task.start, task.end) for task in server.api.tasks("relay", run.id)} for run in runs]
    assert any(later["numbers"][0] < earlier["complete"][1] for earlier, later in pairwise(spans)), "no epoch overlaps another"
    for name in ("numbers", "odd", "digits", "complete"):
        ordered = sorted(each[name] for each in spans)
        assert all(one[1] <= other[0] for one, other in pairwise(ordered)), f"two tasks of {name} at once"

    for publishes in history(project, "relay").values():
        assert sorted(lower for lower, _, _ in publishes) == [epoch.lower for epoch in epochs]
    for day in range(1, 5):
        label = f"2026-01-{day:02}"
        numbers = range(10, 10 * day + 10)
        assert rows(project, "relay", "numbers", label) == [(number,) for number in numbers]
        assert rows(project, "relay", "odd", label) == [(number,) for number in numbers if number % 2]
        assert rows(project, "relay", "digits", label) == [(digit, day, 10 * day + digit) for digit in range(1, 10, 2)]
