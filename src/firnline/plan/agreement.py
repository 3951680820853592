"""What readers and publishers of a pipeline have agreed on: the whole content of its control table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from firnline.model.gap import Gaps
from firnline.model.hold import Hold
from firnline.plan.changing import Approval
from firnline.plan.frontier import Frontier
from firnline.plan.rewinding import Rewind


@dataclass(frozen=True, slots=True)
class Agreement:
    """The frontier, gaps, holds that were asked for, the point up to which epochs are let go of, rewinds, approvals, names."""

    frontier: Frontier | None = None
    gaps: Gaps = field(default_factory=Gaps)
    holds: tuple[Hold, ...] = ()
    since: int | None = None
    """No log is consolidated beyond it, and no hold is placed below it; it never moves back."""
    rewinds: tuple[Rewind, ...] = ()
    """Those that are not replayed yet; one of them at most is not done."""
    approvals: tuple[Approval, ...] = ()
    """Of changed code, one a collection at most."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The former names of renamed collections, the oldest first (``plan.renaming``)."""
    spent: tuple[str, ...] = ()
    """What retired collections were known as."""

    def open_rewind(self) -> Rewind | None:
        """The rewind, or the undo, that is decided and may not be done."""
        return next((each for each in self.rewinds if not each.is_done), None)

    def kept_since(self, floor: int) -> int:
        """From where on single epochs are kept; ``floor`` is up to where logs are consolidated for sure."""
        return floor if self.since is None else max(floor, self.since)

    def held(self, name: str) -> Hold | None:
        """The hold of a name."""
        return next((hold for hold in self.holds if hold.name == name), None)

    def with_hold(self, hold: Hold) -> Agreement:
        """With a hold, in place of the one of its name."""
        return replace(self, holds=_in_order((*self.without_hold(hold.name).holds, hold)))

    def without_hold(self, name: str) -> Agreement:
        """Without the hold of a name."""
        return replace(self, holds=tuple(hold for hold in self.holds if hold.name != name))


def _in_order(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    return tuple(sorted(holds, key=lambda hold: hold.name))
