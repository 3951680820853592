"""Data files of a log, as far as a log must know them to name them again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file as its manifest knew it."""

    path: str
    part: int
    rows: int
    bytes: int
    first: int
    """Its first epoch."""
    last: int
