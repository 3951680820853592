"""The description of a log, (generation, since, upper), and the one rule of publishing.

Every snapshot on a log's main line carries a description. A publish of [l, u) in generation g commits only onto a head that says
(g, s, l), and leaves (g, s, u). Hence, within a generation, the published intervals follow one another: no hole, no double.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

GENERATION = "firnline.generation"
SINCE = "firnline.since"
UPPER = "firnline.upper"


class Verdict(Enum):
    """What a publisher of [lower, upper) learns from a head."""

    FREE = "nobody has published it: commit"
    TAKEN = "the log already reaches upper: nothing to do"
    MOVED = "the log ends elsewhere: plan again"
    FENCED = "another generation began: this attempt is out of date"


@dataclass(frozen=True, slots=True)
class Description:
    """History is consolidated up to ``since`` and complete up to ``upper``, both points, in this generation."""

    generation: int
    since: int
    upper: int

    def judge(self, generation: int, lower: int, upper: int) -> Verdict:
        """Whether [lower, upper) may be published onto this head.

        >>> head = Description(generation=0, since=0, upper=20)
        >>> [head.judge(*attempt).name for attempt in ((0, 20, 30), (0, 10, 20), (0, 30, 40), (1, 20, 30))]
        ['FREE', 'TAKEN', 'MOVED', 'FENCED']
        """
        if generation != self.generation:
            return Verdict.FENCED
        if self.upper >= upper:
            return Verdict.TAKEN
        return Verdict.FREE if self.upper == lower else Verdict.MOVED

    def advanced(self, upper: int) -> Description:
        """The description after publishing up to ``upper``."""
        return replace(self, upper=upper)

    def merged(self, upper: int) -> Description:
        """The description after merging layers up to ``upper``."""
        return replace(self, since=max(self.since, upper))

    def as_properties(self) -> dict[str, str]:
        """The description as a snapshot summary carries it."""
        return {GENERATION: str(self.generation), SINCE: str(self.since), UPPER: str(self.upper)}

    @classmethod
    def of_properties(cls, properties: Mapping[str, str]) -> Description:
        """Read a snapshot summary back."""
        return cls(int(properties[GENERATION]), int(properties[SINCE]), int(properties[UPPER]))
