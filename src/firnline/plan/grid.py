"""What became of each epoch of a collection, and how a collection is, in one word each: what dashboards show.

An epoch that a log holds is ``computed``, or what says more: ``merged`` into the epochs around it, ``repaired``, ``stale`` (made
by code whose rows would differ today), or it lacks rows: a ``gap``. One that it does not hold ``failed``, or is ``missing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from firnline.model.epoch import Epoch

State = Literal["computed", "merged", "repaired", "stale", "gap", "failed", "missing"]
Condition = Literal["whole", "changed", "behind", "gap", "failed"]


@dataclass(frozen=True, slots=True)
class Held:
    """A layer of a log: the epochs of [lower, upper)."""

    lower: int
    upper: int
    is_stale: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one collection; epochs are named by where they begin."""

    layers: tuple[Held, ...] = ()
    since: int = 0
    repaired: frozenset[int] = frozenset()
    lacking: frozenset[int] = frozenset()
    failed: Mapping[int, str] = field(default_factory=dict)

    def layer_of(self, epoch: Epoch) -> Held | None:
        """The layer that holds an epoch."""
        return next((each for each in self.layers if each.lower <= epoch.lower and epoch.upper <= each.upper), None)


def state_of(epoch: Epoch, known: Known) -> State:
    """What became of an epoch of a collection.

    >>> log = Known((Held(0, 2), Held(2, 3, is_stale=True)), since=2, failed={3: "no"})
    >>> [state_of(Epoch(n, n + 1), log) for n in range(5)]
    ['merged', 'merged', 'stale', 'failed', 'missing']
    """
    held = known.layer_of(epoch)
    if held is None:
        return "failed" if epoch.lower in known.failed else "missing"
    if epoch.lower in known.lacking:
        return "gap"
    if held.is_stale:
        return "stale"
    if epoch.lower in known.repaired:
        return "repaired"
    return "merged" if epoch.lower < known.since and held.upper - held.lower > epoch.upper - epoch.lower else "computed"


def condition_of(*, failed: int, lacking: int, missing: int, code: str) -> Condition:
    """How a collection is: what is worst about it.

    >>> condition_of(failed=0, lacking=0, missing=2, code="changed")
    'behind'
    """
    if failed:
        return "failed"
    if lacking:
        return "gap"
    if missing:
        return "behind"
    return "changed" if code in ("changed", "edited") else "whole"
