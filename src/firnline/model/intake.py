"""Intakes: how what a source's function returned becomes the delta of its epoch. One a source, by its options.

=========== ========= ======================================================================
declared    intake    delta
=========== ========= ======================================================================
nothing     rows      every row is an insert; with ``_diff`` or ``_change_type``, a change
snapshot    snapshot  the difference between the returned rows and the collection's own state
dedup       dedup     the returned rows whose keys were not seen, one a key
sequence_by feed      what playing the returned events changes; see ``model.feed``
=========== ========= ======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from firnline.model.feed import Feed
from firnline.model.retention import Retention

_SHRINK = 0.5


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, or changes of them."""

    kind: Literal["rows"] = "rows"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole collection, every time."""

    shrink: float = _SHRINK
    """The fraction of its rows that it may lose in one epoch."""
    kind: Literal["snapshot"] = "snapshot"


@dataclass(frozen=True, slots=True)
class Dedup:
    """Records, some of which may have been delivered before."""

    ids: tuple[str, ...]
    """The columns that identify a record."""
    horizon: Retention | None = None
    """How long it is known which were seen; None for ever."""
    kind: Literal["dedup"] = "dedup"


Intake = Rows | Snapshot | Dedup | Feed
ROWS = Rows()
_KINDS: Mapping[str, type[Intake]] = MappingProxyType({"rows": Rows, "snapshot": Snapshot, "dedup": Dedup, "feed": Feed})


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a source, as they were given."""

    snapshot: object = False
    shrink: object = None
    dedup: object = False
    dedup_horizon: object = None
    feed: Feed | None = None
    adopt: str | None = None

    def intake(self, keys: tuple[str, ...], *, is_timed: bool) -> Intake:
        """The intake that they ask for, of a source with these keys.

        >>> Asked().intake(("k",), is_timed=True), Asked(snapshot=True, shrink=1).intake(("k",), is_timed=True)
        (Rows(kind='rows'), Snapshot(shrink=1.0, kind='snapshot'))
        >>> Asked(shrink=0.1).intake(("k",), is_timed=True)
        Traceback (most recent call last):
        ValueError: shrink=0.1 is an option of snapshot=True

        Raises:
            ValueError: If they contradict each other, or one is no value of its kind.
        """
        for name in ("snapshot", "dedup"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} is neither True nor False")
        for problem in self.feed.problems() if self.feed is not None else ():
            raise ValueError(problem)
        if self.snapshot and self.dedup:
            raise ValueError("it has both snapshot=True and dedup=True, and a dump has each key once")
        if self.snapshot and self.feed is not None:
            raise ValueError("it has snapshot=True and sequence_by: what it returns is either the whole or events")
        if self.dedup and self.feed is not None:
            raise ValueError("it has dedup=True and sequence_by, and an event that comes twice counts once anyway")
        if self.shrink is not None and not self.snapshot:
            raise ValueError(f"shrink={self.shrink!r} is an option of snapshot=True")
        if self.dedup_horizon is not None and not self.dedup:
            raise ValueError(f"dedup_horizon={self.dedup_horizon!r} is an option of dedup=True")
        if self.adopt is not None:
            self._check_adoption()
        if self.snapshot:
            return Snapshot(_SHRINK if self.shrink is None else _fraction("shrink", self.shrink))
        if self.dedup:
            return Dedup(keys, _horizon(self.dedup_horizon, keys, is_timed=is_timed))
        return self.feed or ROWS

    def _check_adoption(self) -> None:
        if not isinstance(self.adopt, str) or len([each for each in self.adopt.split(".") if each]) < 3:
            raise ValueError(f"adopt={self.adopt!r} is no name of a table: catalog.namespace.table")
        if self.feed is not None:
            raise ValueError("it has adopt and sequence_by, and a table's rows are no events")
        if self.dedup_horizon is not None:
            raise ValueError("it has adopt and dedup_horizon, and a table does not say when its rows came")


NOTHING_ASKED = Asked()


def intake_of(entry: Mapping[str, Any]) -> Intake:
    """Read an intake back from JSON values.

    >>> intake_of({"kind": "snapshot", "shrink": 0.25})
    Snapshot(shrink=0.25, kind='snapshot')
    """
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    if entry.get("horizon") is not None:
        values["horizon"] = Retention(**entry["horizon"])
    return _KINDS[entry["kind"]](**values)


def _horizon(asked: object, keys: tuple[str, ...], *, is_timed: bool) -> Retention | None:
    if not keys:
        raise ValueError("it has dedup=True, and no keys to tell records by")
    if asked is None:
        return None
    try:
        return Retention.parse(asked, is_timed)
    except ValueError as problem:
        raise ValueError(f"dedup_horizon: {problem}") from None


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r} is no fraction between 0 and 1")
    return float(value)
