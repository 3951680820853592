"""Intakes at work: what a source's function returned becomes the delta of its epoch, one module a kind."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from firnline.engine.reading import SourceEpoch
from firnline.runtime.intake.adopt import AdoptIntake
from firnline.runtime.intake.dedup import DedupIntake
from firnline.runtime.intake.feed import FeedIntake
from firnline.runtime.intake.rows import RowsIntake
from firnline.runtime.intake.snapshot import SnapshotIntake
from firnline.runtime.intake.taking import Taking

if TYPE_CHECKING:
    from firnline.runtime.stage_run import StageRun

_KINDS: Mapping[str, type[Taking]] = MappingProxyType(
    {"rows": RowsIntake, "snapshot": SnapshotIntake, "dedup": DedupIntake, "feed": FeedIntake}
)


def intake_of(run: StageRun, given: SourceEpoch) -> Taking:
    """The intake of a run's source, for its epoch."""
    intake = _KINDS[run.collection.intake.kind](run, given)
    return AdoptIntake(run, given, intake) if adopts(run) else intake


def adopts(run: StageRun) -> bool:
    """Whether a run's epoch is a table that is there."""
    return run.collection.adopt is not None and run.epoch.lower == run.declared.graph.schedule.start
