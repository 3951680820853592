"""The figures of maintenance as a table and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import Any

from bench.maintenance.measure import READ_LIMIT, TIME_LIMIT, Measured

COLUMNS = ("figure", "with maintenance", "without", "limit", "within")


def lines(found: Measured) -> Iterator[tuple[str, ...]]:
    """A line for each figure."""
    kept, left = found.maintained, found.left
    reading = found.reading(kept)
    yield _limited("reading the state / reading a fresh table", reading, READ_LIMIT, f"{found.reading(left):.2f}")
    yield _limited("bytes rewritten / bytes ingested", found.rewriting, found.rewriting_limit)
    yield _limited("maintenance time / epoch time", found.upkeep, TIME_LIMIT)
    yield "median epoch, s", f"{median(kept.epoch_seconds):.2f}", f"{median(left.epoch_seconds):.2f}", "", ""
    yield "longest maintenance, s", f"{max(kept.maintenance_seconds):.2f}", "", "", ""
    yield "layers", str(kept.layers), str(left.layers), "", ""
    yield "data files of the state", str(kept.named), str(left.named), "", ""
    yield "data files stored", str(kept.stored), str(left.stored), "", ""
    yield "megabytes stored", f"{kept.bytes / 1e6:.1f}", f"{left.bytes / 1e6:.1f}", "", ""


def document(found: Measured) -> dict[str, Any]:
    """All of it, for programs."""
    figures = {
        "reading": found.reading(found.maintained),
        "reading_left": found.reading(found.left),
        "rewriting": found.rewriting,
        "rewriting_limit": found.rewriting_limit,
        "upkeep": found.upkeep,
    }
    return {**asdict(found), "figures": figures, "equal": not found.differences}


def _limited(what: str, figure: float, limit: float, without: str = "") -> tuple[str, ...]:
    return what, f"{figure:.2f}", without, f"{limit:.2f}", "yes" if figure <= limit else "no"
