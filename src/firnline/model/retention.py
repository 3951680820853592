"""Retention: how much history a pipeline keeps epoch by epoch, behind its frontier."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firnline.model.duration import seconds_of
from firnline.model.epoch import Schedule

_EPOCHS = re.compile(r"([1-9]\d*)\s*epochs?")


@dataclass(frozen=True, slots=True)
class Retention:
    """So many epochs, or so many microseconds."""

    text: str
    epochs: int | None = None
    micros: int | None = None

    @classmethod
    def parse(cls, keep: object, is_timed: bool = True) -> Retention:
        """Read a pipeline's ``keep``: a number of epochs, or a duration where epochs are times.

        >>> Retention.parse("30 epochs").epochs, Retention.parse("7d").micros
        (30, 604800000000)
        >>> Retention.parse("7d", is_timed=False)
        Traceback (most recent call last):
        ValueError: '7d' is a duration, and epochs are integers here; write for example '30 epochs'
        """
        found = _EPOCHS.fullmatch(keep.strip().lower()) if isinstance(keep, str) else None
        if found:
            return cls(str(keep), epochs=int(found[1]))
        try:
            micros = max(1, int(seconds_of(keep) * 1_000_000))
        except ValueError:
            raise ValueError(f"{keep!r} says not how much to keep; write for example '30 epochs' or '7d'") from None
        if not is_timed:
            raise ValueError(f"{str(keep)!r} is a duration, and epochs are integers here; write for example '30 epochs'")
        return cls(str(keep), micros=micros)

    def point(self, schedule: Schedule, frontier: int) -> int:
        """Where the history begins that is kept.

        >>> days = Schedule.parse("@daily", "2026-01-01", None)
        >>> frontier = days.point("2026-01-10")
        >>> [days.label(Retention.parse(keep).point(days, frontier)) for keep in ("3 epochs", "60h", "30d")]
        ['2026-01-07', '2026-01-07', '2026-01-01']
        """
        if self.epochs is not None:
            return schedule.before(frontier, self.epochs)
        return schedule.epoch_at(max(schedule.start, frontier - (self.micros or 0))).lower

    def __str__(self) -> str:
        return f"keep={self.text!r}"
