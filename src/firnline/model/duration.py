"""Durations as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TEXT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def seconds_of(duration: object) -> float:
    """The seconds of a timedelta, or of a text such as 30s, 10m, 1.5h or 7d; positive.

    >>> seconds_of("30s"), seconds_of("1.5h"), seconds_of(timedelta(days=7))
    (30.0, 5400.0, 604800.0)
    """
    found = _TEXT.fullmatch(duration.strip().lower()) if isinstance(duration, str) else None
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else 0.0
    if found:
        seconds = float(found[1]) * _UNITS[found[2]]
    if seconds <= 0:
        raise ValueError(f"{duration!r} is no duration; write for example '30s', '10m', '2h' or '7d'")
    return seconds


def time_of(text: str) -> timedelta:
    """A duration that may be none at all.

    >>> time_of("0s"), time_of("1d")
    (datetime.timedelta(0), datetime.timedelta(days=1))
    """
    found = _TEXT.fullmatch(text.strip().lower())
    return timedelta() if found and not float(found[1]) else timedelta(seconds=seconds_of(text))
