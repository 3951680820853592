"""What the ledger knows: one entry per publish. Points are those of ``model.epoch``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Publication:
    """One snapshot of a collection's log that published [lower, upper) in a generation."""

    pipeline: str
    collection: str
    generation: int
    lower: int
    upper: int
    snapshot_id: int
    rows: int
    """Changed rows: the sum of ``|_diff|``."""
    weight: int
    """What the collection grew by: the sum of ``_diff``."""
    fingerprint: str
    attempt: str
    sidecar: str
    """The path of the file with digests and lineage."""
    published_at: datetime
    seconds: float
    """How long it took, from plan to publish."""
