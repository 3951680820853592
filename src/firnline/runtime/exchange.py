"""Exchanging data files of a log that was looked at."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.gap import Cell
from firnline.plan.verification import Holding, covers, data_of

if TYPE_CHECKING:
    from firnline.tables.log import Log
    from firnline.tables.port import Exchange
    from firnline.tables.sidecar import Repair


def files(log: Holding, cells: Collection[Cell]) -> frozenset[str]:
    """The data files that hold, or held, rows of some (epoch, part)."""
    return frozenset(data.file.path for _, data in data_of(log) if any(covers(data, cell) for cell in cells))


def exchange(table: Log, log: Holding, note: Repair, change: Exchange) -> bool:
    """Exchange files of a log unless somebody else has exchanged some since it was looked at; whether it was done."""
    description = log.description()
    exchanges = [each.snapshot for each in log.exchanges()]
    generation = description.generation if description is not None else 0
    verdict = table.exchange(generation, exchanges[-1] if exchanges else None, note, change)
    if verdict is Verdict.FENCED:
        raise FirnlineError("GENERATION_CHANGED", f"{log.pipeline}.{log.collection} was rewound while it was repaired")
    return verdict is Verdict.FREE
