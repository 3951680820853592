"""A filter means the same wherever it is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from firnline.engine.connect_mode import connect_mode
from firnline.engine.filters import condition
from firnline.model.predicate import Op, Term


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("op", ["=", ">=", "in", "not in"])
@pytest.mark.parametrize("zone", [None, UTC])
def test_a_moment_is_the_same_in_every_time_zone(moved: Callable[[str], None], zone: None, op: Op) -> None:
    term = Term(("at",), op, (datetime(2026, 3, 29, 2, 30, tzinfo=zone),))
    found = set()
    for place in ("UTC", "America/New_York", "Asia/Kolkata"):
        moved(place)
        with connect_mode():
            meant: Any = condition(term)
            found.add(meant._expr.to_plan(None).SerializeToString(deterministic=True))
    assert len(found) == 1
