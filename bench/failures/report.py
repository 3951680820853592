"""The figures of failures as tables and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bench.failures.measure import Found

KILLS = (
    "killed in mid-join",
    "with s",
    "without s",
    "with / without",
    "noticed after s",
    "replayed after s",
    "waves",
    "computed",
)
LOSSES = ("on_loss", "repair s", "epoch s", "rows lost", "recomputed", "left out", "said")
SLOW = ("speculation", "slow worker s", "all well s", "slow / well")


def kill_lines(found: Found) -> Iterator[tuple[str, ...]]:
    """A line for each kill."""
    for each in found.kills:
        times = (f"{each.seconds:.1f}", f"{each.without:.1f}", f"{each.seconds / each.without:.2f}")
        yield (each.what, *times, _after(each.replay.noticed), _after(each.replay.again), str(each.waves), str(each.computed))


def loss_lines(found: Found) -> Iterator[tuple[str, ...]]:
    """A line for each contract."""
    for each in found.losses:
        rows = (f"{each.rows_lost:,}", f"{each.rows_recomputed:,}", f"{each.rows_left_out:,}")
        yield (each.contract, f"{each.seconds:.1f}", f"{each.without:.1f}", *rows, each.said)


def slow_lines(found: Found) -> Iterator[tuple[str, ...]]:
    """A line with speculation, and one without."""
    for each in found.slow:
        yield (
            "on" if each.has_speculation else "off",
            f"{each.seconds:.1f}",
            f"{each.without:.1f}",
            f"{each.seconds / each.without:.2f}",
        )


def document(found: Found) -> dict[str, Any]:
    """All of it."""
    return {**asdict(found), "equal": not found.differences}


def _after(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"
