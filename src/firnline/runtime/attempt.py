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
    is_in_waves: bool = False
    """Whether it was made of waves, which are staged themselves."""

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
    is_reused: bool = False
    """Whether it is what the log held before a rewind."""
    at_once: int = 1
    """How many epochs one job computed."""
    seconds: float | None = None
    """What it took, where that is not the time since its attempt began: of a job for several epochs, its share."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Why epochs are computed one by one: the next one only, or all that are asked for."""

    reason: str
    is_lasting: bool = False


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
        verdict = _stepped_back(log, head, generation, epoch, attempt, error)
        if verdict is None:
            raise
        return verdict
    world().reach("stage.audited")
    return Staged(snapshot, attempt, digests)


def approved(
    log: Log, head: Head, generation: int, epoch: Epoch, made: Staged, judge: Callable[[Staged], None]
) -> Staged | Verdict:
    """What was staged, if it is judged well; a verdict if somebody else published the epoch meanwhile."""
    try:
        judge(made)
    except BaseException as error:
        verdict = _stepped_back(log, head, generation, epoch, made.attempt, error)
        if verdict is None:
            raise
        return verdict
    return made


def _stepped_back(log: Log, head: Head, generation: int, epoch: Epoch, attempt: str, error: BaseException) -> Verdict | None:
    """Leave the log as it was; the verdict if what was staged stands on somebody else's publish, and so does not count."""
    log.discard(attempt)
    present = log.head() if isinstance(error, FirnlineError) else None
    if present is None:
        return None
    verdict = present.description.judge(generation, head.description.upper, epoch.upper)
    return None if verdict is Verdict.FREE else verdict
