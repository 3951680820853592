"""What somebody outside, a sink or a reader, has seen of collections, and what of it is void.

One position (line, point) stands for it: the state at the point, of the line that begins with the hold's line-th rewind. A
rewind to E puts whoever may have seen more onto the next line. Of a log that went back it has then seen the state at E, of this
line, and the epochs from E on up to where it was, of the generation before: these are void. Whoever is told the changes from E
on, less what is void, has seen the state that they lead to. Logs that did not go back stay seen as far as they were.

Of a sink, ``delivered`` names the collections that this is about. What it delivers just now, from its point on, its hold does not
say yet: it too may have seen more.
"""

from __future__ import annotations

import re
from collections.abc import Collection as Names
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from firnline.model.hold import Back, Hold
from firnline.model.names import QUARANTINE

_POSITION = re.compile(r"(?P<label>.*?)(__(?P<line>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Void:
    """Epochs [lower, upper) of a log as it was in an older generation: they were seen, and are not true any more."""

    generation: int
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A collection as somebody has seen it: the state at a point, and what is void beside it."""

    at: int
    void: tuple[Void, ...] = ()


def position_of(label: str | None, line: int) -> str | None:
    """A position as people, and their copies, keep it.

    >>> position_of("2026-01-05", 0), position_of("2026-01-05", 2), position_of(None, 0), position_of(None, 1)
    ('2026-01-05', '2026-01-05__2', None, '__1')
    """
    return f"{label or ''}__{line}" if line else label


def parsed(position: str | None) -> tuple[str | None, int]:
    """Read ``position_of`` back.

    >>> parsed("2026-01-05"), parsed("2026-01-05__2"), parsed(None), parsed("__1")
    (('2026-01-05', 0), ('2026-01-05', 2), (None, 0), (None, 1))
    """
    found = _POSITION.fullmatch(position or "")
    assert found is not None, "it matches everything"
    return found["label"] or None, int(found["line"] or 0)


def seen_of(hold: Hold, name: str) -> Seen:
    """What the owner of a hold has seen of a collection."""
    if not _concerns(hold, name):
        return Seen(hold.at)
    return _folded(_seen(hold).get(name, _others(hold)), name, hold.back)


def moved(hold: Hold, line: int, point: int, anew: Iterable[str] = ()) -> Hold | None:
    """A hold whose owner has seen all up to a point of a line; it never moves back. None if that line was left long ago.

    Args:
        hold: The hold.
        line: The one that the point is of: the present one, or one whose end the owner has not been told of.
        point: The point.
        anew: The collections that it has seen for the first time.
    """
    told = _told(hold, line)
    if told is None:
        return None
    at = _seen_on(hold, told, anew) | dict.fromkeys(anew, point)
    others = max(_others(hold), point)
    seen = {name: max(each, point) for name, each in at.items()}
    return _placed(replace(hold, back=hold.back[told:]), others, {name: each for name, each in seen.items() if each != others})


def stood(hold: Hold, line: int) -> int | None:
    """Where a hold stood on a line, as far as it knew; None if that line was left long ago."""
    told = _told(hold, line)
    if told is None:
        return None
    if hold.kind == "sink" and hold.delivered is None:
        return min((_others(hold), *(back.to for back in hold.back[:told])))
    return min((_others(hold), *_seen_on(hold, told).values()))


def taken_back(hold: Hold, to: int, logs: Mapping[str, int]) -> Hold:
    """The hold of a sink or reader after a rewind; no other changes.

    Either may have seen more than its hold says, since that is said afterwards; a sink no more than the epoch at its point.

    Args:
        hold: The hold.
        to: The point that logs went back to.
        logs: The generations that they begin.
    """
    if hold.kind not in ("sink", "reader"):
        return hold
    back = Back(to, {name: generation - 1 for name, generation in logs.items() if _is_readable(name)})
    after = replace(hold, back=(*hold.back, back), line=hold.line + 1)
    if hold.kind == "sink" and hold.delivered is None:
        return hold if hold.at < to else replace(after, at=to, ahead=_others(hold))
    if hold.kind == "sink" and all(seen_of(hold, name).at < to for name in back.logs if _concerns(hold, name)):
        return hold
    return _placed(after, _others(hold), _seen(hold))


def voided(holds: Iterable[Hold], log: str) -> frozenset[int]:
    """The generations of a log of which somebody may have seen more than is true, and has to be told what."""
    concerned = (hold for hold in holds if _concerns(hold, log) or hold.delivered is None)
    return frozenset(back.logs[log] for hold in concerned for back in hold.back if log in back.logs)


def _seen(hold: Hold) -> Mapping[str, int]:
    return hold.seen or {}


def _others(hold: Hold) -> int:
    return hold.at if hold.ahead is None else hold.ahead


def _folded(at: int, name: str, back: Iterable[Back]) -> Seen:
    void: list[Void] = []
    for each in back:
        if name in each.logs and at > each.to:
            void.append(Void(each.logs[name], each.to, at))
            at = each.to
    return Seen(at, tuple(void))


def _told(hold: Hold, line: int) -> int | None:
    """How many of the rewinds that a hold keeps came before a line; None if it keeps none so old, or the line is none yet."""
    told = len(hold.back) - (hold.line - line)
    return told if 0 <= told <= len(hold.back) else None


def _seen_on(hold: Hold, told: int, anew: Iterable[str] = ()) -> dict[str, int]:
    """Up to where single collections were seen, after so many of the rewinds."""
    names = {*_seen(hold), *(name for back in hold.back[:told] for name in back.logs), *anew}
    several = (name for name in names if _concerns(hold, name))
    return {name: _folded(_seen(hold).get(name, _others(hold)), name, hold.back[:told]).at for name in several}


def _placed(hold: Hold, others: int, seen: Mapping[str, int]) -> Hold:
    """A hold at the least of all that its owner has seen."""
    ahead = replace(hold, ahead=others, seen=dict(seen) or None)
    logs: Names[str] = {*seen, *(name for back in hold.back for name in back.logs)}
    names = [name for name in logs if _concerns(hold, name)]
    at = min((others, *(seen_of(ahead, name).at for name in names)))
    return replace(ahead, at=at, ahead=None if at == others and not names else others)


def _concerns(hold: Hold, name: str) -> bool:
    """Whether what becomes of a collection concerns the owner of a hold: not if it is a sink that has not delivered it."""
    return hold.kind != "sink" or name in (hold.delivered or {})


def _is_readable(log: str) -> bool:
    """Whether a log is a collection, or the quarantine of one: not what a stage or an intake keeps for itself."""
    return "__" not in log or log.endswith(QUARANTINE)
