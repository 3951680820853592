"""Which batches are copied next, to which places: eagerly when nothing waits, else only as far as the recovery time asks for.

A batch is safe when it is on as many places as its collection wants. The recovery time is what computing all that is not safe
took: what losing the warehouse would cost at most. If epochs wait, so do copies, as long as the recovery time is below its limit;
beyond it the oldest batches are copied until it is not. Facts in, copies out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """What one snapshot brought, and where it is."""

    collection: str
    """The log's name; also of what a stage keeps, and of a quarantine."""
    attempt: str
    generation: int
    lower: int
    upper: int
    """The epochs that it holds rows of."""
    seconds: float
    """How long computing it took."""
    wanted: int
    """On how many places beside the warehouse it has to be."""
    held: frozenset[str] = frozenset()
    """The places that it was copied to."""
    outdated: frozenset[str] = frozenset()
    """Those of them that lack a repair of its rows."""
    position: int = 0
    """Of its collection among those of the pipeline: inputs come first."""
    is_repair: bool = False

    @property
    def lacks(self) -> int:
        """On how many places more it has to be."""
        return max(0, self.wanted - len(self.held - self.outdated))


@dataclass(frozen=True, slots=True)
class Copying:
    """A batch on its way to a place."""

    batch: Batch
    place: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is copied now, and what waits."""

    copies: tuple[Copying, ...]
    waiting: tuple[Batch, ...]
    """Batches that lack a place, and get none now."""


def recovery_time(batches: Iterable[Batch]) -> float:
    """The seconds that it took to compute what is not safe.

    >>> safe = Batch("visits", "a", 0, 0, 1, 5.0, 1, frozenset({"file:///mnt/b"}))
    >>> recovery_time([safe, Batch("visits", "b", 0, 1, 2, 7.0, 1)])
    7.0
    """
    return sum(batch.seconds for batch in batches if batch.lacks)


def plan(batches: Sequence[Batch], places: Sequence[str], queued: int, limit: float) -> Plan:
    """What to copy next.

    Args:
        batches: All of the present ones.
        places: Those that answer, the preferred ones first.
        queued: How many epochs are due and not complete.
        limit: The recovery time that is never exceeded for them.

    >>> old, new = Batch("visits", "a", 0, 0, 1, 40.0, 1), Batch("visits", "b", 0, 1, 2, 40.0, 1)
    >>> [each.batch.attempt for each in plan([new, old], ["file:///mnt/b"], 0, 60.0).copies]
    ['a', 'b']
    >>> [each.batch.attempt for each in plan([new, old], ["file:///mnt/b"], 3, 60.0).copies]
    ['a']
    >>> plan([new, old], ["file:///mnt/b"], 3, 100.0).copies
    ()
    """
    at_stake = recovery_time(batches)
    copies: list[Copying] = []
    waiting: list[Batch] = []
    for batch in sorted((each for each in batches if each.lacks), key=lambda each: (each.lower, each.position, each.upper)):
        free = [place for place in places if place not in batch.held]
        chosen = free[: batch.lacks] if not queued or at_stake >= limit else []
        copies += [Copying(batch, place) for place in chosen]
        if len(chosen) == batch.lacks:
            at_stake -= batch.seconds
        else:
            waiting.append(batch)
    return Plan(tuple(copies), tuple(waiting))


def upto(batches: Iterable[Batch], since: int, upper: int) -> int:
    """How far a collection's batches are safe, from its beginning; what is consolidated is not gone behind anyway.

    >>> safe, new = Batch("visits", "a", 0, 0, 1, 5.0, 0), Batch("visits", "b", 0, 1, 2, 7.0, 1)
    >>> upto([safe, new], 0, 2), upto([safe], 0, 1), upto([new], 2, 2)
    (1, 1, 2)
    """
    return max(since, min((batch.lower for batch in batches if batch.lacks), default=upper))
