"""Runs for epochs that logs may hold already, as Airflow's backfill makes them: kept, made, or rewound and replayed.

What is meant is decided from what the log was made with (``plan.rerunning``), first without Spark: mostly there is nothing to do.
A rewind is decided in the control table, against the generations that were looked at. So whoever else rewinds, replays or runs
the schedule meanwhile, the outcome is that of one after the other. What the run took out it brings back, up to where it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from firnline.model.declaration import Collection
from firnline.model.description import Description
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import logs_of
from firnline.plan.advance import check_target
from firnline.plan.changing import Approval
from firnline.plan.rerunning import Held, check_replay, meaning, reach
from firnline.plan.rewinding import scope
from firnline.runtime.approving import todays
from firnline.runtime.project import Declared, Project
from firnline.runtime.renaming import inputs_of, keep_renamed
from firnline.runtime.reuse import is_same_input
from firnline.runtime.rewind import floor_of, heads_of, rewind, settle
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.tables.log import Entry
    from firnline.tables.metadata import Metadata

_logger = logging.getLogger(__name__)

Plan = Callable[[Collection], str | None]
"""The fingerprint of a stage's plan, which it takes Spark to know."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run for an epoch.

    Args:
        project: The project.
        graph: The pipeline.
        epoch: The run's.
        force: What the replay is called that the run asks for whatever the log was made with; None if it does not.
        owner: Who is named with a rewind.
    """

    project: Project
    graph: Graph
    epoch: Epoch
    force: str | None = None
    owner: str = "airflow"

    def is_settled(self, name: str) -> bool:
        """Whether there is nothing to do for a collection; takes no Spark. Changed code that may not run is refused."""
        check_target(self.graph.schedule, self.epoch)
        settle(self.project, self.graph)
        collection = self.graph.collection(name)
        entry = self._entry(name)
        if entry is None and keep_renamed(self.project, self.graph, name):
            entry = self._entry(name)
        if entry is None or self._reach(name) > self._upper(name):
            return False
        today = self._today([name], None)[name]
        if today.plan is None and _is_edited(today.code, entry.fingerprint):
            return False  # only Spark can tell
        return self._meaning(collection, entry, today) == "keep"

    def target(self, declared: Declared, session: SparkSession, name: str) -> tuple[Epoch, Epoch | None]:
        """Rewind a collection if that is meant; through which epoch to advance it then, and which one not to reuse."""
        check_target(self.graph.schedule, self.epoch)
        settle(self.project, self.graph)
        keep_renamed(self.project, self.graph, name)
        collection = self.graph.collection(name)
        stages = scope(self.graph, name)
        seen = heads_of(self.project, self.graph, logs_of(stages, self.project.catalog.names(self.graph.name)))

        def plan(stage: Collection) -> str | None:
            from firnline.runtime.stage_run import StageRun

            return StageRun(self.project, declared, session, stage, self.epoch, "").plan()

        entry = self._entry(name)
        if entry is not None and self._meaning(collection, entry, self._today([name], plan)[name]) == "replay":
            made_by = {each: self._made_by(each) for each in stages}
            today = self._today([each for each in stages if made_by[each]], plan)
            self._replay(name, made_by, today, seen)
        is_fresh = self.force is not None and self._entry(name) is None
        last = self.graph.schedule.epoch_at(self._reach(name) - 1)
        return last, self.epoch if is_fresh else None

    def _replay(
        self,
        name: str,
        made_by: Mapping[str, list[Fingerprint]],
        today: Mapping[str, Fingerprint],
        seen: Mapping[str, Description],
    ) -> None:
        at, graph = self.epoch.lower, self.graph
        approvals = self.project.control(graph.name).agreement().approvals
        check_replay(graph, at, today, made_by, today, approvals, is_forced=self.force is not None)
        now = world().now().isoformat(timespec="seconds")
        changed = [each for each, of in today.items() if not all(map(of.is_same, self._made_by(each, at - 1)))]
        given = [Approval(each, today[each].code, today[each].plan, at, self.owner, now) for each in changed]
        called = None if self.force is None else f"{self.force}_{name}"
        report = rewind(self.project, graph, at, name, self.owner, name=called, seen=seen, approvals=given)
        _logger.info("%s.%s goes back to %s, and is replayed: %s", graph.name, name, report.to, report.name)

    def _meaning(self, collection: Collection, entry: Entry, today: Fingerprint) -> str:
        log = self.project.log(self.graph.name, collection.name)
        head, agreement = log.head(), self.project.control(self.graph.name).agreement()
        since = agreement.kept_since(floor_of(self.project, self.graph))
        newest = None if head is None else head.fingerprint
        held = Held(entry.fingerprint, newest, today, self._has_other_inputs(collection, entry), since)
        is_forced = self.force is not None and not self._was_forced(log.load())
        return meaning(self.graph, collection, self.epoch, held, agreement.approvals, is_forced=is_forced)

    def _was_forced(self, table: Metadata | None) -> bool:
        """Whether this run, in another try or another task, has already taken a log back."""
        from firnline.tables.layers import is_rewind
        from firnline.tables.log import ATTEMPT

        assert self.force is not None
        names = [each.summary[ATTEMPT] for each in (table.main_line() if table else ()) if is_rewind(each)]
        return any(each.startswith(f"{self.force}_") for each in names)

    def _has_other_inputs(self, collection: Collection, entry: Entry) -> bool:
        """Whether a collection of another pipeline was rewound since it was read, and came out otherwise."""
        if not any(map(is_foreign, collection.inputs)):
            return False
        read = inputs_of(self.project, self.graph, self.project.log(self.graph.name, collection.name).sidecar(entry))
        return not all(
            is_same_input(self.project, self.graph, name, of, self.epoch) for name, of in read.items() if is_foreign(name)
        )

    def _today(self, names: list[str], plan: Plan | None) -> dict[str, Fingerprint]:
        """What collections are today; their plans only where their text is another than what made their epochs."""
        edited = [name for name in names if any(map(partial(_is_edited, self.graph.fingerprints[name]), self._made_by(name)))]
        found = {name: Fingerprint(self.graph.fingerprints[name]) for name in names} | todays(self.project, self.graph, edited)
        if plan is not None:
            for name in edited:
                if found[name].plan is None:
                    found[name] = Fingerprint(found[name].code, plan(self.graph.collection(name)))
        return found

    def _made_by(self, name: str, after: int | None = None) -> list[Fingerprint]:
        """What made a collection's layers that end after a point; from the run's epoch on by default."""
        point = self.epoch.lower if after is None else after
        return [entry.fingerprint for entry in self.project.log(self.graph.name, name).entries(point)]

    def _entry(self, name: str) -> Entry | None:
        """The layer that holds the epoch."""
        entries = self.project.log(self.graph.name, name).entries(self.epoch.lower)
        return next(
            (each for each in entries if each.lower <= self.epoch.lower and self.epoch.upper <= each.description.upper), None
        )

    def _reach(self, name: str) -> int:
        from firnline.tables.log import ATTEMPT
        from firnline.tables.rewinding import REWOUND_FROM

        rewinds = self.project.control(self.graph.name).agreement().rewinds
        table = self.project.log(self.graph.name, name).load() if rewinds else None
        ended = {
            each.summary[ATTEMPT]: int(each.summary[REWOUND_FROM])
            for each in (table.main_line() if table else ())
            if REWOUND_FROM in each.summary
        }
        return reach(self.epoch, name, rewinds, ended)

    def _upper(self, name: str) -> int:
        head = self.project.log(self.graph.name, name).head()
        return self.graph.schedule.start if head is None else head.description.upper


def _is_edited(code: str, made_by: Fingerprint) -> bool:
    """Whether only the plan of today's code can tell whether it is what made an epoch."""
    return made_by.plan is not None and made_by.code != code
