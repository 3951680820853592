"""Whoever is told what changed since, less what is void, has the state: through rewinds, undone or not, and deaths anywhere.

The logs are lists of epochs, each with a name of its own whenever it is computed. A copy holds names; what it is told either adds
one that it has not, or takes one away that it has.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import Location
from firnline.model.epoch import Schedule
from firnline.model.hold import Hold
from firnline.model.sink import Sink
from firnline.plan.delivering import Delivery, delivered, next_delivery, unsaid
from firnline.plan.frontier import Frontier
from firnline.plan.seeing import moved, parsed, position_of, seen_of, taken_back, voided

LOGS = ("a", "b", "c")
ONES = Schedule.parse(1, 0, None)
STEPS = ("grow", "rewind", "tidy", "deliver", "record", "die")
SINK = Sink("files", ("epoch", "a", "b"), "", Location("web.py", 1))


@dataclass
class World:
    """Logs, and somebody who follows them."""

    random: random.Random
    hold: Hold
    names: count[int] = field(default_factory=count)
    logs: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in LOGS})
    generations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LOGS, 0))
    old: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """Each log as it was at the end of a generation."""
    copy: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in LOGS})
    mark: str | None = None
    """Up to where the copy is true, as it keeps that itself."""

    @property
    def frontier(self) -> int:
        return min(map(len, self.logs.values()))

    def grow(self) -> None:
        for name in LOGS:
            if len(self.logs[name]) == self.frontier or self.random.random() < 0.5:
                self.logs[name].append(next(self.names))

    def rewind(self) -> None:
        chosen = self.random.sample(LOGS, self.random.randint(1, 3))
        to = self.random.choice((min(self.hold.at, self.frontier), self.random.randint(0, self.frontier)))
        if all(len(self.logs[name]) <= to for name in chosen):
            return
        for name in chosen:
            self.old[name, self.generations[name]] = self.logs[name]
            self.logs[name] = self.logs[name][:to]
            self.generations[name] += 1
        self.hold = taken_back(self.hold, to, {name: self.generations[name] for name in chosen})

    def tidy(self) -> None:
        """Only what has still to be told as void is kept."""
        self.old = {(name, made): rows for (name, made), rows in self.old.items() if made in voided([self.hold], name)}

    def told(self, upto: int) -> None:
        for name in LOGS:
            seen = seen_of(self.hold, name)
            gone = {each for void in seen.void for each in self.old[name, void.generation][void.lower : void.upper]}
            come = set(self.logs[name][min(seen.at, upto) : upto])
            assert gone <= self.copy[name], "what is taken away was told"
            self.copy[name] -= gone
            assert not come & self.copy[name], "nothing is told twice"
            self.copy[name] |= come
            assert self.copy[name] == set(self.logs[name][: max(upto, seen.at)])

    def follow(self) -> None:
        """As the guide of readers has it: it says what the copy knows, takes what follows, and may die before it says so."""
        self.acknowledge()
        upto = self.random.randint(min(self.hold.at, self.frontier), self.frontier)
        self.told(upto)
        self.mark = position_of(str(upto), self.hold.line)
        if self.random.random() < 0.5:
            self.acknowledge()

    def acknowledge(self) -> None:
        label, line = parsed(self.mark)
        after = moved(self.hold, line, int(label or 0))
        assert after is not None
        assert after.at <= self.frontier
        self.hold = after


@given(st.integers(0, 2**32), st.lists(st.sampled_from(("grow", "rewind", "tidy", "follow")), max_size=40))
def test_a_reader_is_told_every_change_once(seed: int, story: list[str]) -> None:
    world = World(random.Random(seed), Hold("reader", "copier", 0))
    for step in story:
        getattr(world, step)()
    world.acknowledge()
    world.told(world.frontier)


@dataclass
class Sunk(World):
    """Logs, and folders that a sink delivers into: whoever reads those of a log in their order has its state."""

    folders: dict[tuple[int, int], dict[str, tuple[set[int], set[int]]]] = field(default_factory=dict)
    """By line and epoch: what is gone, and what is come, of each log."""
    done: list[Delivery] = field(default_factory=list)
    """What was delivered, and is not recorded yet."""

    def next(self) -> Delivery | None:
        return next_delivery(ONES, SINK, self.hold, Frontier(self.frontier, dict(self.generations)))

    def deliver(self) -> None:
        """All that is to be delivered next is: first somebody says of folders that are there that they are."""
        for line, epoch in found.perhaps if (found := self.next()) else ():
            if (line, epoch.lower) in self.folders:
                self.hold = delivered(self.hold, unsaid(SINK, line, epoch))
        if (found := self.next()) is None:
            return
        told = {}
        for name in SINK.inputs:
            void = found.void.get(name, ())
            gone = {row for each in void for row in self.old[name, each.generation][each.lower : each.upper]}
            told[name] = gone, set(self.logs[name][found.lowers[name] : found.epoch.upper])
        before = self.folders.setdefault((found.line, found.epoch.lower), told)
        assert before == told, "a key always tells the same"
        self.done.append(found)

    def record(self) -> None:
        """One of those who delivered says so, perhaps long after."""
        if self.done:
            self.hold = delivered(self.hold, self.done.pop(self.random.randrange(len(self.done))))

    def die(self) -> None:
        if self.done:
            self.done.pop(self.random.randrange(len(self.done)))

    def check(self) -> None:
        self.done.clear()
        while self.frontier <= self.hold.at:  # what is void is told with the first epoch that follows
            self.grow()
        while self.next():
            self.deliver()
            self.record()
        for name in SINK.inputs:
            copy: set[int] = set()
            for position in sorted(self.folders):
                gone, come = self.folders[position][name]
                assert gone <= copy, "what is taken away was told"
                copy -= gone
                assert not come & copy, "nothing is told twice"
                copy |= come
            assert copy == set(self.logs[name][: seen_of(self.hold, name).at])


@given(st.integers(0, 2**32), st.booleans(), st.lists(st.sampled_from(STEPS), max_size=40))
def test_folders_in_their_order_are_the_state_whoever_dies_or_comes_late(seed: int, is_new: bool, story: list[str]) -> None:
    world = Sunk(random.Random(seed), Hold("sink", "files", 0, delivered=None if is_new else dict.fromkeys(SINK.inputs, 0)))
    for step in story:
        getattr(world, step)()
    world.check()


def test_a_position_of_a_line_that_was_left_long_ago_says_nothing() -> None:
    there = Hold("reader", "bi", 40)
    for _ in range(2):
        there = taken_back(there, 20, {"a": 1})
        after = moved(there, there.line, 20)
        assert after is not None
        there = after
    assert moved(there, 1, 30) is None
    assert moved(there, 3, 30) is None
    last = moved(there, 2, 30)
    assert last is not None
    assert (last.at, last.seen) == (30, {"a": 30})


def test_a_sink_that_has_delivered_nothing_has_nothing_void() -> None:
    there = taken_back(Hold("sink", "files", 40), 20, {"a": 1})
    assert (there.at, there.line, seen_of(there, "a").void) == (20, 1, ())
    assert taken_back(Hold("branch", "b", 40), 20, {"a": 1}) == Hold("branch", "b", 40)
