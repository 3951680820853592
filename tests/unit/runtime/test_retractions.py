"""After a rewind sinks and readers are told what it took back, once, on real tables and without a JVM.

Whoever applies what he is told, and complains about a row that is taken away and not there, has the collection's state.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import firnline as fl
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch
from firnline.runtime.advance import complete
from firnline.runtime.maintain import tidied
from firnline.runtime.rewind import rewind, undo
from firnline.runtime.sink import deliver
from firnline.world import replaced
from tests.contract.housekeeping import Mortal
from tests.happening import Killed
from tests.project import make_project
from tests.shelf import Delta, Shelf

PIPELINE = """
    import firnline as fl

    web = fl.Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"])
    def visits(epoch): ...

    @web.stage(keys=["k"])
    def seen(visits): ...

    @web.sink()
    def files(epoch, visits, seen):
        return [fl.to_files(visits, "out/visits"), fl.to_files(seen, "out/seen")]
"""
COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.string())])
NAMES = ("visits", "seen")
Rows = Counter[tuple[Any, ...]]


def apply(copy: Rows, told: pa.Table) -> None:
    for row in told.to_pylist():
        key, sign = (row["k"], row["v"]), 1 if row["_change_type"] == "INSERT" else -1
        copy[key] += sign
        assert copy[key] in (0, 1), f"{row} is told though it is{' not' if sign < 0 else ''} there"
        if not copy[key]:
            del copy[key]


class Story:
    """Two logs, a sink that writes files, and a reader with a copy, whatever happens."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.project = make_project(root, web=PIPELINE)
        self.graph = self.project.graph("web")
        self.declared = self.project.declared("web")
        self.shelves = {name: Shelf(self.project, "web", name, COLUMNS, ("k",)) for name in NAMES}
        self.versions = 0
        self.undone: dict[str, list[Delta]] | None = None
        self.grow()
        self.copies: dict[str, Rows] = {name: Counter() for name in NAMES}
        self.mark: str | None = None
        self.reader = fl.reader("copier", lease="1d", pipeline="web", position="", project=self.project)

    def state(self, name: str) -> Rows:
        return Counter((row["k"], row["v"]) for row in self.shelves[name].state(len(self.shelves[name].deltas)))

    def grow(self) -> None:
        """An epoch of every log that lacks one: rows come, go and change."""
        upper = min(len(each.deltas) for each in self.shelves.values()) + 1
        for name, shelf in self.shelves.items():
            if len(shelf.deltas) < upper:
                self.versions += 1
                there = self.state(name)
                gone = [row for row in sorted(there) if self.random.random() < 0.3]
                free = [k for k in range(6) if k not in {row[0] for row in there if row not in gone}]
                come = [(k, f"v{self.versions}") for k in free if self.random.random() < 0.5]
                changes = [({"k": k, "v": v}, -1) for k, v in gone] + [({"k": k, "v": v}, 1) for k, v in come]
                shelf.publish(changes)
        complete(self.project, self.graph, Epoch(upper - 1, upper))

    def rewind(self) -> None:
        frontier = min(len(each.deltas) for each in self.shelves.values())
        stage = self.random.choice((None, "seen"))
        held = self.project.control("web").agreement().held("files")
        to = self.random.choice((self.random.randrange(frontier) if frontier else 0, min(held.at if held else 0, frontier)))
        names = NAMES if stage is None else ("seen",)
        if all(len(self.shelves[name].deltas) <= to for name in names):
            return
        rewind(self.project, self.graph, to, stage, "ana")
        self.undone = {name: self.shelves[name].deltas for name in NAMES}
        for name in names:
            self.shelves[name].deltas = self.shelves[name].deltas[:to]

    def undo(self) -> None:
        if self.undone is not None:
            undo(self.project, self.graph, "ana")
            for name, deltas in self.undone.items():
                self.shelves[name].deltas = deltas
            self.undone = None

    def tidy(self) -> None:
        """Nothing that has to be told is let go of."""
        assert [done.error for done in tidied(self.project, self.graph, timedelta()) if done.error] == []
        self.undone = None

    def follow(self) -> None:
        """The guide's way; it may die before it says that it has taken something."""
        self.reader.advance(self.mark)
        several = self.reader.changes(*(f"web.{name}" for name in NAMES))
        for name, changes in zip(NAMES, several, strict=True):
            apply(self.copies[name], changes.to_arrow())
        self.mark = several[0].upto
        if self.random.random() < 0.5:
            self.reader.advance(self.mark)

    def deliver(self) -> None:
        list(deliver(self.project, self.declared, "files"))

    def die(self) -> None:
        """All files of an epoch are there, and nobody says so."""
        dying = Mortal()
        dying.kill_at = "sink.delivered"
        with replaced(dying), suppress(Killed):
            self.deliver()

    def hurry(self) -> None:
        """A rewind comes between the files and the word that they are there."""

        class Hurried(Mortal):
            def reach(world, point: str) -> None:  # noqa: N805
                if point == "sink.delivered" and not world.reached:
                    world.reached.append(point)
                    self.rewind()

        with replaced(Hurried()):
            self.deliver()

    def judge(self) -> None:
        """All caught up: the copy, and who has read the files in the order in which they came, have the state."""
        while min(len(each.deltas) for each in self.shelves.values()) < max(len(each.deltas) for each in self.shelves.values()):
            self.grow()
        self.grow()
        self.follow()
        self.deliver()
        for name in NAMES:
            assert self.copies[name] == self.state(name), name
            told: Rows = Counter()
            folders = (self.project.settings.root / "out" / name).iterdir()
            for folder in sorted(folders, key=lambda each: [int(part) for part in reversed(f"{each.name}__0".split("__")[:2])]):
                apply(told, pq.read_table(folder / "changes.parquet"))
            assert told == self.state(name), name


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 22))])
def test_whatever_happens_the_copies_have_the_state(seed: int, tmp_path: Path) -> None:
    story = Story(tmp_path, seed)
    for _ in range(20 if seed == 1 else 60):
        step = story.random.choice(("grow", "grow", "rewind", "undo", "tidy", "follow", "deliver", "die", "hurry"))
        getattr(story, step)()
    story.judge()


@pytest.mark.parametrize("how", ["die", "hurry"])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_was_delivered_and_not_recorded_when_a_rewind_came_is_taken_back(is_first: bool, how: str, tmp_path: Path) -> None:
    story = Story(tmp_path, 3)
    story.grow()
    if not is_first:
        story.deliver()
        story.grow()
    to = len(story.shelves["seen"].deltas) - 1
    story.random.choice = lambda several: "seen" if "seen" in several else to  # type: ignore[method-assign]
    getattr(story, how)()
    if how == "die":
        story.rewind()
    story.judge()
    assert {str(to), f"{to}__1"} <= {each.name for each in (tmp_path / "out" / "seen").iterdir()}


def test_what_is_not_kept_for_a_reader_whose_lease_has_ended_is_not_guessed(tmp_path: Path) -> None:
    story = Story(tmp_path, 7)
    story.grow()
    story.grow()
    late = fl.reader("late", lease=timedelta(milliseconds=1), pipeline="web", project=story.project)
    rewind(story.project, story.graph, 1, "seen", "ana")
    story.shelves["seen"].deltas = story.shelves["seen"].deltas[:1]
    story.grow()
    story.grow()
    story.reader.release()
    assert late.changes("web.seen").to_arrow().num_rows > 0
    story.tidy()
    with pytest.raises(FirnlineError, match="READER_REWOUND"):
        late.changes("web.seen")
    assert late.changes("web.visits").to_arrow().num_rows == 0
