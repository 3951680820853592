"""Exchanging data files of a log that was looked at."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.plan.verification import Cell, Holding, covers, data_of

if TYPE_CHECKING:
    from firnline.tables.log import Log
    from firnline.tables.port import Exchange
    from firnline.tables.sidecar import Repair


def files(log: Holding, cells: Collection[Cell]) -> frozenset[str]:
    """The data files that hold, or held, rows of some (epoch, part)."""
    return frozenset(data.file.path for _, data in data_of(log) if any(covers(data, cell) for cell in cells))


def exchange(table: Log, log: Holding, note: Repair, change: Exchange) -> None:
    """Exchange files of a log that nobody else has repaired since it was looked at; if somebody has, it is looked at again."""
    description = log.description()
    repairs = [each.snapshot for each in log.published() if each.is_repair]
    generation = description.generation if description is not None else 0
    verdict = table.exchange(generation, repairs[-1] if repairs else None, note, change)
    if verdict is Verdict.FENCED:
        raise FirnlineError("GENERATION_CHANGED", f"{log.pipeline}.{log.collection} was rewound while it was repaired")
