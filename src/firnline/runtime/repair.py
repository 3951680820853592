"""``firnline repair``: lost and damaged pieces of logs are made again, and exchanged for what is left of them.

Whatever is not rows is written anew from what other files say. Rows are computed again from what the lineage names, for the lost
parts only, and staged; nothing is exchanged unless the digest of every (epoch, part) is that of its publish. Each log is looked
at again after every step, so that a repair may be cut off anywhere, and two at once end as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.plan.repairing import Plan, Refusal, Step, in_order, owner, plan, steps_for
from firnline.plan.verification import Cell, Holding, Problem, covers, data_of, expected_digests, problems_of
from firnline.runtime import rebuild
from firnline.runtime.project import Declared, Project
from firnline.runtime.verify import Begun, Examined, examine, taken, targets_of
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.attempt import Staged
    from firnline.tables.log import Log
    from firnline.tables.port import Exchange
    from firnline.tables.sidecar import Repair

_MOST_LOOKS = 10
"""Steps for one log; three kinds of them, and some races."""


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was taken."""

    step: Step
    seconds: float
    rows_lost: int = 0
    rows_recomputed: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A log that could not be mended."""

    pipeline: str
    collection: str
    error: FirnlineError


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done, and what is left."""

    done: tuple[Done, ...]
    failed: tuple[Failed, ...]
    refusals: tuple[Refusal, ...]
    problems: tuple[Problem, ...]
    """What is wrong afterwards."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged any more."""
        return not (self.failed or self.refusals or self.problems)


def planned(
    project: Project, asked: str | None = None, session: SparkSession | None = None, begun: Begun = lambda *_: None
) -> Plan:
    """What a repair would do now; with a session, also about rows that only their digests tell."""
    found = examine(project, _targets(project, asked), session, begun)
    plans = [damaged.plan() for damaged in _damaged(project, found)]
    return Plan(tuple(step for each in plans for step in each.steps), tuple(one for each in plans for one in each.refusals))


def repair(
    project: Project,
    session: Callable[[], SparkSession],
    asked: str | None = None,
    *,
    is_deep: bool = False,
    begun: Begun = lambda *_: None,
    taking: Callable[[Step], None] = lambda _: None,
) -> Repaired:
    """Mend logs, upstream first.

    Args:
        project: The project.
        session: Gives a session; called only if something is to be computed.
        asked: ``PIPELINE`` or ``PIPELINE.COLLECTION`` with all that it comes from; everything by default.
        is_deep: Whether to look for rows that are not what they were, too.
        begun: Told the name of each collection before it is looked at.
        taking: Told each step before it is taken.
    """
    done: list[Done] = []
    failed: list[Failed] = []
    refusals: list[Refusal] = []
    targets = _targets(project, asked)
    found = examine(project, targets, session() if is_deep else None, begun)
    pipelines = _damaged(project, found)
    for damaged in pipelines:
        mending = Mending(project, damaged.graph, session, taking)
        for log in in_order(damaged.graph, damaged.logs):
            try:
                done += mending.mended(log.collection, damaged.of(log))
            except FirnlineError as error:
                failed.append(Failed(log.pipeline, log.collection, error))
        refusals += mending.refusals
    left = (examine(project, targets) if pipelines else found).problems
    return Repaired(tuple(done), tuple(failed), tuple(refusals), tuple(each for each in left if not each.is_staged))


@dataclass(frozen=True)
class _Damaged:
    """The logs of one pipeline that have problems."""

    graph: Graph
    logs: tuple[Holding, ...]
    problems: tuple[Problem, ...]

    def of(self, log: Holding) -> list[Problem]:
        return [problem for problem in self.problems if problem.collection == log.collection]

    def plan(self) -> Plan:
        return plan(self.logs, {log.collection: self.of(log) for log in self.logs}, self.graph)


def _damaged(project: Project, found: Examined) -> list[_Damaged]:
    """What is damaged, by pipeline."""
    damaged = []
    for name in dict.fromkeys(log.pipeline for log in found.logs):
        problems = tuple(each for each in found.problems if each.pipeline == name and not each.is_staged)
        touched = {each.collection for each in problems}
        logs = tuple(log for log in found.logs if log.pipeline == name and log.collection in touched)
        damaged.append(_Damaged(project.graph(name), logs, problems))
    return [each for each in damaged if each.logs]


def _targets(project: Project, asked: str | None) -> list[tuple[str, str]]:
    """What to look at; of a collection that is asked for, which may have no log yet, also all that it comes from."""
    pipeline, _, collection = (asked or "").partition(".")
    every = targets_of(project, pipeline or None)
    if not collection:
        return every
    graph = project.graph(pipeline)
    if (pipeline, collection) not in every:
        graph.collection(collection)
    wanted = _upstream(graph, collection.partition("__")[0])
    return [(of, name) for of, name in every if name.partition("__")[0] in wanted]


def _upstream(graph: Graph, name: str) -> set[str]:
    """A collection and all that it comes from."""
    found, waiting = set[str](), {name}
    while waiting:
        at = waiting.pop()
        found.add(at)
        waiting |= {each for of in graph.collections if of.name == at for each in of.inputs} - found
    return found


@dataclass
class Mending:
    """The repair of one pipeline's logs."""

    project: Project
    graph: Graph
    session: Callable[[], SparkSession]
    taking: Callable[[Step], None]
    refusals: list[Refusal] = field(default_factory=list)

    def mended(self, collection: str, problems: Sequence[Problem]) -> list[Done]:
        """Take steps for a log until none is left; ``problems`` may know more than looking at its files tells."""
        done: list[Done] = []
        deep = [problem for problem in problems if problem.about == "data"]
        for _ in range(_MOST_LOOKS):
            log = taken(self.project, self.graph.name, collection)
            found = steps_for(log, list(dict.fromkeys([*problems_of(log), *deep])), self.graph)
            if not found.steps:
                self.refusals += found.refusals
                return done
            step = found.steps[0]
            self.taking(step)
            began = time.monotonic()
            lost, recomputed, is_done = self._take(log, step)
            if not is_done:
                continue
            done.append(Done(step, time.monotonic() - began, lost, recomputed))
            if step.what == "rows":
                deep = []
        raise FirnlineError("COMMIT_CONTENDED", f"{self.graph.name}.{collection} is still damaged after {_MOST_LOOKS} steps")

    def _take(self, log: Holding, step: Step) -> tuple[int, int, bool]:
        """Rows lost, rows recomputed, and whether it is done and nobody else came between."""
        match step.what:
            case "rows":
                return _Replaying(self, log, step).exchanged()
            case "manifests":
                return 0, 0, self._rename(log, step)
            case "sidecars":
                for snapshot in step.sidecars:
                    rebuild.sidecar(self.project, self.graph, log, snapshot, self.session)
            case "metadata":
                rebuild.metadata(self.project, self.graph, log)
        return 0, 0, True

    def _rename(self, log: Holding, step: Step) -> bool:
        """Name data files by manifests that can be read."""
        from firnline.tables.port import Exchange
        from firnline.tables.sidecar import Repair

        change = Exchange(manifests=step.manifests, named=step.named, instead_of_head=step.instead_of_head)
        if log.is_control:
            self.project.control(log.pipeline).exchange(change)
            return True
        note = Repair(log.collection, world().new_id(), step.cells, (), (), 0, 0, 0.0)
        return _exchange(self.project.log(log.pipeline, log.collection), log, note, change)

    @cached_property
    def declared(self) -> Declared:
        """The pipeline's functions."""
        return self.project.declared(self.graph.name)


@dataclass
class _Replaying:
    """The lost rows of one log on their way back."""

    mending: Mending
    log: Holding
    step: Step
    waiting: list[tuple[Epoch, Staged]] = field(default_factory=list)
    """What is staged and not in the log yet."""
    recomputed: int = 0
    is_done: bool = True
    """Whether all that waited got there."""

    def exchanged(self) -> tuple[int, int, bool]:
        """Compute all lost epochs and exchange their files; rows lost, rows computed, and whether nobody came between."""
        began = time.monotonic()
        try:
            for lower in self.step.epochs():
                epoch = self.mending.graph.schedule.epoch_at(lower)
                try:
                    self.waiting.append((epoch, self._replayed(epoch)))
                except FirnlineError:
                    # What builds on rows of its own earlier epochs needs these in the log first.
                    if not self.waiting:
                        raise
                    self._exchange(began)
                    self.waiting.append((epoch, self._replayed(epoch)))
            self._exchange(began)
        finally:
            for _, staged in self.waiting:
                self._table.discard(staged.attempt)
        return self.step.rows, self.recomputed, self.is_done

    @property
    def _table(self) -> Log:
        return self.mending.project.log(self.log.pipeline, self.log.collection)

    def _replayed(self, epoch: Epoch) -> Staged:
        from firnline.runtime.stage_run import StageRun

        mending, name = self.mending, self.log.collection
        made_by = owner(mending.graph, name)
        assert made_by is not None, "the plan refuses what nobody makes"
        attempt = world().new_id()
        run = StageRun(mending.project, mending.declared, mending.session(), made_by, epoch, attempt)
        staged = run.replay(name, self.step.parts(epoch.lower))
        self.recomputed += staged.computed
        try:
            self._compare(epoch, staged)
            audited(mending.declared, name, epoch, staged)
        except BaseException:
            self._table.discard(staged.attempt)
            raise
        world().reach("stage.audited")
        return staged

    def _compare(self, epoch: Epoch, staged: Staged) -> None:
        """Refuse rows that are not those that were published."""
        expected = expected_digests(self.log)
        cells = [cell for cell in self.step.cells if cell[0] == epoch.lower]
        wrong = [cell for cell in cells if staged.digests.get(cell, Digest()) != expected.get(cell, Digest())]
        if not wrong:
            return
        now, then = (sum((of.get(cell, Digest()) for cell in wrong), Digest()) for of in (staged.digests, expected))
        parts = ", ".join(str(part) for _, part in wrong)
        label = self.mending.graph.schedule.label(epoch.lower)
        name = f"{self.log.pipeline}.{self.log.collection}"
        what = f"{name} at {label}, parts {parts}: {then.rows} rows were published, {now.rows} other ones come out now"
        raise FirnlineError("REPLAY_DIFFERS", what + self._cause(epoch))

    def _cause(self, epoch: Epoch) -> str:
        """What may be why, as far as the log tells."""
        made_by = owner(self.mending.graph, self.log.collection)
        made_with = [
            each.summary.fingerprint.code
            for each in self.log.published()
            if each.summary is not None and each.summary.lower <= epoch.lower < each.summary.upper
        ]
        today = self.mending.graph.fingerprints.get(made_by.name) if made_by else None
        return "; the code changed since" if made_with and made_with[-1] != today else ""

    def _exchange(self, began: float) -> None:
        """Put what waits into the log."""
        from firnline.tables.port import Exchange
        from firnline.tables.sidecar import Repair

        lowers = {epoch.lower for epoch, _ in self.waiting}
        cells = tuple(cell for cell in self.step.cells if cell[0] in lowers)
        out = _files(self.log, cells)
        staged = tuple(each.snapshot for _, each in self.waiting if each.snapshot is not None)
        digests = expected_digests(self.log)
        lost = sum(digests[cell].rows for cell in cells if cell in digests)
        seconds = time.monotonic() - began
        computed = sum(each.computed for _, each in self.waiting)
        note = Repair(self.log.collection, world().new_id(), cells, tuple(sorted(out)), (), lost, computed, seconds)
        change = Exchange(out=out, staged=staged, manifests=self.step.manifests)
        self.is_done &= _exchange(self._table, self.log, note, change)
        self.waiting.clear()
        self.log = taken(self.mending.project, self.log.pipeline, self.log.collection)


def audited(declared: Declared, collection: str, epoch: Epoch, staged: Staged) -> None:
    """Where quality checks look at what was recovered, staged and of the right digest, before it is exchanged; none yet."""


def _files(log: Holding, cells: Collection[Cell]) -> frozenset[str]:
    return frozenset(data.file.path for _, data in data_of(log) if any(covers(data, cell) for cell in cells))


def _exchange(table: Log, log: Holding, note: Repair, change: Exchange) -> bool:
    """Exchange files of a log unless somebody else has repaired it since it was looked at; whether it was done."""
    description = log.description()
    repairs = [each.snapshot for each in log.repairs()]
    generation = description.generation if description is not None else 0
    verdict = table.exchange(generation, repairs[-1] if repairs else None, note, change)
    if verdict is Verdict.FENCED:
        raise FirnlineError("GENERATION_CHANGED", f"{log.pipeline}.{log.collection} was rewound while it was repaired")
    return verdict is Verdict.FREE
