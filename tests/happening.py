"""Something that happens while something else is under way: somebody comes between, or the process dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from firnline.world import World


class Killed(BaseException):
    """What a process that dies does not catch."""


def die() -> NoReturn:
    """The process is no more."""
    raise Killed


class At(World):
    """A world in which something happens, once, when a point is reached for the first time, or after some passes."""

    def __init__(self, point: str, happen: Callable[[], object], passes: int = 1) -> None:
        super().__init__()
        self._point, self._happen, self._passes = point, happen, passes

    def reach(self, point: str) -> None:
        self._passes -= point == self._point
        if point == self._point and self._passes == 0:
            self._happen()
