"""The measurement: rounds of fresh changes; in each, every engine answers every question of the workload, one after the other.

The first rounds warm up the JVM and are not counted. After them, variants of a rival that took over ``_HOPELESS`` times as long
as its fastest one are dropped, and told with the seconds of their last round. All answers of all rounds are compared
with DuckDB's.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.incremental.duck import Duck
from bench.incremental.history import History
from bench.incremental.ours import Ours, project_in
from bench.incremental.rivals import MERGE, Rivals
from bench.incremental.suites import SUITES, workload
from bench.incremental.workload import Stage
from firnline.engine.session import opened

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
        """The median; of a dropped variant, what its last round took."""
        return statistics.median(self.seconds) if self.seconds else self.warm_up[-1]


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
    project = project_in(place / "project", made, history.folder, jars)
    duck = Duck(place / "duck.db", made, history)
    try:
        with opened(project.settings, f"bench {suite}") as session:
            rivals = Rivals(session, project.catalog, made, history) if "full" in SUITES[suite].rivals else None
            bench = _Bench(suite, history, Ours(project, made, session), rivals, duck, list(made.stages.values()), say)
            bench.begin(made.label)
            return [cell for change in changes for cell in bench.cells(change, runs, scale, made.label)]
    finally:
        duck.close()
        history.close()


@dataclass
class _Bench:
    suite: str
    history: History
    ours: Ours
    rivals: Rivals | None
    duck: Duck
    stages: list[Stage]
    say: Say

    def begin(self, label: str) -> None:
        """Bring all engines to the end of the history so far."""
        if self.history.epochs > 1:
            return
        self.say(f"{self.suite} {label}: loading {self.history.size:,} rows into Firnline")
        self.ours.ingest(1)
        for stage in self.stages:
            self.say(f"{self.suite} {label}: computing {stage.name} for the first time")
            self.ours.run(stage, 1)
        self.ours.complete(1)
        self.duck.ingest(1)
        if self.rivals:
            self.say(f"{self.suite} {label}: loading {self.history.size:,} rows into plain Iceberg tables")
            self.rivals.ingest(1)
        self.history.settle()

    def cells(self, change: float, runs: int, scale: float, label: str) -> list[Cell]:
        """Measure all stages with one share of changes."""
        cells = [Cell(self.suite, scale, label, change, stage.name, self.history.size) for stage in self.stages]
        for cell in cells:
            cell.series = self._series()
        for turn in range(WARM_UP + runs):
            epoch, changed = self.history.add(change)
            head = f"{self.suite} {label}, {told(change)} changed, round {turn - WARM_UP + 1} of {runs}"
            self.say(f"{head}: {changed:,} rows change")
            ingestion = self.ours.ingest(epoch)
            self.duck.ingest(epoch)
            if self.rivals:
                self.rivals.ingest(epoch)
            for cell, stage in zip(cells, self.stages, strict=True):
                cell.changed_rows.append(changed)
                cell.ingestion.append(ingestion)
                self._round(cell, stage, epoch, turn, head)
            completion = self.ours.complete(epoch)
            for cell in cells:
                cell.completion.append(completion)
            self.history.settle()
        return cells

    def _series(self) -> list[Series]:
        found = [Series("ours", "incremental")]
        if self.rivals:
            found += [Series("full", variant.name) for variant in self.rivals.full]
            found += [Series("merge", variant.name) for variant in MERGE]
        return [*found, Series("duckdb", "full")]

    def _round(self, cell: Cell, stage: Stage, epoch: int, turn: int, head: str) -> None:
        if turn == WARM_UP:
            _drop_hopeless(cell.series)
        for series in cell.series:
            if not series.is_dropped:
                seconds = self._run(series, stage, epoch)
                (series.seconds if turn >= WARM_UP else series.warm_up).append(seconds)
                self.say(f"{head}: {stage.name}, {series.engine} ({series.variant}) {seconds:.2f} s")
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
        return self.rivals.run_merge(_named(MERGE, series), stage, epoch)

    def _answer(self, series: Series, stage: Stage, epoch: int) -> Any:
        if series.engine == "ours":
            return self.ours.result(stage, epoch)
        assert self.rivals
        return self.rivals.result(_named((*self.rivals.full, *MERGE), series), stage)


def told(change: float) -> str:
    """How much changes, for people."""
    return f"{change:,.0f} rows" if change >= 1 else f"{change * 100:g} %"


def _named(variants: Sequence[Any], series: Series) -> Any:
    return next(variant for variant in variants if variant.name == series.variant)


def _drop_hopeless(series: list[Series]) -> None:
    for engine in {each.engine for each in series}:
        same = [each for each in series if each.engine == engine]
        best = min(each.warm_up[-1] for each in same)
        for each in same:
            each.is_dropped = each.warm_up[-1] > _HOPELESS * best
