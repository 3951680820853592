"""What ``firnline bench epoch`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.epoch.measure import KINDS, Cell

COLUMNS = ("an empty epoch of a source and six stages", "tasks", "seconds", "in tasks", "between", "plain is slower by")


def lines(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    plain = cells[-1].seconds
    return [
        (
            KINDS[cell.kind],
            str(cell.runs[0].tasks),
            _spread([run.seconds for run in cell.runs]),
            _spread([run.in_tasks for run in cell.runs]),
            _spread([run.seconds - run.in_tasks for run in cell.runs]),
            f"{plain / cell.seconds:.1f} x",
        )
        for cell in cells
    ]


def document(cells: Sequence[Cell]) -> dict[str, Any]:
    plain = cells[-1].seconds
    return {
        cell.kind: {"seconds": cell.seconds, "plain_slower_by": plain / cell.seconds, "runs": [asdict(run) for run in cell.runs]}
        for cell in cells
    }


def _spread(values: Sequence[float]) -> str:
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return f"{middle:.1f}" if len(ordered) == 1 else f"{middle:.1f} ({ordered[0]:.1f}-{ordered[-1]:.1f})"
