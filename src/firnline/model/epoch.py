"""Epochs: logical timestamps, half-open intervals [lower, upper) that follow one another without gap or overlap.

The points of a timed schedule are UTC microseconds since 1970; those of an integer schedule are the integers themselves. For any
schedule and any point p at or after its start there is exactly one epoch with lower <= p < upper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from croniter import CroniterBadDateError, croniter

from firnline.errors import FirnlineError

PRESETS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}

MOST_EPOCHS = 100_000
_MINUTE = 60_000_000
# Cron rules that are a fixed step in UTC: no need to ask cron, which takes a fifth of a millisecond for each epoch.
_STEPS = {
    "* * * * *": _MINUTE,
    **{f"*/{minutes} * * * *": minutes * _MINUTE for minutes in range(1, 31) if 60 % minutes == 0},
    "0 * * * *": 60 * _MINUTE,
    **{f"0 */{hours} * * *": 60 * hours * _MINUTE for hours in range(1, 13) if 24 % hours == 0},
    "0 0 * * *": 24 * 60 * _MINUTE,
    "0 0 * * 0": 7 * 24 * 60 * _MINUTE,
}

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """The interval [lower, upper)."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise FirnlineError("BAD_EPOCH", f"the epoch [{self.lower}, {self.upper}) is empty")


def to_micros(moment: datetime) -> int:
    """UTC microseconds of a moment; a moment without zone is read as UTC.

    >>> to_micros(datetime(1970, 1, 2))
    86400000000
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _ZERO) // _MICROSECOND


def to_datetime(micros: int) -> datetime:
    """The moment of UTC microseconds.

    >>> to_datetime(86400000000).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return _ZERO + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Where epochs begin and end: a cron expression in UTC, or a fixed step of microseconds or integers.

    >>> days = Schedule.parse("@daily", "2026-01-01", None)
    >>> [days.label(epoch.lower) for epoch in days.epochs(days.start, days.point("2026-01-03"))]
    ['2026-01-01', '2026-01-02']
    """

    rule: str | int
    start: int
    end: int | None
    timed: bool

    @classmethod
    def parse(cls, schedule: object, start: object, end: object) -> Schedule:
        """Read a pipeline's ``schedule``, ``start`` and ``end`` as the user wrote them."""
        if isinstance(schedule, timedelta):
            rule: str | int = schedule // _MICROSECOND
            timed = True
        elif isinstance(schedule, int) and not isinstance(schedule, bool):
            rule, timed = schedule, False
        elif isinstance(schedule, str) and croniter.is_valid(PRESETS.get(schedule, schedule)):
            rule, timed = PRESETS.get(schedule, schedule), True
        else:
            raise FirnlineError("BAD_SCHEDULE", f"{schedule!r} is no schedule")
        if isinstance(rule, int) and rule <= 0:
            raise FirnlineError("BAD_SCHEDULE", f"a step of {schedule!r} does not move forward")
        first = _point(start, timed)
        last = None if end is None else _point(end, timed)
        if last is not None and last <= first:
            todo = "Choose a later end; none means that epochs go on."
            raise FirnlineError("BAD_SCHEDULE", f"the end {end!r} is not after the start {start!r}", todo=todo)
        draft = cls(rule, first, last, timed)
        if isinstance(rule, str) and to_micros(croniter(rule, to_datetime(first - 1)).get_next(datetime)) != first:
            after = to_micros(croniter(rule, to_datetime(first)).get_next(datetime))
            raise _beside(f"the start {start!r}", schedule, draft.label(after))
        if last is not None and draft.epoch_at(last - 1).upper != last:
            raise _beside(f"the end {end!r}", schedule, draft.label(draft.epoch_at(last - 1).upper))
        return draft

    def point(self, text: object) -> int:
        """A moment as users write it: ISO text, a datetime, or an integer where the schedule is one of integers."""
        return _point(text, self.timed)

    def label(self, point: int) -> str:
        """The shortest ISO text of a point, or its digits."""
        if not self.timed:
            return str(point)
        try:
            moment = to_datetime(point).replace(tzinfo=None)
        except OverflowError:
            return f"{point} microseconds"
        if moment.microsecond:
            return moment.isoformat()
        if moment.hour or moment.minute or moment.second:
            return moment.isoformat(timespec="seconds" if moment.second else "minutes")
        return moment.date().isoformat()

    def epoch_at(self, point: int) -> Epoch:
        """The one epoch that holds the point."""
        if point < self.start:
            raise FirnlineError("BEFORE_START", f"{self.label(point)} is before the start {self.label(self.start)}")
        if self.end is not None and point >= self.end:
            raise FirnlineError("AFTER_END", f"{self.label(point)} is not before the end {self.label(self.end)}")
        upper = self._after(point)
        step = self._step()
        return Epoch(upper - step if step else to_micros(croniter(self.rule, to_datetime(upper)).get_prev(datetime)), upper)

    def stored(self, lower: int, lowers: Iterable[int], upper: int) -> Epoch:
        """The epoch that begins at ``lower``, of those of a layer, which begin at ``lowers`` and end at ``upper``.

        The last one ends where the layer does, whatever the schedule was when it was published.

        >>> days = Schedule.parse("@daily", "2026-01-01", None)
        >>> nine = days.point("2026-01-01T09:00")
        >>> days.label(days.stored(nine, [nine], days.point("2026-01-01T10:00")).upper)
        '2026-01-01T10:00'
        """
        later = [each for each in lowers if each > lower]
        found = self.epoch_at(lower) if later else Epoch(lower, upper)
        if found.lower != lower or found.upper > min(later, default=upper):
            raise FirnlineError("NOT_REPAIRABLE", f"no epoch of the schedule begins at {self.label(lower)} any more")
        return found

    def epochs(self, lower: int, upper: int) -> Iterator[Epoch]:
        """The epochs from the point ``lower``, in order, while they end at or before ``upper``; refused beyond any sense."""
        for _ in range(MOST_EPOCHS):
            if lower >= upper or (self.end is not None and lower >= self.end):
                return
            upto = self._after(lower)
            if upto > upper:
                return
            yield Epoch(lower, upto)
            lower = upto
        raise FirnlineError("BAD_EPOCH", f"{self.label(upper)} is more than {MOST_EPOCHS} epochs away")

    def count(self, lower: int, upper: int) -> int:
        """How many epochs ``epochs`` would yield."""
        return _count(self, lower, upper)

    def before(self, point: int, epochs: int) -> int:
        """The point so many epochs before one of the schedule; its start at the earliest.

        >>> months = Schedule.parse("@monthly", "2026-01-01", None)
        >>> [months.label(months.before(months.point("2026-05-01"), count)) for count in (2, 40)]
        ['2026-03-01', '2026-01-01']
        """
        step = self._step()
        if step:
            return max(self.start, point - epochs * step)
        moments = croniter(self.rule, to_datetime(point))
        while epochs and point > self.start:
            point, epochs = to_micros(moments.get_prev(datetime)), epochs - 1
        return max(self.start, point)

    def _step(self) -> int | None:
        return self.rule if isinstance(self.rule, int) else _STEPS.get(self.rule)

    def _after(self, point: int) -> int:
        """The first moment of the schedule after a point."""
        step = self._step()
        if step:
            return self.start + ((point - self.start) // step + 1) * step
        try:
            return to_micros(croniter(self.rule, to_datetime(point)).get_next(datetime))
        except (OverflowError, CroniterBadDateError) as error:
            raise FirnlineError("BAD_EPOCH", f"the schedule has no moment after the point {point}") from error


@cache
def _count(schedule: Schedule, lower: int, upper: int) -> int:
    step = schedule._step()
    if step and (lower - schedule.start) % step == 0:
        last = upper if schedule.end is None else min(upper, schedule.end)
        return max(0, last - lower) // step
    return sum(1 for _ in schedule.epochs(lower, upper))


def _beside(what: str, schedule: object, after: str) -> FirnlineError:
    todo = f"Epochs begin and end at its moments, in UTC; the next one is {after}."
    return FirnlineError("BAD_SCHEDULE", f"{what} is not a moment of the schedule {schedule!r}", todo=todo)


def _point(text: object, timed: bool) -> int:
    if not timed:
        try:
            return int(str(text))
        except ValueError:
            raise FirnlineError("BAD_EPOCH", f"{text!r} is no integer") from None
    if isinstance(text, datetime):
        return to_micros(text)
    try:
        return to_micros(datetime.fromisoformat(str(text)))
    except ValueError:
        raise FirnlineError("BAD_EPOCH", f"{text!r} is no ISO date or time") from None
