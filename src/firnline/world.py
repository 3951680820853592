"""What the runtime takes from outside itself: time, sleep, new ids, and the points where it may be interrupted.

The simulation puts another world in place of this one.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from firnline.failpoints import VARIABLE, Armed


class World:
    """The real one."""

    def __init__(self) -> None:
        self._armed = Armed.of(os.environ.get(VARIABLE, ""))

    def reach(self, point: str) -> None:
        """Say that a point of ``failpoints.POINTS`` is reached."""
        if self._armed.kinds:
            self._armed.reach(point)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def new_id(self) -> str:
        """An id that nobody else has."""
        return uuid.uuid4().hex

    def now(self) -> datetime:
        """The wall clock, in UTC. Nothing is decided by it but which epochs are due and whether a lease has ended."""
        return datetime.now(UTC)


_world: World | None = None


def world() -> World:
    """The world as it is now."""
    global _world
    if _world is None:
        _world = World()
    return _world


@contextmanager
def replaced(other: World) -> Iterator[None]:
    """Another world, inside."""
    global _world
    before = _world
    _world = other
    try:
        yield
    finally:
        _world = before
