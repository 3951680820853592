"""Holds: reasons why the safe point may not advance, each with the point that it keeps and who lets go of it.

A hold at p keeps the state at p and every single epoch from p on. Readers, sinks, branches and rewinds are asked for, and are
kept in the control table; the others follow from facts that stand elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

Kind = Literal["reader", "sink", "branch", "rewind", "pipeline", "gap", "check", "replication", "retention", "frontier"]
WORDS: Mapping[Kind, str] = {
    "check": "the failed check of",
    "gap": "the gap in",
    "reader": "the reader",
    "sink": "the sink",
    "branch": "the branch",
    "rewind": "the rewind",
    "pipeline": "the pipeline",
    "replication": "replication of",
    "retention": "retention,",
    "frontier": "the frontier",
}
"""How each is called. Of several at one point, those that come first say more."""


def minute(moment: str) -> str:
    """A moment as people read it.

    >>> minute("2026-01-08T06:30:12+00:00")
    '2026-01-08 06:30'
    """
    return moment[:16].replace("T", " ")


@dataclass(frozen=True, slots=True)
class Back:
    """A rewind that took back what somebody may have seen, and has not been told of yet."""

    to: int
    logs: Mapping[str, int]
    """Of each log that went back, the generation that it was of before."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing at or after the point ``at`` is let go of."""

    kind: Kind
    name: str
    at: int
    owner: str = ""
    """Whom to ask; nobody where it is there by itself."""
    since: str | None = None
    """Since when, in UTC, as ISO 8601 has it; None where it is there by itself."""
    until: str | None = None
    """When its lease ends; None if it has none."""
    release: str = ""
    """How one gets rid of it: a command, or what to do."""
    delivered: Mapping[str, int] | None = None
    """Of a sink, the generations of the collections whose state at the point it has delivered; None if it is yet to."""
    line: int = 0
    """Of a sink or reader, how often a rewind took back what it had seen."""
    back: tuple[Back, ...] = ()
    """Of a sink or reader, the rewinds that it has not been told of, the oldest first."""
    ahead: int | None = None
    """Of a sink or reader, up to where it has seen the collections that ``seen`` does not name; up to the point if None."""
    seen: Mapping[str, int] | None = None
    """Of a sink or reader, up to where it has seen others, before the rewinds in ``back``."""

    def is_expired(self, now: datetime) -> bool:
        """Whether its lease has ended.

        >>> leased = Hold("reader", "bi", 0, "ana", until="2026-01-08T00:00:00+00:00")
        >>> [leased.is_expired(datetime.fromisoformat(f"2026-01-0{day}T00:00:00+00:00")) for day in (7, 8)]
        [False, True]
        """
        return self.until is not None and datetime.fromisoformat(self.until) <= now

    def __str__(self) -> str:
        quoted = self.name if self.kind in ("retention", "frontier") else repr(self.name)
        return f"{WORDS[self.kind]} {quoted}".strip()

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Hold:
        """Read ``as_json`` back."""
        return cls(**{**data, "back": tuple(Back(**each) for each in data.get("back", ()))})
