"""One attempt's way into a log, whatever engine writes: stage, look at what was staged, publish or step back.

Until the publish nothing is visible, and an attempt that fails before it leaves the log as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.tables.log import Head, Log
from firnline.world import world

Digests = Mapping[tuple[int, int], Digest]


@dataclass(frozen=True, slots=True)
class Staged:
    """A delta in storage that nobody sees yet."""

    snapshot: int | None
    attempt: str
    digests: Digests
    computed: int = 0
    """How many rows a replay computed, those of parts that nobody asked for included."""

    @property
    def total(self) -> Digest:
        """The digest of all of it."""
        return sum(self.digests.values(), Digest())


@dataclass(frozen=True)
class Published:
    """What an attempt came to."""

    verdict: Verdict
    digest: Digest
    malformed: int = 0


def staged(
    log: Log, head: Head, generation: int, epoch: Epoch, attempt: str, write: Callable[[], None], audit: Callable[[int], Digests]
) -> Staged | Verdict:
    """Write a delta beside the main line and audit it; a verdict if somebody else published the epoch meanwhile."""
    try:
        write()
        world().reach("stage.written")
        snapshot = log.staged(attempt)
        digests = audit(snapshot)
    except BaseException as error:
        log.discard(attempt)
        # Staged on top of somebody else's publish of the same epoch: then what was audited is not what counts.
        present = log.head() if isinstance(error, FirnlineError) else None
        if present:
            verdict = present.description.judge(generation, head.description.upper, epoch.upper)
            if verdict is not Verdict.FREE:
                return verdict
        raise
    world().reach("stage.audited")
    return Staged(snapshot, attempt, digests)
