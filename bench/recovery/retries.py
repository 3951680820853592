"""A large epoch is ended at a quarter, half and three quarters of its waves: what the retry takes, and what a run takes unended.

Each run is of a stage of its own, a copy, so that all compute the same epoch from the same log. The budget is such that
the epoch is cut into eight waves. The run is ended by an exception when so many are staged; the session stays, so that starting
another driver is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median

from pyspark.sql.connect.session import SparkSession

from bench.recovery.pipeline import NAME, SOURCES, STAGES, large, small
from firnline.model.epoch import Epoch
from firnline.plan.waves import wave_count
from firnline.runtime.advance import advance
from firnline.runtime.project import Declared, Project
from firnline.tables.log import Entry
from firnline.world import World, replaced

WAVES = 8
SHARES = (0.25, 0.5, 0.75)
_WARM_UP, _SINGLE, _WHOLE = "_warm_up", "single", "whole"


def copies(runs: int, shares: Sequence[float] = SHARES) -> tuple[str, ...]:
    """The suffixes of the stages' copies."""
    return (_WARM_UP, *(f"_{kind}_{run}" for run in range(runs) for kind in (_SINGLE, _WHOLE, *map(_ended, shares))))


def _ended(share: float) -> str:
    return f"at_{100 * share:.0f}"


@dataclass(frozen=True)
class Retry:
    """Runs of one stage that were ended when some share of the waves was staged, and their retries.

    Args:
        stage: The stage.
        share: Of the waves.
        seconds: What the retries took.
        whole_seconds: What a run in waves takes that nothing ends.
        single_seconds: What it takes in one wave.
        waves: How many there are.
        kept: How many the retry found.
    """

    stage: str
    share: float
    seconds: list[float] = field(default_factory=list)
    whole_seconds: list[float] = field(default_factory=list)
    single_seconds: list[float] = field(default_factory=list)
    waves: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The time of the retry over that of a run in waves that nothing ends."""
        return median(one / other for one, other in zip(self.seconds, self.whole_seconds, strict=True))

    @property
    def cost(self) -> float:
        """The time of a run in waves over that in a single one."""
        return median(one / other for one, other in zip(self.whole_seconds, self.single_seconds, strict=True))


def measured(
    project: Project,
    session: SparkSession,
    runs: int,
    say: Callable[[str], None],
    *,
    shares: Sequence[float] = SHARES,
    has_warm_up: bool = True,
) -> list[Retry]:
    """Run the first large epoch in one wave, in several, and in several with an end and a retry."""
    runner = _Runner(project, session, say)
    for name in SOURCES:
        runner.ran(name, large(0), inf)
    budget = runner.budget()
    found = [Retry(stage, share) for stage in STAGES for share in shares]
    for stage in STAGES if has_warm_up else ():
        runner.timed(stage + _WARM_UP, budget)
    for run in range(runs):
        for stage in STAGES:
            single, _ = runner.timed(f"{stage}_{_SINGLE}_{run}", inf)
            whole, waves = runner.timed(f"{stage}_{_WHOLE}_{run}", budget)
            for retry in found:
                if retry.stage == stage:
                    name = f"{stage}_{_ended(retry.share)}_{run}"
                    seconds, again = runner.timed(name, budget, ended_at=max(1, round(retry.share * waves)))
                    retry.seconds.append(seconds)
                    retry.whole_seconds.append(whole)
                    retry.single_seconds.append(single)
                    retry.waves.append(waves)
                    retry.kept.append(waves - again)
                    others = {f"{stage}_{_SINGLE}_{run}", f"{stage}_{_WHOLE}_{run}"}
                    retry.differences.extend(f"{name} and {each} differ" for each in others if not runner.is_equal(name, each))
    return found


class _Ended(BaseException):
    """The run is over, whatever it was doing."""


class _Counting(World):
    """A world that counts staged waves, and ends after so many."""

    def __init__(self, last: int | None = None) -> None:
        super().__init__()
        self.staged = 0
        self._last = last

    def reach(self, point: str) -> None:
        super().reach(point)
        if point == "wave.staged":
            self.staged += 1
            if self.staged == self._last:
                raise _Ended


@dataclass(frozen=True)
class _Runner:
    """Runs the first epochs of stages under a recovery budget."""

    project: Project
    session: SparkSession
    say: Callable[[str], None]

    def ran(self, name: str, epoch: Epoch, budget: float, last: int | None = None) -> tuple[float, int]:
        """Advance a collection through an epoch; the seconds, and how many waves were staged, at which it may be ended."""
        self.say(f"{name}, epoch {epoch.lower}" + (f", ended after {last} waves" if last else ""))
        declared = self.project.declared(NAME)
        budgeted = Declared(replace(declared.graph, recovery_budget=budget), declared.functions, declared.root)
        counting = _Counting(last)
        began = time.monotonic()
        with suppress(_Ended), replaced(counting):
            list(advance(self.project, budgeted, self.session, name, epoch))
        return time.monotonic() - began, counting.staged

    def timed(self, name: str, budget: float, ended_at: int | None = None) -> tuple[float, int]:
        """Run the large epoch, or its retry after a run that was ended; the seconds, and how many waves were staged."""
        self.ran(name, small(0), inf)
        if ended_at is not None:
            self.ran(name, large(0), budget, ended_at)
        return self.ran(name, large(0), budget)

    def budget(self) -> float:
        """The recovery budget by which the large epoch is cut into so many waves, as long as there is no past to judge by."""
        rows = sum(self._entry(name).rows for name in SOURCES)
        budget = 60.0
        while wave_count(rows, (), budget) < WAVES:
            budget *= 0.9
        return budget

    def is_equal(self, one: str, other: str) -> bool:
        """Whether two stages published the same rows of the large epoch."""
        first, second = (self.project.log(NAME, name).sidecar(self._entry(name)).digests for name in (one, other))
        return first == second

    def _entry(self, name: str) -> Entry:
        return next(entry for entry in self.project.log(NAME, name).entries() if entry.lower == large(0).lower)
