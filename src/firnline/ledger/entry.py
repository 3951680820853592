"""What the ledger knows: one entry per publish, with its inputs and its parts. Points are those of ``model.epoch``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


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


@dataclass(frozen=True, slots=True)
class Input:
    """What a publication read of another collection of its pipeline: complete up to ``input_upper``, through a snapshot."""

    pipeline: str
    collection: str
    generation: int
    lower: int
    """With the three before, the key of the publication."""
    input: str
    input_generation: int
    input_upper: int
    input_snapshot: int
    rows: int
    """How many changed rows it gave."""
    parts: Literal["same", "all"]
    """Whether part p comes from part p of it only, or from all of its parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a publication changed in one part at one epoch: a digest."""

    pipeline: str
    collection: str
    generation: int
    epoch: int
    """Where the epoch begins. A publication of several epochs has parts of each."""
    part: int
    rows: int
    weight: int
    first: int
    second: int
