"""Merging as epochs come: few layers, bounded rewriting, nothing beyond the safe point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from firnline.plan.layers import Group, Layer, groups

SIZES = st.lists(st.tuples(st.integers(1_000, 10_000_000), st.integers(0, 100)), min_size=2, max_size=200)
"""The rows of each epoch, and how many percent of them remove some that are there."""


@dataclass
class History:
    """A log to which epochs come, and which is maintained after some."""

    layers: list[Layer] = field(default_factory=list)
    ingested: int = 0
    rewritten: int = 0

    def publish(self, rows: int, weight: int) -> None:
        epoch = len(self.layers) and self.layers[-1].upper
        self.layers.append(Layer(epoch, epoch + 1, 1, rows, weight, rows * 100))
        self.ingested += rows * 100

    def maintain(self, safe: int) -> None:
        for group in groups(self.layers, safe):
            self._merge(group)

    def _merge(self, group: Group) -> None:
        at = self.layers.index(group.layers[0])
        assert tuple(self.layers[at : at + len(group.layers)]) == group.layers, "only neighbours are merged"
        weight = sum(layer.weight for layer in group.layers)
        epochs = sum(layer.epochs for layer in group.layers)
        made = Layer(group.lower, group.upper, epochs, group.rows_after, weight, group.rows_after * 100)
        self.layers[at : at + len(group.layers)] = [made]
        self.rewritten += made.bytes

    def most_layers(self) -> float:
        """Each is a third of all newer ones at least."""
        sizes = [layer.bytes + (1 << 16) for layer in self.layers]
        return 2 + math.log(sum(sizes) / min(sizes), 4 / 3)


def come(sizes: list[tuple[int, int]], every: int = 1) -> History:
    log = History()
    there = 0
    for epoch, (rows, percent) in enumerate(sizes, start=1):
        removed = min(rows * percent // 100, there, rows // 2)
        log.publish(rows, rows - 2 * removed)
        there += rows - 2 * removed
        if epoch % every == 0:
            log.maintain(epoch)
    return log


@given(SIZES, st.integers(1, 10))
def test_rewriting_is_bounded_and_layers_are_few_whatever_comes_and_however_often_one_maintains(
    sizes: list[tuple[int, int]], every: int
) -> None:
    log = come(sizes, every)
    log.maintain(len(sizes))
    assert log.rewritten <= math.log2(len(sizes)) * log.ingested
    assert len(log.layers) <= log.most_layers()
    assert [layer.lower for layer in log.layers[1:]] == [layer.upper for layer in log.layers[:-1]]


@given(SIZES, st.integers(0, 200))
def test_nothing_beyond_the_safe_point_is_touched(sizes: list[tuple[int, int]], safe: int) -> None:
    log = come(sizes, every=1000)
    found = groups(log.layers, safe)
    assert all(group.upper <= safe for group in found)
    assert [group.benefit for group in found] == sorted((group.benefit for group in found), reverse=True)
    merged = [layer for group in found for layer in group.layers]
    assert len(merged) == len(set(merged)), "no layer is in two merges"


def test_two_hundred_epochs_that_each_change_a_hundredth_stay_cheap_to_read() -> None:
    rows = 1_000_000
    log = come([(rows, 0)] + [(rows // 50, 50)] * 200)
    oldest, *newer = log.layers
    assert oldest.rows == oldest.weight == rows
    assert sum(layer.rows for layer in newer) <= 0.15 * rows
    assert log.rewritten <= math.log2(200) * log.ingested


def test_what_only_grows_is_rewritten_seldom() -> None:
    log = come([(1_000_000, 0)] * 256)
    assert len(log.layers) <= 12
    assert log.rewritten <= 4 * log.ingested


def test_tiny_layers_are_merged_by_their_number() -> None:
    log = come([(10, 0)] * 256)
    assert len(log.layers) <= 12
