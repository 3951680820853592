"""``firnline repair``: lost and damaged pieces of logs are made again, and exchanged for what is left of them.

What a replica holds comes back from there under its own name. Whatever else is not rows is written anew from what other files
say. Other rows are computed again from what the lineage names, for the lost parts only, and staged; nothing is exchanged unless
the digest of every (epoch, part) is that of its publish. Each log is looked at again after every step, so that a repair may be
cut off anywhere, and two at once end as one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection, OnLoss
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.foreign import is_foreign
from firnline.model.gap import Cell, Gap
from firnline.model.graph import Graph
from firnline.model.names import collection_of
from firnline.plan.repairing import Plan, Refusal, Step, epoch_of, in_order, made_of, owner, plan, retry, steps_for, to_rewind
from firnline.plan.restoring import Copies, left
from firnline.plan.verification import Holding, Problem, problems_of, published_digests, published_rows
from firnline.runtime import gaps, rebuild, restore
from firnline.runtime.exchange import exchange, files
from firnline.runtime.losses import contract_for
from firnline.runtime.project import Declared, Project
from firnline.runtime.replicas import Replicas
from firnline.runtime.verify import Begun, Examined, examine, taken, targets_of
from firnline.tables.control import TABLE as CONTROL
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.attempt import Staged
    from firnline.tables.log import Log

_MOST_LOOKS = 10
"""Steps for one log; three kinds of them, and some races."""
_NOT_THE_ROWS = ("CHECK_FAILED", "GENERATION_CHANGED", "LOG_UNREADABLE", "REPAIR_STOPPED")
"""What keeps a replay from its end without saying that the rows cannot be made again."""
_MOST_WORDS = 300
"""Letters of why a gap is there: the gap ledger is read by everybody."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was taken."""

    step: Step
    seconds: float
    rows_lost: int = 0
    rows_recomputed: int = 0
    rows_left_out: int = 0
    """How many cannot be made again, and are a gap now."""


class _Taken(NamedTuple):
    """What became of a step."""

    rows_lost: int = 0
    rows_recomputed: int = 0
    rows_left_out: int = 0
    is_done: bool = True
    """Whether nobody else came between."""


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
    gaps: tuple[tuple[str, Gap], ...]
    """What is knowingly missing afterwards, by pipeline."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged any more."""
        return not (self.failed or self.refusals or self.problems)


def planned(
    project: Project, asked: str | None = None, session: SparkSession | None = None, begun: Begun = lambda *_: None
) -> Plan:
    """What a repair would do now; with a session, also about rows that only their digests tell."""
    found = examine(project, _targets(project, asked), session, begun)
    damaged, broken = _damaged(project, found, is_retrying=True)
    plans = [each.plan() for each in damaged]
    refusals = [Refusal(each.pipeline, each.collection, each.error.what, each.error.code) for each in broken]
    refusals += (one for each in plans for one in each.refusals)
    return Plan(tuple(step for each in plans for step in each.steps), tuple(refusals))


def repair(
    project: Project,
    session: Callable[[], SparkSession],
    asked: str | None = None,
    *,
    is_deep: bool = False,
    is_retrying: bool = True,
    begun: Begun = lambda *_: None,
    taking: Callable[[Step], None] = lambda _: None,
) -> Repaired:
    """Mend logs, upstream first.

    Args:
        project: The project.
        session: Gives a session; called only if something is to be computed.
        asked: ``PIPELINE`` or ``PIPELINE.COLLECTION`` with all that it comes from; everything by default.
        is_deep: Whether to look for rows that are not what they were, too.
        is_retrying: Whether to try to bring back the rows of gaps, too.
        begun: Told the name of each collection before it is looked at.
        taking: Told each step before it is taken.
    """
    done: list[Done] = []
    refusals: list[Refusal] = []
    targets = _targets(project, asked)
    found = examine(project, targets, session() if is_deep else None, begun)
    pipelines, failed = _damaged(project, found, is_retrying)
    menders = [Mending(project, damaged.graph, session, taking, is_retrying) for damaged in pipelines]
    stopped = set()
    for damaged, mending in zip(pipelines, menders, strict=True):
        try:
            mending.consult(damaged.plan())
        except FirnlineError as error:
            failed += [Failed(log.pipeline, log.collection, error) for log in damaged.logs]
            stopped.add(damaged.graph.name)
    for damaged, mending in zip(pipelines, menders, strict=True):
        if damaged.graph.name in stopped:
            continue
        done += mending.found([log for log in damaged.logs if not (log.is_control or log.metadata.is_sound())])
        for log in in_order(damaged.graph, damaged.logs):
            try:
                done += mending.mended(log.collection, damaged.of(log))
            except FirnlineError as error:
                failed.append(Failed(log.pipeline, log.collection, error))
        refusals += mending.refusals
    after = examine(project, targets) if pipelines else found
    left = tuple(each for each in after.problems if not each.is_staged)
    open_gaps = tuple((log.pipeline, gap) for log in after.logs for gap in log.gaps)
    return Repaired(tuple(done), tuple(failed), tuple(refusals), left, open_gaps)


@dataclass(frozen=True)
class _Damaged:
    """The logs of one pipeline that have problems."""

    graph: Graph
    logs: tuple[Holding, ...]
    problems: tuple[Problem, ...]
    copies: Mapping[str, Copies]
    """What replicas hold of what is lost, by collection."""

    def of(self, log: Holding) -> list[Problem]:
        return [problem for problem in self.problems if problem.collection == log.collection]

    def plan(self) -> Plan:
        return plan(self.logs, {log.collection: self.of(log) for log in self.logs}, self.graph, self.copies)


def _damaged(project: Project, found: Examined, is_retrying: bool) -> tuple[list[_Damaged], list[Failed]]:
    """What is damaged, by pipeline, or has gaps that are to be tried again; and what of it is of pipelines that do not load."""
    damaged, broken = list[_Damaged](), list[Failed]()
    for name in dict.fromkeys(log.pipeline for log in found.logs):
        problems = tuple(each for each in found.problems if each.pipeline == name and not each.is_staged)
        touched = {each.collection for each in problems}
        touched |= {log.collection for log in found.logs if is_retrying and log.pipeline == name and log.gaps}
        logs = tuple(log for log in found.logs if log.pipeline == name and log.collection in touched)
        if not logs:
            continue
        try:
            graph = project.graph(name)
        except FirnlineError as error:
            broken += [Failed(name, log.collection, error) for log in logs]
            continue
        of_each = {log.collection: [each for each in problems if each.collection == log.collection] for log in logs}
        replicas = Replicas(project, graph)
        copies = {log.collection: restore.copies(replicas, log, of_each[log.collection]) for log in logs}
        damaged.append(_Damaged(graph, logs, problems, copies))
    return damaged, broken


def _targets(project: Project, asked: str | None) -> list[tuple[str, str]]:
    """What to look at; of a collection that is asked for, which may have no log yet, also all that it comes from."""
    pipeline, _, collection = (asked or "").partition(".")
    every = targets_of(project, pipeline or None)
    if not collection:
        return every
    graph = project.graph(pipeline)
    if (pipeline, collection) not in every:
        graph.collection(collection)
    wanted = _upstream(graph, collection_of(collection))
    return [(of, name) for of, name in every if name == CONTROL or collection_of(name) in wanted]


def _upstream(graph: Graph, name: str) -> set[str]:
    """A collection and all that it comes from."""
    found, waiting = set[str](), {name}
    while waiting:
        at = waiting.pop()
        found.add(at)
        inputs = {each for of in graph.collections if of.name == at for each in of.inputs if not is_foreign(each)}
        waiting |= inputs - found
    return found


@dataclass
class Mending:
    """The repair of one pipeline's logs."""

    project: Project
    graph: Graph
    session: Callable[[], SparkSession]
    taking: Callable[[Step], None]
    is_retrying: bool
    refusals: list[Refusal] = field(default_factory=list)
    contracts: dict[str, OnLoss] = field(default_factory=dict)
    """Those that hold now, of the logs whose lost rows the pipeline's handler was asked about."""

    def consult(self, plan: Plan) -> None:
        """Ask the pipeline's handler about all lost rows of a plan, once for each log."""
        if not self.graph.has_loss_handler:
            return
        for step in (*plan.steps, *(each.step for each in plan.refusals)):
            if step is not None and step.what == "rows" and not step.is_retried and step.collection not in self.contracts:
                self.contracts[step.collection] = contract_for(self.declared, step, plan)

    def found(self, logs: Sequence[Holding]) -> list[Done]:
        """Bring back metadata files before all else: how far the frontier was is told by the ends of all logs."""
        done = []
        for log in logs:
            try:
                problems = problems_of(log)
                steps = steps_for(log, problems, self.graph, copies=restore.copies(self.replicas, log, problems)).steps
                done += [self._done(log, step) for step in steps[:1]]
            except FirnlineError as error:
                _logger.info("%s.%s: its metadata stays lost: %s", log.pipeline, log.collection, error)
        return [each for each in done if each is not None]

    def mended(self, collection: str, problems: Sequence[Problem]) -> list[Done]:
        """Take steps for a log until none is left; ``problems`` may know more than looking at its files tells."""
        done: list[Done] = []
        deep = [problem for problem in problems if problem.about == "data"]
        for _ in range(_MOST_LOOKS):
            log = taken(self.project, self.graph.name, collection)
            if gaps.turned(self.project, self.graph, log):
                log = taken(self.project, self.graph.name, collection)
            problems = list(dict.fromkeys([*problems_of(log), *deep]))
            copies = restore.copies(self.replicas, log, problems)
            if self.graph.has_loss_handler:
                self.consult(steps_for(log, problems, self.graph, copies=copies))
            found = steps_for(log, problems, self.graph, self.contracts, copies)
            if not found.steps:
                self.refusals += found.refusals
                return done if any(each.step.what == "rows" for each in done) else done + self._retried(log)
            step = found.steps[0]
            taken_step = self._done(log, step)
            if taken_step is None:
                continue
            done.append(taken_step)
            if step.what == "rows":
                deep = []
            elif step.cells and step.what == "files":
                deep = left(deep, [path for path, _ in step.copies], step.cells)
        raise FirnlineError("COMMIT_CONTENDED", f"{self.graph.name}.{collection} is still damaged after {_MOST_LOOKS} steps")

    def _done(self, log: Holding, step: Step) -> Done | None:
        """A step, taken; None if somebody else came between."""
        self.taking(step)
        began = time.monotonic()
        became = self._take(log, step)
        return Done(step, time.monotonic() - began, *became[:3]) if became.is_done else None

    def _retried(self, log: Holding) -> list[Done]:
        """Bring back rows of gaps: from their files, if these have turned up, else by computing them."""
        step = retry(log, self.graph) if self.is_retrying else None
        if step is None:
            return []
        self.taking(step)
        began = time.monotonic()
        recomputed = 0
        restore.taken_out_files(self.replicas, log, step.cells)
        found = gaps.put_back(self.project, self.session, log, step)
        rest = replace(step, cells=tuple(cell for cell in step.cells if cell not in found))
        if rest.cells and step.is_replayed:
            recomputed = _Replaying(self, self._again(log), rest).exchanged().rows_recomputed
        after = self._again(log)
        if not gaps.turned(self.project, self.graph, after):
            return []
        back = tuple(cell for cell in step.cells if not any(cell in gap for gap in self._again(log).gaps))
        lost = sum(published_rows(after, back).values())
        return [Done(replace(step, cells=back, rows=lost), time.monotonic() - began, lost, recomputed)]

    def _again(self, log: Holding) -> Holding:
        return taken(self.project, log.pipeline, log.collection)

    def _take(self, log: Holding, step: Step) -> _Taken:
        match step.what:
            case "rows" if not step.is_replayed:
                why = f"{step.why}; a nondeterministic stage is not run twice"
                gaps.leave_out(self.project, self.graph, log, step, step.cells, why)
                return _Taken(step.rows, 0, step.rows)
            case "rows":
                return _Replaying(self, log, step).exchanged()
            case "files":
                is_back = restore.restore(self.replicas, self.session, log, step)
                return _Taken(step.rows, is_done=is_back)
            case "manifests":
                return _Taken(is_done=self._rename(log, step))
            case "sidecars":
                for snapshot in step.sidecars:
                    rebuild.sidecar(self.project, self.graph, log, snapshot, self.session)
            case "lists":
                rebuild.lists(self.project, log, step.lists)
            case "metadata":
                return _Taken(is_done=rebuild.metadata(self.project, self.graph, log))
        return _Taken()

    def _rename(self, log: Holding, step: Step) -> bool:
        """Name data files by manifests that can be read."""
        from firnline.tables.port import Exchange
        from firnline.tables.sidecar import Repair

        change = Exchange(manifests=step.manifests, named=step.named, instead_of_head=step.instead_of_head)
        if log.is_control:
            self.project.control(log.pipeline).exchange(change)
            return True
        note = Repair(log.collection, world().new_id(), step.cells, (), (), 0, 0, 0.0)
        return exchange(self.project.log(log.pipeline, log.collection), log, note, change)

    @cached_property
    def replicas(self) -> Replicas:
        """The pipeline's places; one that fails is not asked again."""
        return Replicas(self.project, self.graph)

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
    given_up: dict[int, FirnlineError] = field(default_factory=dict)
    """The epochs whose rows cannot be made again, and why."""
    put: set[Cell] = field(default_factory=set)
    """What is in the log again."""
    is_done: bool = True
    """Whether all that waited got there."""

    def exchanged(self) -> _Taken:
        """Compute all lost epochs and exchange their files."""
        began = time.monotonic()
        try:
            for lower in self.step.epochs():
                try:
                    self._replay(epoch_of(self.log, self.mending.graph.schedule, lower), began)
                except FirnlineError as error:
                    if self.step.contract != "gap" or not _is_for_good(error):
                        raise
                    self.given_up[lower] = error
            self._exchange(began)
        finally:
            for _, staged in self.waiting:
                self._table.discard(staged.attempt)
        return _Taken(self.step.rows, self.recomputed, self._left_out(), self.is_done)

    def _replay(self, epoch: Epoch, began: float) -> None:
        try:
            self.waiting.append((epoch, self._replayed(epoch)))
        except FirnlineError:
            # What builds on rows of its own earlier epochs needs these in the log first.
            if not self.waiting:
                raise
            self._exchange(began)
            self.waiting.append((epoch, self._replayed(epoch)))

    def _left_out(self) -> int:
        """Go on without what cannot be made again; how many rows that are. What is a gap already stays one."""
        for error in self.given_up.values():
            _logger.warning("%s.%s: rows stay lost: %s", self.log.pipeline, self.log.collection, error)
        if self.step.is_retried or not self.given_up or not self.is_done:
            return 0
        cells = tuple(cell for cell in self.step.cells if cell[0] in self.given_up)
        why = "; ".join(dict.fromkeys(f"{error.code}: {error.what}" for error in self.given_up.values()))
        gaps.leave_out(self.mending.project, self.mending.graph, self.log, self.step, cells, why[:_MOST_WORDS])
        return sum(published_rows(self.log, cells).values())

    @property
    def _table(self) -> Log:
        return self.mending.project.log(self.log.pipeline, self.log.collection)

    def _replayed(self, epoch: Epoch) -> Staged:
        """The lost rows of an epoch, staged: made as most epochs are, or else as one after a gap opened or closed is."""
        if self._is_merged(epoch):
            return self._made(epoch, is_corrected=True)
        try:
            return self._made(epoch, is_corrected=False)
        except FirnlineError as error:
            if error.code != "REPLAY_DIFFERS" or not self._without():
                raise
        return self._made(epoch, is_corrected=True)

    def _is_merged(self, epoch: Epoch) -> bool:
        """Whether the lost rows that carry an epoch are those of a merged layer."""
        layer = self.log.layer_of(epoch.lower)
        return layer is not None and layer.is_merge

    def _after(self, epoch: Epoch, made_by: Collection) -> Epoch:
        """The first epoch from which on all that a merged layer was made of can be read: its own end, or a later one."""
        graph, name = self.mending.graph, self.log.collection
        made_from = made_of(made_by, name)
        if not made_from:
            label = graph.schedule.label(epoch.upper)
            what = f"{graph.name}.{name}: its epochs up to {label} are merged, and a source cannot make them again as one"
            raise FirnlineError("NOT_REPAIRABLE", what)
        heads = [self.mending.project.log(graph.name, each).head() for each in made_from]
        since = max((head.description.since for head in heads if head is not None), default=epoch.upper)
        upper = max(since, epoch.upper)
        return Epoch(max(epoch.lower, graph.schedule.epoch_at(upper - 1).lower), upper)

    def _without(self) -> list[str]:
        """The logs of which rows were left out at some time, of those that the rows are made from."""
        made_by = owner(self.mending.graph, self.log.collection)
        return gaps.had_gaps(self.mending.project, self.mending.graph, made_by) if made_by is not None else []

    def _made(self, epoch: Epoch, *, is_corrected: bool) -> Staged:
        from firnline.runtime.recheck import recheck
        from firnline.runtime.stage_run import StageRun

        mending, name = self.mending, self.log.collection
        made_by = owner(mending.graph, name)
        assert made_by is not None, "the plan refuses what nobody makes"
        attempt = world().new_id()
        is_merged = self._is_merged(epoch)
        after = self._after(epoch, made_by) if is_merged else epoch
        run = StageRun(mending.project, mending.declared, mending.session(), made_by, after, attempt)
        parts, merged = self.step.parts(epoch.lower), epoch if is_merged else None
        staged = run.replay(name, parts, is_corrected=is_corrected, merged=merged)
        self.recomputed += staged.computed
        try:
            self._compare(epoch, staged)
            made = [*(each for _, each in self.waiting), staged]
            if not is_merged:  # the checks were asked about its epochs one by one
                lost = [cell for cell in self.step.cells if cell not in self.put]
                recheck(mending.project, mending.graph, mending.session(), name, epoch, made, lost)
        except BaseException:
            self._table.discard(staged.attempt)
            raise
        world().reach("stage.audited")
        return staged

    def _compare(self, epoch: Epoch, staged: Staged) -> None:
        """Refuse rows that are not those that were published."""
        expected = published_digests(self.log)
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
        layer = self.log.layer_of(epoch.lower)
        today = self.mending.graph.fingerprints.get(made_by.name) if made_by else None
        if layer is not None and layer.summary is not None and layer.summary.fingerprint.code != today:
            return "; the code changed since"
        if made_by is None or made_by.kind == "source":
            return ""
        if without := self._without():
            return f"; rows of {', '.join(without)} were missing then, or are now"
        return f"; if it is not repeatable, {to_rewind(self.mending.graph, made_by.name)}"

    def _exchange(self, began: float) -> None:
        """Put what waits into the log."""
        if not self.waiting:
            return
        from firnline.tables.port import Exchange
        from firnline.tables.sidecar import Repair

        lowers = {epoch.lower for epoch, _ in self.waiting}
        cells = tuple(cell for cell in self.step.cells if cell[0] in lowers)
        out = files(self.log, cells)
        staged = tuple(each.snapshot for _, each in self.waiting if each.snapshot is not None)
        lost = sum(published_rows(self.log, cells).values())
        seconds = time.monotonic() - began
        computed = sum(each.computed for _, each in self.waiting)
        note = Repair(self.log.collection, world().new_id(), cells, tuple(sorted(out)), (), lost, computed, seconds)
        change = Exchange(out=out, staged=staged, manifests=self.step.manifests)
        if exchange(self._table, self.log, note, change):
            self.put.update(cells)
        else:
            self.is_done = False
        self.waiting.clear()
        self.log = taken(self.mending.project, self.log.pipeline, self.log.collection)


def _is_for_good(error: FirnlineError) -> bool:
    """Whether an error says that rows cannot be made again, rather than that somebody or something was not there."""
    return error.code not in _NOT_THE_ROWS and (not error.retryable or error.code == "MISSING_FILE")
