"""The figures of looking up ids as a table and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.dedup.measure import TIME_LIMIT, Looked, Measured

COLUMNS = ("records", "read / state", "full: read / state", "s", "full: s", "times as long", "at least", "within")


def lines(found: Measured) -> Iterator[tuple[str, ...]]:
    """A line for each case."""
    for case in found.cases:
        shares = [f"{_share(found, each):.3f}" for each in (case.ours, case.full)]
        seconds = [f"{median(each.seconds):.2f}" for each in (case.ours, case.full)]
        within = "yes" if case.speedup >= TIME_LIMIT else "no"
        yield (case.name, *shares, *seconds, f"{case.speedup:.1f}", f"{TIME_LIMIT:.0f}", within)


def document(found: Measured) -> dict[str, Any]:
    """All of it, for programs."""
    figures = {case.name: {"read": _share(found, case.ours), "speedup": case.speedup} for case in found.cases}
    return {**asdict(found), "figures": figures, "equal": not found.differences}


def _share(found: Measured, looked: Looked) -> float:
    return looked.read / found.bytes
