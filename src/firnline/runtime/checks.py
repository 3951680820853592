"""The checks of a collection: prepared before its rows are computed, asked of what was staged, kept, and obeyed.

A suite that cannot be asked is refused before anything is computed. What a suite says is kept in every case. An epoch that fails
a blocking check is not published.

The delta's rows are those that the epoch inserts: rows with a weight above zero, after equal rows were added up. Keys are unique
in every log, so that each of them is one row. The state's are all rows that there would be after the publish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from firnline.errors import FirnlineError
from firnline.model.check import Check
from firnline.model.declaration import Collection
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.model.names import DIFF, quoted
from firnline.quality.gate import Gate, asked, suite_at
from firnline.quality.judging import Result, document_of, told
from firnline.quality.suite import Suite, path_of, suite_of
from firnline.runtime.cache import keep, recall
from firnline.runtime.project import EXPECTATIONS, Project
from firnline.tables.check_results import CheckResult
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

_logger = logging.getLogger(__name__)
_LOGGED = 5
On = Literal["delta", "state"]


@dataclass(frozen=True)
class Rows:
    """What checks are asked about: the rows that an epoch inserts, and those that there would be after it."""

    delta: DataFrame
    state: DataFrame


def staged_rows(
    session: SparkSession, table: str, snapshot: int | None, epoch: Epoch, columns: Sequence[str], *, has_removals: bool = True
) -> Rows:
    """The rows of a snapshot that is staged on a log's head, or of the head if nothing was staged."""
    from pyspark.sql import functions as F

    from firnline.engine.frames import frame_of, relation_of, state
    from firnline.engine.staging import epoch_rows
    from firnline.incremental.relation import consolidated

    names = [F.col(quoted(name)) for name in columns]
    if snapshot is None:
        nothing = session.table(table).select(*names).limit(0)
        return Rows(nothing, nothing)
    changes = epoch_rows(session, table, snapshot, epoch.lower).select(*names, DIFF)
    if has_removals:
        changes = frame_of(session, consolidated(relation_of(changes), columns)).where(F.col(DIFF) > 0)
    return Rows(changes.select(*names), state(session, table, snapshot, epoch.upper, columns))


@dataclass(frozen=True)
class Checks:
    """A collection's checks, ready to be asked."""

    project: Project
    graph: Graph
    collection: Collection
    gates: Mapping[str, Gate]
    is_again: bool = False
    """Whether they are asked about an epoch that was published before."""

    @classmethod
    def of(
        cls, project: Project, graph: Graph, collection: Collection, types: Mapping[str, str], *, is_again: bool = False
    ) -> Checks:
        """The checks for rows of these columns; refuses a suite that cannot be asked of them."""
        gates = {each.suite: Gate.of(_suite(project, each.suite), types) for each in collection.checks}
        return cls(project, graph, collection, gates, is_again)

    def ask(self, rows: Rows, epoch: Epoch, attempt: str) -> None:
        """Ask all of them, keep what they say, warn, and refuse the epoch if one that blocks is not met."""
        results = [result for on in ("delta", "state") for result in self._asked(on, getattr(rows, on), epoch, attempt)]
        blocking = [each for each in results if each.blocking and not each.success]
        if blocking:
            said = "; ".join(f"the check {each.suite!r} on the {each.on}: {'; '.join(each.failed)}" for each in blocking)
            raise FirnlineError("CHECK_FAILED", said)

    def _asked(self, on: On, frame: DataFrame, epoch: Epoch, attempt: str) -> list[CheckResult]:
        checks = [each for each in self.collection.checks if on in each.subjects]
        if not checks:
            return []
        from firnline.engine.frames import exact

        began = time.monotonic()
        rows, found = asked([self.gates[each.suite] for each in checks], exact(frame))
        seconds = round(time.monotonic() - began, 3)
        return [self._kept(each, on, results, rows, seconds, epoch, attempt) for each, results in zip(checks, found, strict=True)]

    def _kept(
        self, check: Check, on: On, results: Sequence[Result], rows: int, seconds: float, epoch: Epoch, attempt: str
    ) -> CheckResult:
        name, now = self.collection.name, world().now().isoformat()
        label = self.graph.schedule.label(epoch.lower)
        run = {"run_name": f"{self.graph.name}.{name}@{label}", "run_time": now}
        batch = f"{self.graph.name}.{name}.{on}"
        document = document_of(check.suite, results, {"run_id": run, "batch": batch, "validation_time": now})
        unmet = [each for each in results if not each["success"]]
        result = CheckResult(
            collection=name,
            lower=epoch.lower,
            upper=epoch.upper,
            attempt=attempt,
            suite=check.suite,
            on=on,
            blocking=check.blocking,
            success=not unmet,
            expectations=len(results),
            failed=tuple(map(told, unmet)),
            rows=rows,
            seconds=seconds,
            checked_at=now,
        )
        self.project.check_results(self.graph.name).keep(result, document, is_again=self.is_again)
        about = f"the check {check.suite!r} on the {on} of {self.graph.name}.{name} at {label}"
        if result.success:
            _logger.info("%s: %d expectations met by %d rows in %.1f s", about, len(results), rows, seconds)
        for each in unmet:
            _logger.warning("%s: %s: %s", about, "failed" if check.blocking else "warning", told(each))
            for row in each["result"].get("unexpected_rows", ())[:_LOGGED]:
                _logger.warning("  %s", ", ".join(f"{key}={value!r}" for key, value in row.items()))
        return result


def _suite(project: Project, name: str) -> Suite:
    """A suite of the project; what Python made of it is kept, since only Great Expectations can read it again."""
    folder = project.settings.root / EXPECTATIONS
    path = path_of(folder, name)
    if path.suffix == ".json":
        return suite_at(folder, name)
    kept, state = project.settings.work / "suites", project.state()
    document: Any = recall(kept, name, state)
    if document is None:
        suite = suite_at(folder, name)
        document = {"expectations": list(suite.expectations)}
        keep(kept, name, state, document)
    return suite_of(document, path)
