"""Who goes on, who dies, whose answer is lost: decided by a seeded generator at every step of every worker.

Workers are greenlets, so that one thread holds them all and nothing but the seed decides their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from greenlet import getcurrent, greenlet

from firnline.errors import FirnlineError
from firnline.world import World

_DONE = {"committed", "created", "dropped", "recorded", "staged", "stashed", "written"}
"""Steps after an effect: an error here is a lost answer."""


class CrashError(BaseException):
    """kill -9: nothing of the worker's own code runs any more."""


@dataclass(frozen=True, slots=True)
class Weather:
    """How often, per step, a worker dies, an operation fails, an answer is lost, a worker falls asleep."""

    crash: float
    fail: float
    lose: float
    doze: float

    @classmethod
    def of(cls, chance: random.Random) -> Weather:
        """Anything from calm to a storm."""

        def one(most: float) -> float:
            return chance.choice((0.0, most / 10, most))

        return cls(one(0.03), one(0.1), one(0.1), one(0.05))


CALM = Weather(0, 0, 0, 0)


@dataclass
class Scheduler(World):
    """A world without time: a step of a worker is a step of the world."""

    seed: int
    weather: Weather = CALM
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self._main = getcurrent()
        self._alive: dict[greenlet, str] = {}
        self._dozing: dict[greenlet, int] = {}
        self._steps = 0
        self._ids = 0
        self.crashed: set[str] = set()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Let a worker begin when its turn comes."""

        def run() -> None:
            try:
                work()
            except CrashError:
                self.crashed.add(name)
                self.trace.append(f"{name} dies")
            except (FirnlineError, OSError) as error:
                self.trace.append(f"{name} fails: {error}")

        worker = greenlet(run, parent=self._main)
        self._alive[worker] = name

    def run(self) -> None:
        """Until every worker has ended."""
        while self._alive:
            self._steps += 1
            awake = [worker for worker in self._alive if self._dozing.get(worker, 0) <= self._steps] or list(self._alive)
            worker = self.chance.choice(awake)
            worker.switch()
            if worker.dead:
                del self._alive[worker]

    def step(self, what: str) -> None:
        """One call of a port: others may go first, and it may fail, also after it is done."""
        self._pause(what)
        if getcurrent() is self._main:
            return
        if self.chance.random() < (self.weather.lose if what in _DONE else self.weather.fail):
            self._note(f"{what}: {'answer lost' if what in _DONE else 'fails'}")
            raise OSError(f"simulated: {what}")

    def reach(self, point: str) -> None:
        """A point of the runtime: others may go first, and the worker may die."""
        self._pause(point)

    def sleep(self, seconds: float) -> None:
        """Let others go first."""
        self._pause("sleeps")

    def new_id(self) -> str:
        """Ids in order; names are made of their first eight characters."""
        self._ids += 1
        return f"a{self._ids:07}"

    def now(self) -> datetime:
        """Every worker's clock is off by up to a day, another one at each look."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.chance.uniform(-86400, 86400))

    def _pause(self, what: str) -> None:
        worker = getcurrent()
        if worker is self._main:
            return
        if self.chance.random() < self.weather.doze:
            self._dozing[worker] = self._steps + self.chance.randrange(self.chance.choice((200, 5000)))
        self._main.switch()
        if self.chance.random() < self.weather.crash:
            self._note(what)
            raise CrashError
        self._note(what)

    def _note(self, what: str) -> None:
        self.trace.append(f"{self._alive.get(getcurrent(), '?')}: {what}")
