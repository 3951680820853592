"""Which neighbouring layers of a log to merge, so that reading stays cheap and rewriting does, too.

Layers grow towards the past: a layer is merged with all newer ones once these are ``GROWTH`` - 1 times as large as it is. As if
each layer had been looked at when it came, so that whatever is rewritten ends up in something larger than before: of n epochs, a
row is rewritten at most log2(n) times on average. The oldest layer is also merged with all newer ones once these undo so much of
it that rewriting it costs about log2(n) times that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GROWTH = 4
_LEAST_BYTES = 1 << 16
"""What a layer counts for reading, beside its bytes: somebody has to open it."""
_LEAST_ROWS = 1000
"""The same, in rows."""
_MOST_REWRITTEN = 8.0
"""Rows rewritten for every row that is read in vain; no less may lie above the oldest layer than the inverse of it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The rows of [lower, upper) as they are stored together.

    Args:
        lower: Where it begins.
        upper: Where it ends.
        epochs: How many epochs that are.
        rows: Insertions and removals.
        weight: Insertions without removals.
        bytes: What it takes in storage.
    """

    lower: int
    upper: int
    epochs: int
    rows: int
    weight: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring layers, the oldest first, that are to be one."""

    layers: tuple[Layer, ...]
    is_from_start: bool
    """Whether nothing is older, so that no removal is left after the merge."""

    @property
    def lower(self) -> int:
        """Where it begins."""
        return self.layers[0].lower

    @property
    def upper(self) -> int:
        """Where it ends."""
        return self.layers[-1].upper

    @property
    def rows(self) -> int:
        """The rows of it that are stored now."""
        return sum(layer.rows for layer in self.layers)

    @property
    def rows_after(self) -> int:
        """About how many will be."""
        return max(sum(layer.weight for layer in self.layers), 0) if self.is_from_start else self.rows

    @property
    def bytes(self) -> int:
        """About how many bytes are written."""
        share = self.rows_after / self.rows if self.rows else 0.0
        return math.ceil(share * sum(layer.bytes for layer in self.layers))

    @property
    def benefit(self) -> float:
        """Rows that nobody reads in vain any more, for every byte that is written."""
        saved = self.rows - self.rows_after + _LEAST_ROWS * (len(self.layers) - 1)
        return saved / (self.bytes + _LEAST_BYTES)


def groups(layers: Sequence[Layer], safe: int) -> list[Group]:
    """The merges of a log's layers, given oldest first, that lie before the safe point; the most beneficial first."""
    before = [layer for layer in layers if layer.upper <= safe]
    if len(before) < 2:
        return []
    whole = Group(tuple(before), is_from_start=True)
    if _is_worthwhile(whole, sum(layer.epochs for layer in layers)):
        return [whole]
    found = [Group(tuple(some), some[0] is before[0]) for some in _grown(before) if len(some) > 1]
    return sorted(found, key=lambda group: group.benefit, reverse=True)


def _is_worthwhile(whole: Group, epochs: int) -> bool:
    """Whether so many rows undo one another that all may be rewritten for it."""
    newer = whole.layers[1:]
    in_vain = sum(layer.rows - layer.weight for layer in newer)
    most = _rewritten(max(epochs, 2), max(sum(layer.epochs for layer in newer), 1))
    return whole.rows_after + _LEAST_ROWS <= most * in_vain


def _rewritten(epochs: int, newer: int) -> float:
    """How many rows may be rewritten for every one that is read in vain.

    log2 of all epochs, and a little more while the first counts among them, without what the newer ones are rewritten for.
    """
    most = math.log2(epochs)
    return min(most + most**2 / (epochs - most) - math.floor(math.log(newer, GROWTH)), _MOST_REWRITTEN)


def _grown(layers: Sequence[Layer]) -> list[list[Layer]]:
    """The layers in groups, each larger than those after it: as if every layer had come to a log that was in order."""
    found: list[list[Layer]] = []
    sizes: list[int] = []
    for layer in layers:
        found.append([layer])
        sizes.append(layer.bytes + _LEAST_BYTES)
        newer = 0
        first = len(sizes) - 1
        for at in range(len(sizes) - 1, -1, -1):
            if (GROWTH - 1) * sizes[at] <= newer:
                first = at
            newer += sizes[at]
        found[first:] = [[each for some in found[first:] for each in some]]
        sizes[first:] = [sum(sizes[first:])]
    return found
