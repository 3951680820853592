"""The measurement: rounds of fresh changes; in each, every engine answers every question of the workload, one after the other.

The first rounds warm up the JVM and are not counted. After them, variants of a rival that took over ``_HOPELESS`` times as long
as its fastest one are dropped, and told with the seconds of their best round. All answers of all rounds are compared
with DuckDB's.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from bench.incremental.duck import Duck
from bench.incremental.history import History
from bench.incremental.ours import Ours, project_of
from bench.incremental.rivals import Rivals
from bench.incremental.suites import SUITES, workload
from bench.incremental.workload import Stage, Workload
from firnline.engine.session import opened
from firnline.runtime.project import Project

WARM_UP = 2
_HOPELESS = 1.5
Say = Callable[[str], None]


@dataclass
class Series:
    """The seconds that one engine, or one variant of it, took in the counted rounds."""

    engine: str
    variant: str
    seconds: list[float] = field(default_factory=list)
    warm_up: list[float] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    is_dropped: bool = False

    @property
    def median(self) -> float:
        """The median; of a dropped variant, what it took at its best."""
        return statistics.median(self.seconds) if self.seconds else min(self.warm_up)


@dataclass
class Cell:
    """One question at one state size and one share of changes."""

    suite: str
    scale: float
    size: str
    change: float
    stage: str
    state_rows: int
    changed_rows: list[int] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    ingestion: list[float] = field(default_factory=list)
    completion: list[float] = field(default_factory=list)

    def best(self, engine: str) -> Series | None:
        """An engine's fastest variant."""
        found = [series for series in self.series if series.engine == engine and not series.is_dropped]
        return min(found, key=lambda series: series.median, default=None)

    def ratio(self, engine: str) -> float | None:
        """How many times as long as ours an engine takes."""
        theirs, ours = self.best(engine), self.best("ours")
        return theirs.median / ours.median if theirs and ours else None

    def ratios(self, engine: str) -> list[float]:
        """The same, round by round."""
        theirs, ours = self.best(engine), self.best("ours")
        return [each / mine for each, mine in zip(theirs.seconds, ours.seconds, strict=True)] if theirs and ours else []

    @property
    def differences(self) -> list[str]:
        """All answers that are not DuckDB's."""
        return [f"{series.engine} ({series.variant}): {text}" for series in self.series for text in series.differences]


def measured(
    root: Path, jars: Path, suite: str, scale: float, changes: Sequence[float], runs: int, say: Say, *, resume: bool = False
) -> list[Cell]:
    """Measure a suite at one scale, for several shares of changes one after the other in one history."""
    place = root / f"{suite}-{scale:g}"
    if not (resume and History.is_settled(place)):
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    made = workload(suite, scale)
    say(f"{suite} {made.label}: generating the data")
    history = History(place, made)
    project = project_of(place / "project", made, history.folder, jars)
    duck = Duck(place / "duck.db", made, history)
    try:
        with opened(project.settings, f"bench {suite}") as session:
            contest = Contest(made, history, project, session, duck, say)
            contest.begin()
            return [cell for change in changes for cell in contest.cells(change, runs)]
    finally:
        duck.close()
        history.close()


class Contest:
    """All engines on one workload and its history."""

    def __init__(
        self, workload: Workload, history: History, project: Project, session: SparkSession, duck: Duck, say: Say
    ) -> None:
        self.workload = workload
        self.history = history
        self.ours = Ours(project, workload, session)
        self.rivals = Rivals(session, project.catalog, workload, history) if SUITES[workload.suite].has_rivals else None
        self.duck = duck
        self.stages = list(workload.stages.values())
        self._say = say
        self._name = f"{workload.suite} {workload.label}"

    def begin(self) -> None:
        """Bring all engines to the end of the history so far."""
        if self.history.epochs > 1:
            return
        self._say(f"{self._name}: loading {self.history.size:,} rows into Firnline")
        self.ours.ingest(1)
        for stage in self.stages:
            self._say(f"{self._name}: computing {stage.name} for the first time")
            self.ours.run(stage, 1)
        self.ours.complete(1)
        self.duck.ingest(1)
        if self.rivals:
            self._say(f"{self._name}: loading {self.history.size:,} rows into plain Iceberg tables")
            self.rivals.ingest(1)
        self.history.settle()

    def cells(self, change: float, runs: int, warm_up: int = WARM_UP) -> list[Cell]:
        """Measure all stages with one share of changes."""
        of = self.workload
        cells = [Cell(of.suite, of.scale, of.label, change, stage.name, self.history.size) for stage in self.stages]
        for cell in cells:
            cell.series = self._series()
        for turn in range(1 - warm_up, runs + 1):
            epoch, changed = self.history.add(change)
            head = f"{self._name}, {told(change)} changed, {f'round {turn} of {runs}' if turn > 0 else 'warming up'}"
            self._say(f"{head}: {changed:,} rows change")
            ingestion = self.ours.ingest(epoch)
            self.duck.ingest(epoch)
            if self.rivals:
                self.rivals.ingest(epoch)
            for cell, stage in zip(cells, self.stages, strict=True):
                self._round(cell, stage, epoch, turn, head)
            completion = self.ours.complete(epoch)
            for cell in cells if turn > 0 else ():
                cell.changed_rows.append(changed)
                cell.ingestion.append(ingestion)
                cell.completion.append(completion)
            self.history.settle()
        return cells

    def _series(self) -> list[Series]:
        found = [Series("ours", "incremental")]
        if self.rivals:
            found += [Series("full", variant.name) for variant in self.rivals.full]
            found += [Series("merge", variant.name) for variant in self.rivals.merge]
        return [*found, Series("duckdb", "full")]

    def _round(self, cell: Cell, stage: Stage, epoch: int, turn: int, head: str) -> None:
        if turn == 1 and cell.series[0].warm_up:
            _drop_hopeless(cell.series)
        for series in cell.series:
            if not series.is_dropped:
                seconds = self._run(series, stage, epoch)
                (series.seconds if turn > 0 else series.warm_up).append(seconds)
                self._say(f"{head}: {stage.name}, {series.engine} ({series.variant}) {seconds:.2f} s")
        for series in cell.series:
            if not series.is_dropped and series.engine != "duckdb":
                difference = self.duck.difference(stage, self._answer(series, stage, epoch))
                series.differences += [difference] if difference else []

    def _run(self, series: Series, stage: Stage, epoch: int) -> float:
        match series.engine:
            case "ours":
                return self.ours.run(stage, epoch)
            case "duckdb":
                return self.duck.run(stage)
        assert self.rivals
        if series.engine == "full":
            return self.rivals.run_full(_named(self.rivals.full, series), stage, epoch)
        return self.rivals.run_merge(_named(self.rivals.merge, series), stage, epoch)

    def _answer(self, series: Series, stage: Stage, epoch: int) -> Any:
        if series.engine == "ours":
            return self.ours.result(stage, epoch)
        assert self.rivals
        return self.rivals.result(_named(self.rivals.full if series.engine == "full" else self.rivals.merge, series), stage)


def told(change: float) -> str:
    """How much changes, for people."""
    return f"{change:,.0f} rows" if change >= 1 else f"{change * 100:g} %"


def _named(variants: Sequence[Any], series: Series) -> Any:
    return next(variant for variant in variants if variant.name == series.variant)


def _drop_hopeless(series: list[Series]) -> None:
    for engine in {each.engine for each in series}:
        same = [each for each in series if each.engine == engine]
        best = min(min(each.warm_up) for each in same)
        for each in same:
            each.is_dropped = min(each.warm_up) > _HOPELESS * best
