"""What a handler of lost rows is told, before anything is done about them."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.declaration import OnLoss


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One thing that a repair would do."""

    collection: str
    how: str
    """``restore``, ``rebuild``, ``recompute``, ``leave out`` or ``retry``."""
    what: str
    """``files``, ``metadata``, ``sidecars``, ``manifests`` or ``rows``."""
    epochs: tuple[str, ...]
    parts: tuple[int, ...]
    rows: int
    seconds: float
    """How long it may take."""
    why: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Lost rows of one collection, or of what it keeps beside it, and what a repair of the pipeline would do."""

    pipeline: str
    collection: str
    epochs: tuple[str, ...]
    parts: tuple[int, ...]
    rows: int
    why: str
    contract: OnLoss
    """What the collection is declared with; the handler may return another one for this case."""
    plan: tuple[RepairStep, ...]
