"""Waves: an epoch that is too much work to lose is computed in several pieces, each staged by itself; a retry keeps them.

A piece is a group of the output's parts, where the inputs are cut alike; or a chunk of the inputs, where the rows of all chunks
add up; or partial sums over a chunk, where the rows are sums that are kept. All that a piece hangs on goes into its name, so what
another attempt, dead or alive, staged under that name is the same piece.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from firnline.engine.leaves import Chunk, Leaf
from firnline.engine.staging import FEW
from firnline.incremental.algebra import Accumulate, Node
from firnline.incremental.chunking import is_additive, linear_inputs
from firnline.model.epoch import Schedule
from firnline.model.graph import Graph
from firnline.plan.waves import MOST, Measured, shared_out, wave_count
from firnline.tables.log import Log

_PAST = 3
"""How many epochs of the past are looked at."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How an epoch is cut into waves.

    Args:
        by: By groups of parts, by chunks of inputs whose rows add up, or by chunks whose sums do.
        groups: The parts of each wave; None for each by chunks.
        chunked: The inputs that are cut into chunks.
    """

    by: Literal["parts", "chunks", "sums"]
    groups: tuple[tuple[int, ...] | None, ...]
    chunked: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """How many waves."""
        return len(self.groups)

    def leaves(
        self, number: int, leaves: Mapping[str, Leaf], keys: Mapping[str, tuple[str, ...]], *, is_continued: bool
    ) -> dict[str, Leaf]:
        """What one wave reads by chunks; ``keys`` are those of the logs."""
        return {
            name: replace(leaf, chunk=Chunk(keys[name], number, self.count, not is_continued)) if name in self.chunked else leaf
            for name, leaf in leaves.items()
        }

    def name(self, *facts: object) -> str:
        """What these waves are called, by all that they hang on."""
        told = json.dumps([self.by, [list(each or ()) for each in self.groups], sorted(self.chunked), *facts], sort_keys=True)
        return hashlib.blake2b(told.encode(), digest_size=12).hexdigest()


def cut_of(
    node: Node,
    leaves: Mapping[str, Leaf],
    alike: Callable[[], set[str]],
    parts: int,
    log: Log,
    graph: Graph,
    lower: int,
    *,
    is_continued: bool,
) -> Cut | None:
    """How to cut an epoch of a log; None if it fits the budget, or cannot be cut.

    Args:
        node: What is computed.
        leaves: The logs that it reads.
        alike: Tells those that are cut into parts as the output is; asked only if there is much to do.
        parts: How many parts the output has.
        log: The log that is advanced.
        graph: Its pipeline, which has a recovery budget.
        lower: Where the epoch begins.
        is_continued: Whether the rows come from what changed, or else from all there is.
    """
    own = node.arrangement if isinstance(node, Accumulate) else None
    sizes = {name: leaf.changes if is_continued else leaf.size for name, leaf in leaves.items() if name != own}
    rows = sum(sizes.values())
    if rows <= FEW:
        return None
    # The past may have been merged since an attempt before this one looked at it: what that has staged is kept all the same.
    count = log.wave_count(lower)
    if count is None:
        # Every chunk reads the states that its rows meet: chunks of few rows would do little but that.
        past = _past(log, graph.schedule) if is_continued else ()
        count = wave_count(rows, past, graph.recovery_budget, min(MOST, rows // FEW))
    if count == 1:
        return None
    if parts > 1 and 2 * sum(sizes.get(name, 0) for name in alike()) >= rows:
        return Cut("parts", tuple(shared_out(parts, min(count, parts))))
    below = node.input if isinstance(node, Accumulate) else node
    chunked = (frozenset(sizes) if is_additive(below) else frozenset()) if is_continued else linear_inputs(below, sizes)
    if not chunked:
        return None
    return Cut("sums" if isinstance(node, Accumulate) else "chunks", (None,) * count, chunked)


def _past(log: Log, schedule: Schedule) -> Iterator[Measured]:
    for entry in islice(log.entries(), _PAST):
        sidecar = log.sidecar(entry)
        epochs = schedule.count(entry.lower, entry.description.upper) if sidecar.merged else 1
        yield Measured(sum(of.rows for of in sidecar.inputs.values()), entry.seconds, max(epochs, 1))
