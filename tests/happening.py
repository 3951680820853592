"""Something that happens while something else is under way."""

from __future__ import annotations

from collections.abc import Callable

from firnline.world import World


class At(World):
    """A world in which something happens when a point is reached for the first time."""

    def __init__(self, point: str, happen: Callable[[], object]) -> None:
        super().__init__()
        self._point = point
        self._happenings = [happen]

    def reach(self, point: str) -> None:
        if point == self._point and self._happenings:
            self._happenings.pop()()
