"""Whatever order epochs, merges, repairs, rewinds, undoing, expiry, trash, readers and deaths come in: every point from since on
reads as it was published, and whatever any snapshot names is there."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firnline.failpoints import POINTS
from firnline.tables.catalog import Catalog
from firnline.tables.log import head_of
from firnline.tables.port import Tables
from firnline.tables.undoing import undo
from firnline.world import replaced
from tests.contract.housekeeping import House, Mortal, tolerant
from tests.simulation.memory import MemoryTables

_OURS = ("publish.", "merge.", "expire.", "trash.", "undo.", "repair.", "rewind.")
DEATHS = sorted(point for point in POINTS if point.startswith(_OURS))
HOURS = st.sampled_from([0, 0, 0, 1, 30])
_MOST = 12


class Housekeeping(RuleBasedStateMachine):
    """One log; whoever works on it may die at any point, and somebody else goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.world = Mortal()
        self.stack.enter_context(replaced(self.world))
        self.house = House(self.tables())

    def tables(self) -> Tables:
        return MemoryTables()

    def teardown(self) -> None:
        self.stack.close()

    @initialize()
    def begin(self) -> None:
        self.house.publish()

    @rule(empty=st.sampled_from([0, 0, 0, 2]))
    @precondition(lambda self: head_of(self.house.table).description.upper < _MOST)
    def publish(self, empty: int) -> None:
        house, upper = self.house, head_of(self.house.table).description.upper
        tolerant(house.publish, empty)
        if head_of(house.table).description.upper > upper:
            house.note(upper + empty, house.of(upper + empty))

    @rule(first=st.integers(0, 3), more=st.integers(1, 4))
    def merge(self, first: int, more: int) -> None:
        tolerant(self.house.merge, first, first + more)

    @rule()
    def undo(self) -> None:
        tolerant(undo, self.house.tables, self.house.log)

    @rule(which=st.integers(0, 5))
    def repair(self, which: int) -> None:
        tolerant(self.house.repair, which)

    @rule(back=st.integers(0, 6))
    def rewind(self, back: int) -> None:
        """To a point before the end or beyond it, or one that is refused."""
        tolerant(self.house.rewind, head_of(self.house.table).description.upper + 1 - back, self.house.name())

    @rule()
    @precondition(lambda self: self.house.taken)
    def take_back(self) -> None:
        tolerant(self.house.take_back, self.house.name())

    @rule(hours=HOURS)
    def expire(self, hours: int) -> None:
        tolerant(self.house.log.expire, timedelta(hours=hours))

    @rule(hours=HOURS)
    def empty(self, hours: int) -> None:
        tolerant(self.house.empty, timedelta(hours=hours))

    @rule(lower=st.integers(0, _MOST))
    def stage(self, lower: int) -> None:
        """Somebody stages an epoch, of the past or to come, and is never heard of again."""
        tolerant(self.house.stage, self.house.name(), lower, {("nobody's", lower): 1})

    @rule(hours=st.integers(1, 40))
    def wait(self, hours: int) -> None:
        self.world.ahead += timedelta(hours=hours)

    @rule(point=st.sampled_from(DEATHS))
    def die(self, point: str) -> None:
        """The next one to come there dies."""
        self.world.kill_at = point

    @invariant()
    def all_is_well(self) -> None:
        armed, self.world.kill_at = self.world.kill_at, ""
        self.house.check()
        self.world.kill_at = armed


class HousekeepingOnIceberg(Housekeeping):
    """The same on real tables."""

    def tables(self) -> Tables:
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        Path(folder, "warehouse").mkdir()
        return Catalog(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")


_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
_EXAMPLES = settings().max_examples
TestHousekeeping = Housekeeping.TestCase
TestHousekeeping.settings = settings(max_examples=_EXAMPLES // 2, stateful_step_count=40, suppress_health_check=_CHECKS)
TestHousekeepingOnIceberg = HousekeepingOnIceberg.TestCase
TestHousekeepingOnIceberg.settings = settings(max_examples=_EXAMPLES // 25, stateful_step_count=20, suppress_health_check=_CHECKS)
