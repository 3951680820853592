"""Files of 1, 4 and all 16 parts of a published epoch are deleted and repaired: how long that takes, and how much is recomputed.

A round runs a small and a large epoch; the large one's time is what a repair is compared with. Then each kind of loss is done to
it and repaired, in the same warm session. What a repair takes however little is lost is the time for one part of the small epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from pyspark.sql.connect.session import SparkSession

from bench.recovery.pipeline import NAME, PARTS, SOURCES, STAGES, large, small
from firnline.engine import staging
from firnline.engine.frames import table_name
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.gap import Cell
from firnline.plan.verification import covers, data_of
from firnline.runtime.advance import advance
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.verify import taken

LOST = (1, 4, PARTS)
"""How many parts are lost at once."""
SLACK = 1.3


@dataclass(frozen=True)
class Repair:
    """The repairs of one kind of loss, round by round.

    Args:
        lost: Whose rows are lost.
        parts: Of how many parts.
        seconds: What the repairs took.
        epoch_seconds: What the epoch itself took.
        fixed_seconds: What the repair of next to nothing took.
    """

    lost: str
    parts: int
    seconds: list[float] = field(default_factory=list)
    epoch_seconds: list[float] = field(default_factory=list)
    fixed_seconds: list[float] = field(default_factory=list)
    rows_lost: list[int] = field(default_factory=list)
    rows_recomputed: list[int] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def fraction(self) -> float:
        """How much of the epoch is lost."""
        return self.parts / PARTS

    @property
    def amplification(self) -> float:
        """Rows recomputed for each that was lost."""
        return sum(self.rows_recomputed) / sum(self.rows_lost)

    @property
    def ratio(self) -> float:
        """The time of the repair over that of the epoch."""
        return median(one / other for one, other in zip(self.seconds, self.epoch_seconds, strict=True))

    @property
    def bound(self) -> float:
        """What the ratio should stay below."""
        fixed = median(one / other for one, other in zip(self.fixed_seconds, self.epoch_seconds, strict=True))
        return SLACK * self.fraction + fixed


def measured(
    project: Project,
    session: SparkSession,
    runs: int,
    say: Callable[[str], None],
    *,
    lost_parts: Sequence[int] = LOST,
    warm_up: int = 1,
) -> list[Repair]:
    """Run rounds of epochs, losses and repairs, after some that do not count."""
    found: dict[tuple[str, int], Repair] = {}
    for number in range(warm_up + runs):
        kept = found if number >= warm_up else {}
        at = f"round {number + 1} of {warm_up + runs}"
        say(f"{at}: epochs")
        seconds = dict(_epochs(project, session, number))
        for stage, lost, logs in _losses(project):
            say(f"{at}: one part of the small epoch of {lost}")
            fixed = _Damage(project, session, stage, logs, small(number)).repaired(Repair(lost, 1), 1)
            for parts in lost_parts:
                say(f"{at}: {parts} of {PARTS} parts of {lost}")
                into = kept.setdefault((lost, parts), Repair(lost, parts))
                into.seconds.append(_Damage(project, session, stage, logs, large(number)).repaired(into, parts))
                into.epoch_seconds.append(seconds[stage])
                into.fixed_seconds.append(fixed)
    return list(found.values())


def _epochs(project: Project, session: SparkSession, number: int) -> Iterator[tuple[str, float]]:
    """Run both epochs of a round; the stages with the seconds of the large one."""
    for epoch in (small(number), large(number)):
        for name in (*SOURCES, *STAGES):
            began = time.monotonic()
            list(advance(project, project.declared(NAME), session, name, epoch))
            if name in STAGES and epoch == large(number):
                yield name, time.monotonic() - began


def _losses(project: Project) -> list[tuple[str, str, tuple[str, ...]]]:
    """Stages, what is lost of each, and the logs of that."""
    joined, revenue = STAGES
    kept = tuple(name for name in sorted(project.catalog.names(NAME)) if name.startswith(f"{revenue}__"))
    return [(joined, joined, (joined,)), (revenue, revenue, (revenue,)), (revenue, f"{revenue} and its sums", (revenue, *kept))]


@dataclass(frozen=True)
class _Damage:
    """What is done to an epoch of some logs, and undone."""

    project: Project
    session: SparkSession
    stage: str
    logs: tuple[str, ...]
    epoch: Epoch

    def repaired(self, into: Repair, parts: int) -> float:
        """Lose parts and repair them; the seconds of the repair."""
        before = {name: self._digests(name) for name in self.logs}
        for name in self.logs:
            self._lose(name, parts)
        began = time.monotonic()
        done = repair(self.project, lambda: self.session, f"{NAME}.{self.stage}")
        seconds = time.monotonic() - began
        into.rows_lost.append(sum(each.rows_lost for each in done.done))
        into.rows_recomputed.append(sum(each.rows_recomputed for each in done.done))
        into.differences.extend(str(failed.error) for failed in done.failed)
        if done.is_whole:
            after = {name: self._digests(name) for name in self.logs}
            into.differences.extend(f"{name}: other rows came back" for name in self.logs if before[name] != after[name])
        else:
            into.differences.append(f"{into.lost}: {len(done.problems)} problems are left")
        return seconds

    def _lose(self, name: str, parts: int) -> None:
        log = taken(self.project, NAME, name)
        cells = [cell for cell in log.cells() if cell[0] == self.epoch.lower][:parts]
        for _, data in data_of(log):
            if any(covers(data, cell) for cell in cells):
                Path(urlsplit(data.file.path).path).unlink(missing_ok=True)

    def _digests(self, name: str) -> dict[Cell, Digest]:
        """Of the epoch's rows as they stand in storage."""
        table, where = self.project.log(NAME, name).load(), table_name(NAME, name)
        assert table is not None
        assert table.current is not None
        rows = staging.epoch_rows(self.session, where, table.current, self.epoch.lower)
        return staging.digests(rows, staging.columns_of(self.session.table(where).schema, table.columns))
