"""Intakes: how what a source's function returned becomes the delta of its epoch. One a source, by its options.

=========== ========= ======================================================================
declared    intake    delta
=========== ========= ======================================================================
nothing     rows      every row is an insert; with ``_diff`` or ``_change_type``, a change
snapshot    snapshot  the difference between the returned rows and the collection's own state
sequence_by feed      what playing the returned events changes; see ``model.feed``
=========== ========= ======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from firnline.model.feed import Feed

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


Intake = Rows | Snapshot | Feed
ROWS = Rows()
_KINDS: Mapping[str, type[Intake]] = MappingProxyType({"rows": Rows, "snapshot": Snapshot, "feed": Feed})


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a source, as they were given."""

    snapshot: object = False
    shrink: object = None
    feed: Feed | None = None

    def intake(self) -> Intake:
        """The intake that they ask for.

        >>> Asked().intake(), Asked(snapshot=True, shrink=1).intake()
        (Rows(kind='rows'), Snapshot(shrink=1.0, kind='snapshot'))
        >>> Asked(shrink=0.1).intake()
        Traceback (most recent call last):
        ValueError: shrink=0.1 says something about snapshots, and it has no snapshot=True

        Raises:
            ValueError: If they contradict each other, or one is no value of its kind.
        """
        if not isinstance(self.snapshot, bool):
            raise ValueError(f"snapshot={self.snapshot!r} is neither True nor False")
        for problem in self.feed.problems() if self.feed is not None else ():
            raise ValueError(problem)
        if self.snapshot and self.feed is not None:
            raise ValueError("it has snapshot=True and sequence_by: what it returns is either the whole or events")
        if self.snapshot:
            return Snapshot(_SHRINK if self.shrink is None else _fraction("shrink", self.shrink))
        if self.shrink is not None:
            raise ValueError(f"shrink={self.shrink!r} says something about snapshots, and it has no snapshot=True")
        return self.feed or ROWS


NOTHING_ASKED = Asked()


def intake_of(entry: Mapping[str, Any]) -> Intake:
    """Read an intake back from JSON values.

    >>> intake_of({"kind": "snapshot", "shrink": 0.25})
    Snapshot(shrink=0.25, kind='snapshot')
    """
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return _KINDS[entry["kind"]](**values)


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r} is no fraction between 0 and 1")
    return float(value)
