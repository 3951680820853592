"""What Spark's own event logs say about a kill: when it was noticed, and when what was lost ran again. Moments are seconds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Replay:
    """Seconds from a kill; None for what did not happen."""

    noticed: float | None = None
    """Until Spark gave an executor up."""
    again: float | None = None
    """Until a task was started that had been before; after the death of a driver, until the next one started a task."""


def events(folder: Path) -> list[dict[str, Any]]:
    """Those of all applications; a driver that was killed leaves half a line."""
    lines = [line for path in folder.glob("app-*") for line in path.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def replay_after(found: Iterable[dict[str, Any]], killed: float, until: float, *, is_driver: bool = False) -> Replay:
    """The replay after a kill."""
    noticed, again = [], []
    for event in found:
        if event["Event"] == "SparkListenerExecutorRemoved":
            noticed.append(event["Timestamp"])
        elif event["Event"] == "SparkListenerTaskStart":
            task = event["Task Info"]
            if is_driver or task["Attempt"] or event["Stage Attempt ID"]:
                again.append(task["Launch Time"])
    return Replay(*(_first(moments, killed, until) for moments in (noticed, again)))


def _first(moments: Iterable[int], killed: float, until: float) -> float | None:
    return min((round(each / 1000 - killed, 3) for each in moments if killed <= each / 1000 <= until), default=None)
