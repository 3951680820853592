"""Advancing a collection through an epoch: plan, compute, stage, audit, publish.

Whatever the scheduler does (twice, late, backwards, at once, killed in the middle), afterwards the log holds every epoch up to
the target exactly once, or it is as it was.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Description, Verdict
from firnline.model.epoch import Epoch
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import parted, place
from firnline.plan.advance import advance as plan_advance
from firnline.plan.advance import check_inputs, check_target
from firnline.plan.frontier import Frontier, cut
from firnline.plan.renaming import begun_anew
from firnline.runtime.branch import note_of
from firnline.runtime.flusher import hand_over
from firnline.runtime.plain_tables import bring_up
from firnline.runtime.project import Declared, Project
from firnline.runtime.renaming import keep_renamed
from firnline.runtime.rewind import settle
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.runtime.attempt import Apart, Published
    from firnline.tables.log import Head

OF_FILES = ("STAGE_FAILED", "UNREADABLE_FILE", "MISSING_FILE", "LOG_UNREADABLE")
"""What a lost file of a log shows as."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one epoch of a collection."""

    collection: str
    epoch: Epoch
    how: Literal["computed", "reused", "kept", "taken"]
    rows: int = 0
    weight: int = 0
    malformed: int = 0
    seconds: float = 0.0
    at_once: int = 1
    """How many epochs the job computed that computed it."""


def is_kept(project: Project, graph: Graph, collection: str, epoch: Epoch) -> bool:
    """Whether the log already holds the epoch; takes milliseconds and no Spark.

    Published epochs keep the fingerprint that made them: code that changed since is reported, not run again.
    """
    check_target(graph.schedule, epoch)
    graph.collection(collection)
    settle(project, graph)
    head = _head(project, graph, collection)
    if head is None or head.description.upper < epoch.upper:
        return False
    if head.fingerprint and head.fingerprint.code != graph.fingerprints[collection]:
        _logger.info("%s.%s was made by other code than today's; new epochs use today's", graph.name, collection)
    return True


def _head(project: Project, graph: Graph, collection: str) -> Head | None:
    """The head of a collection's log, which may have been another collection's so far."""
    log = project.log(graph.name, collection)
    head = log.head()
    if head is None:
        keep_renamed(project, graph, collection)
        head = log.head()
    return head


class Compute(Protocol):
    """An engine: one attempt at one epoch of a collection, from its inputs' heads to its log."""

    def __call__(
        self, collection: Collection, generation: int, epoch: Epoch, attempt: str, inputs: Mapping[str, Head]
    ) -> Published:
        """Compute, stage, audit and publish."""


class Together(Protocol):
    """An engine: attempts at several epochs of a collection at once, as many of the first ones as it takes."""

    def __call__(
        self, collection: Collection, generation: int, attempts: Mapping[Epoch, str], inputs: Mapping[str, Head]
    ) -> Iterator[Published] | Apart:
        """Compute them, then publish one after the other; or why the first has to be computed by itself."""


def advance(
    project: Project, declared: Declared, session: SparkSession, name: str, target: Epoch, fresh: Epoch | None = None
) -> Iterator[Outcome]:
    """Compute what is missing of a collection up to and including the target, in order, on Spark.

    What a rewind took out and would come out the same is reused, but for the epoch ``fresh``.
    """
    from firnline.runtime.attempt import Apart
    from firnline.runtime.reuse import reusable, reused
    from firnline.runtime.stage_run import StageRun
    from firnline.runtime.stretch import Stretch

    def compute(collection: Collection, generation: int, epoch: Epoch, attempt: str, inputs: Mapping[str, Head]) -> Published:
        again = reused(project, declared.graph, collection, generation, epoch, attempt, inputs) if epoch != fresh else None
        return again or StageRun(project, declared, session, collection, epoch, attempt).publish(generation, inputs)

    def together(
        collection: Collection, generation: int, attempts: Mapping[Epoch, str], inputs: Mapping[str, Head]
    ) -> Iterator[Published] | Apart:
        first = next(iter(attempts))
        if first != fresh and reusable(project, declared.graph, collection, generation, first):
            return Apart("it is what the log held before a rewind")
        runs = (StageRun(project, declared, session, collection, epoch, attempt) for epoch, attempt in attempts.items())
        return Stretch(tuple(runs), inputs).published(generation)

    try:
        yield from advance_by(compute, project, declared.graph, name, target, together)
    except FirnlineError as error:
        if error.code not in OF_FILES or not _mended(project, declared.graph, session, name):
            raise
        yield from advance_by(compute, project, declared.graph, name, target, together)
    _keep_view(project, declared.graph, name)


def _keep_view(project: Project, graph: Graph, name: str) -> None:
    """Make the collection's view true. The epoch is published without it, and the next one tries again."""
    from firnline.tables.views import keep

    log = project.log(graph.name, name).load()
    try:
        if log is not None and parted(graph.name)[1] is None:
            keep(project.catalog, log, graph.collection(name).doc)
    except FirnlineError as error:
        _logger.warning("the view of %s.%s was not made: %s", graph.name, name, error)


def _mended(project: Project, graph: Graph, session: SparkSession, name: str) -> bool:
    """Repair what a collection is made from, and what it kept; whether there was something to repair and now there is not."""
    from firnline.runtime.repair import repair

    _logger.info("%s.%s may have met a lost file: its inputs are verified", graph.name, name)
    try:
        found = repair(project, lambda: session, f"{graph.name}.{name}", is_retrying=False)
    except FirnlineError as error:
        _logger.error("its inputs could not be verified: %s", error)
        return False
    for done in found.done:
        rows = f", {done.rows_recomputed} rows recomputed for {done.rows_lost} lost" if done.rows_lost else ""
        _logger.warning("repaired %s.%s: %s of %s%s", graph.name, done.step.collection, done.step.how, done.step.what, rows)
    for failed in found.failed:
        _logger.error("not repaired: %s.%s: %s", graph.name, failed.collection, failed.error)
    for refusal in found.refusals:
        _logger.error("not repaired: %s.%s: %s", graph.name, refusal.collection, refusal.what)
    return bool(found.done) and not found.failed


def advance_by(
    compute: Compute, project: Project, graph: Graph, name: str, target: Epoch, together: Together | None = None
) -> Iterator[Outcome]:
    """``advance``, whatever engine computes."""
    collection = graph.collection(name)
    check_target(graph.schedule, target)
    settle(project, graph)
    head = _head(project, graph, name)
    merged = _merged(project, graph, collection) if head is None or head.snapshot is None else None
    plan = plan_advance(collection, graph.schedule, head.description if head else None, target, merged)
    world().reach("advance.planned")
    if not plan.missing:
        yield Outcome(name, target, "kept")
    missing = deque(plan.missing)
    while missing:
        if together is not None and len(missing) > 1:
            apart = yield from _advance_together(together, project, graph, collection, plan.generation, missing)
            if apart is None:
                continue
            _logger.info("%s.%s at %s: %s", graph.name, name, graph.schedule.label(missing[0].lower), apart.reason)
            together = None if apart.is_lasting else together
        began, epoch, attempt = time.monotonic(), missing.popleft(), world().new_id()
        with _noted(project, graph, name, epoch, attempt):
            outcome = _advance_one(compute, project, graph, collection, plan.generation, epoch, attempt)
        _carry(project, graph, outcome, attempt)
        yield replace(outcome, seconds=time.monotonic() - began)


def _advance_together(
    together: Together, project: Project, graph: Graph, collection: Collection, generation: int, missing: deque[Epoch]
) -> Generator[Outcome, None, Apart | None]:
    """Take off the first of the missing epochs as many as are computed at once; or why none is."""
    from firnline.runtime.attempt import Apart

    heads = {name: project.log(graph.name, name).head() for name in collection.inputs}
    described = [_readable(project, graph, name, head) for name, head in heads.items()]
    if any(each is None or each.since > missing[0].upper for each in described):
        return Apart("its inputs are not there epoch by epoch")
    reached = min((each.upper for each in described if each is not None), default=missing[-1].upper)
    attempts = {epoch: world().new_id() for epoch in missing if epoch.upper <= reached}
    if len(attempts) < 2:
        return Apart("no other is there yet")
    found = together(collection, generation, attempts, {name: head for name, head in heads.items() if head})
    if isinstance(found, Apart):
        return found
    last: tuple[Outcome, str] | None = None
    for epoch, attempt in attempts.items():
        with _noted(project, graph, collection.name, epoch, attempt):
            done = next(found, None)
            if done is None:
                break
            outcome = _outcome(collection, epoch, done)
        missing.popleft()
        last = (outcome, attempt)
        yield replace(outcome, seconds=done.seconds or 0.0)
    if last is not None:
        _carry(project, graph, *last)  # and with it all that the ledger lacks before it
    return None


@contextmanager
def _noted(project: Project, graph: Graph, name: str, epoch: Epoch, attempt: str) -> Iterator[None]:
    """Keep a failure inside where ``status`` finds it."""
    try:
        yield
    except FirnlineError as error:
        note(project, graph, name, epoch, attempt, error)
        raise


def _carry(project: Project, graph: Graph, outcome: Outcome, attempt: str) -> None:
    """Tell the ledger of what was published."""
    world().reach("advance.published")
    if outcome.how in ("computed", "reused") and parted(graph.name)[1] is None:
        hand_over(project, graph.name, outcome.collection, outcome.epoch, attempt)


def _merged(project: Project, graph: Graph, collection: Collection) -> int | None:
    """Up to where the inputs of a collection keep no single epochs, and a branch asks for none."""
    heads = [project.log(graph.name, name).head() for name in collection.inputs]
    begins = [head.description.since for head in heads if head is not None]
    if begins and parted(graph.name)[1] is not None:
        begins.append(note_of(project, graph.name).at)
    return max(begins, default=None)


def complete(project: Project, graph: Graph, epoch: Epoch) -> Frontier:
    """Let readers see the epoch, in all collections at once, then in plain tables; refuse while a collection lacks it."""
    settle(project, graph)
    heads = {collection.name: project.log(graph.name, collection.name).head() for collection in graph.collections}
    found = cut({name: head.description if head else None for name, head in heads.items()})
    if found is None or found.upper < epoch.upper:
        label = graph.schedule.label(epoch.lower)
        late = [name for name, head in heads.items() if head is None or head.description.upper < epoch.upper]
        raise FirnlineError("INPUT_NOT_READY", f"the pipeline {graph.name!r} lacks {label} of {', '.join(late)}")
    control = project.control(graph.name)
    frontier = control.advance(found)
    for name in frontier.generations.keys() - project.catalog.names(graph.name):  # retired while older code still ran
        control.name(partial(begun_anew, collection=name))
    bring_up(project, graph)
    return frontier


def _advance_one(
    compute: Compute, project: Project, graph: Graph, collection: Collection, generation: int, epoch: Epoch, attempt: str
) -> Outcome:
    heads = {name: project.log(graph.name, name).head() for name in collection.inputs}
    described = {name: _readable(project, graph, name, head) for name, head in heads.items()}
    try:
        check_inputs(graph, collection, described, epoch)
        done = compute(collection, generation, epoch, attempt, {name: head for name, head in heads.items() if head})
    except FirnlineError as error:
        head = project.log(graph.name, collection.name).head() if error.code == "EPOCH_COMPACTED" else None
        if head is None or head.description.judge(generation, epoch.lower, epoch.upper) is not Verdict.TAKEN:
            raise
        return Outcome(collection.name, epoch, "kept")  # by somebody else, so long ago that it is merged
    return _outcome(collection, epoch, done)


def _outcome(collection: Collection, epoch: Epoch, done: Published) -> Outcome:
    """What an attempt came to, if it came to anything."""
    if done.verdict is Verdict.FREE:
        how: Literal["computed", "reused"] = "reused" if done.is_reused else "computed"
        return Outcome(collection.name, epoch, how, done.digest.rows, done.digest.weight, done.malformed, at_once=done.at_once)
    if done.verdict is Verdict.TAKEN:
        return Outcome(collection.name, epoch, "kept")
    raise FirnlineError("GENERATION_CHANGED", f"{collection.name!r} moved while its epoch was computed")


def _readable(project: Project, graph: Graph, name: str, head: Head | None) -> Description | None:
    """How much of an input there is to read: of another pipeline's collection, what is complete in all of that pipeline."""
    if head is None or not is_foreign(name):
        return None if head is None else head.description
    frontier = project.control(place(graph.name, name)[0]).frontier()
    return None if frontier is None else replace(head.description, upper=min(head.description.upper, frontier.upper))


def note(project: Project, graph: Graph, name: str, epoch: Epoch, attempt: str, error: FirnlineError) -> None:
    """Keep a failure where ``status`` finds it, if anything can be written there."""
    from firnline.tables.failures import Failure

    now = world().now().isoformat()
    failure = Failure(name, epoch.lower, epoch.upper, attempt, error.code, str(error), error.retryable, now)
    try:
        project.failures(graph.name).note(failure)
    except (FirnlineError, OSError) as reason:
        _logger.warning("the failure was not noted: %s", reason)
