"""A stretch: neighbouring epochs of a collection that change few rows, computed by one job, each with a snapshot of its own.

The rows carry their epoch, so that one job gives the digests of every epoch and part. They are handed over, cut by epoch, and
published in order, one snapshot and sidecar each, by one commit. The log is then the one that epoch by epoch would have made:
whoever reads, repairs, rewinds or merges it cannot tell.

Whatever stands against it (``Apart``), an error included, is no failure: the epochs are computed one by one then, and an error
comes up again with its epoch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.engine.frames import relation_of
from firnline.engine.reading import SourceEpoch, count_malformed
from firnline.engine.staging import FEW, Gathered
from firnline.errors import FirnlineError
from firnline.incremental.arranging import Arrangement
from firnline.incremental.stretching import apart
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import DIFF, EPOCH
from firnline.plan.stretching import length
from firnline.runtime.attempt import Apart, Digests, Published
from firnline.runtime.derived import Derived
from firnline.runtime.evaluation import in_order, told
from firnline.runtime.intake import adopts, intake_of
from firnline.runtime.stage_run import StageRun
from firnline.runtime.writing import Destination
from firnline.tables.log import Entry, Head
from firnline.tables.publishing import publish_each
from firnline.tables.sidecar import Input, Sidecar

_OF_INTAKES = {
    "snapshot": "a dump is compared with the state before its epoch",
    "dedup": "records are looked up among those of the epochs before",
    "feed": "events are played on the state before their epoch",
}
_logger = logging.getLogger(__name__)


class _AsideError(Exception):
    """A source's epochs are taken in one by one after all."""


@dataclass(frozen=True)
class _Computed:
    """The rows of a log in a stretch, and what is written down with each of its epochs."""

    destination: Destination
    rows: Gathered
    fingerprint: Fingerprint
    inputs: Mapping[Epoch, Mapping[str, Input]]
    determinants: Mapping[Epoch, Mapping[str, Any]]
    seconds: float
    """What an epoch took of the job."""
    givens: Sequence[tuple[StageRun, SourceEpoch]] = ()
    """What the epochs of a source were given."""

    def outside(self, epoch: Epoch) -> Mapping[str, Any]:
        """What an epoch took from the outside."""
        return self.determinants.get(epoch, MappingProxyType({}))

    def sidecar(self, run: StageRun, digests: Digests, seconds: float) -> Sidecar:
        """What is written down with an epoch."""
        about = (self.fingerprint, self.inputs[run.epoch], seconds, self.outside(run.epoch))
        return self.destination.when(run.epoch).sidecar(run.attempt, digests, run.epoch, *about)


@dataclass(frozen=True)
class Stretch:
    """Epochs of a collection that are to be computed at once; each has a run, with an attempt of its own."""

    runs: tuple[StageRun, ...]
    inputs: Mapping[str, Head]

    def published(self, generation: int) -> Iterator[Published] | Apart:
        """Compute as many of the first epochs as make a stretch; then publish them, one after the other."""
        first = self.runs[0]
        try:
            with told(first.collection, first.declared.graph.schedule.label(first.epoch.lower), first.project.settings):
                made = self._derived() if first.collection.kind == "stage" else self._taken_in()
        except FirnlineError as error:
            return Apart(str(error), is_lasting=True)
        if isinstance(made, Apart):
            return made
        runs = [run for run in self.runs if run.epoch in made.inputs]
        return self._told(runs, made, self._published(runs, generation, made))

    def _told(self, runs: Sequence[StageRun], made: _Computed, found: Iterator[Published]) -> Iterator[Published]:
        """What is published; an error is told with its epoch, and the next attempt at those left looks anew for their files."""
        for run in runs:
            with told(run.collection, run.declared.graph.schedule.label(run.epoch.lower), run.project.settings):
                try:
                    done = next(found)
                except BaseException as error:
                    for each, given in made.givens:
                        each.failed(given, error)
                    raise
            yield done

    def _derived(self) -> _Computed | Apart:
        first = self.runs[0]
        graph, collection = first.declared.graph, first.collection
        own = first.project.log(graph.name, collection.name).head()
        if own is None or own.snapshot is None:
            return Apart("its first epoch is computed from the whole state")
        agreed = first.project.control(graph.name).agreement()
        if agreed.gaps.mark(collection.name) is not None:
            return Apart("a gap opened or closed")
        runs = self.runs[: length(self._changes(), FEW)]
        if len(runs) < 2:
            return Apart("its epochs change many rows")
        began = time.monotonic()
        span = replace(first, epoch=Epoch(first.epoch.lower, runs[-1].epoch.upper))
        plan = span.planned(self.inputs, agreed)
        reason = str(plan.refusal) if plan.steps is None else apart(plan.steps)
        if reason is not None:
            return Apart(reason, is_lasting=True)
        if own.fingerprint is None or not span.made_by(plan).is_same(own.fingerprint):
            return Apart("its plan is new")
        lineages = {name: span.lineage(name, head) for name, head in self.inputs.items()}
        derived = Derived(span, plan, span.into(plan.frame.schema), lineages)
        if not derived.is_continued():
            return Apart("its plan, or what it keeps, is new")
        for step in derived.arrangements:
            refusal = self._keep(derived, step, runs)
            if refusal is not None:
                return refusal
        rows = _within(derived.stretch(None), runs)
        if isinstance(rows, Apart):
            return rows
        parts = derived.lineage()
        seconds = (time.monotonic() - began) / len(runs)
        return _Computed(derived.destination, rows, derived.fingerprint, self._read(runs, parts), {}, seconds)

    def _changes(self) -> list[int]:
        """How many rows of the inputs each epoch changes."""
        first = self.runs[0]
        logs = (first.project.log(first.declared.graph.name, name) for name in self.inputs)
        entries = [entry for log in logs for entry in log.entries(first.epoch.lower)]
        within = ((run.epoch.lower, run.epoch.upper) for run in self.runs)
        return [
            sum(each.rows for each in entries if each.lower < upper and each.description.upper > lower) for lower, upper in within
        ]

    def _keep(self, derived: Derived, step: Arrangement, runs: Sequence[StageRun]) -> Apart | None:
        """Advance an arrangement through the stretch; an attempt before this one may have brought it some of the way."""
        began, destination = time.monotonic(), derived.of_arrangement(step)
        generation, upper = destination.head.description.generation, destination.head.description.upper
        left = [replace(run, attempt=run.attempt + step.name[-4:]) for run in runs if run.epoch.upper > upper]
        if not left:
            return None
        rest = replace(derived, run=replace(derived.run, epoch=Epoch(left[0].epoch.lower, left[-1].epoch.upper)))
        derived.check_inputs()
        rows = _within(rest.stretch(step), left)
        if isinstance(rows, Apart):
            return rows
        read = self._read(left, derived.inputs_of(step, destination))
        seconds = (time.monotonic() - began) / len(left)
        made = _Computed(destination, rows, derived.fingerprint, read, {}, seconds)
        for done in self._published(left, generation, made, is_checked=False):
            if done.verdict not in (Verdict.FREE, Verdict.TAKEN):
                raise FirnlineError("GENERATION_CHANGED", f"{step.name!r} moved while its epochs were computed")
        return None

    def _read(self, runs: Sequence[StageRun], parts: Mapping[str, Input]) -> dict[Epoch, dict[str, Input]]:
        """What each epoch reads, as it is written down."""
        first = runs[0]
        logs = {name: first.project.log(first.declared.graph.name, name) for name in parts}
        entries = {name: list(log.entries(first.epoch.lower)) for name, log in logs.items()}
        return {
            run.epoch: {
                name: replace(of, upper=run.epoch.upper, rows=_rows(entries[name], run.epoch)) for name, of in parts.items()
            }
            for run in runs
        }

    def _taken_in(self) -> _Computed | Apart:
        first = self.runs[0]
        refusal = _OF_INTAKES.get(first.collection.intake.kind)
        if refusal is not None:
            return Apart(refusal, is_lasting=True)
        own = first.project.log(first.declared.graph.name, first.collection.name).head()
        if own is None or own.snapshot is None or adopts(first):
            return Apart("its first epoch is taken in by itself")
        runs = self.runs[: length((own.rows for _ in self.runs), FEW)]  # as if all were like the one before
        if len(runs) < 2:
            return Apart("its epochs change many rows")
        givens = [run.given() for run in runs]
        try:
            return self._returned(runs, givens)
        except BaseException as error:
            for run, given in zip(runs, givens, strict=True):
                run.failed(given, error)  # so that who mends the files of an epoch that was not tried by itself is not refused
            if not isinstance(error, _AsideError):
                raise
            return Apart(str(error), is_lasting=True)
        finally:
            for given in givens:
                given.close()

    def _returned(self, runs: Sequence[StageRun], givens: Sequence[SourceEpoch]) -> _Computed:
        began = time.monotonic()
        intakes = [intake_of(run, given) for run, given in zip(runs, givens, strict=True)]
        taken = []
        for given, intake in zip(givens, intakes, strict=True):
            taken.append(intake.taken())
            if not given.is_settled(taken[-1]):  # what the function does for the next epoch may change what is read for this one
                raise _AsideError("it reads more than files that were listed, and rows that it has made itself")
        columns = [intake.columns(frame) for intake, frame in zip(intakes, taken, strict=True)]
        if any(each != columns[0] for each in columns):
            raise _AsideError("its epochs have different columns")
        if count_malformed(givens):
            raise _AsideError("some records are malformed")
        destination = intakes[0].into(columns[0])
        names = [*destination.names, DIFF]
        frames = [
            in_order(frame, names).withColumn(EPOCH, F.lit(run.epoch.lower).cast("bigint"))
            for run, frame in zip(runs, taken, strict=True)
        ]
        rows = destination.gathered(relation_of(reduce(DataFrame.unionAll, frames)), runs[0].epoch)
        if rows is None:
            raise _AsideError("its epochs change many rows")
        for given in givens:
            given.check_unchanged()
        outside = {run.epoch: intake.determinants for run, intake in zip(runs, intakes, strict=True)}
        seconds = (time.monotonic() - began) / len(runs)
        read: dict[Epoch, dict[str, Input]] = {run.epoch: {} for run in runs}
        given_to = tuple(zip(runs, givens, strict=True))
        return _Computed(destination, rows, runs[0].fingerprint, read, outside, seconds, given_to)

    def _published(
        self, runs: Sequence[StageRun], generation: int, made: _Computed, *, is_checked: bool = True
    ) -> Iterator[Published]:
        """What was computed, published: by one commit, or epoch by epoch where there are checks to ask, or others publish too."""
        cells = [made.rows.of(run.epoch.lower) for run in runs]
        if not (is_checked and runs[0].collection.checks):
            sidecars = [made.sidecar(run, cell.digests, made.seconds) for run, cell in zip(runs, cells, strict=True)]
            log, catalog = made.destination.log, runs[0].project.catalog
            verdict = publish_each(catalog, log, generation, sidecars, [cell.rows for cell in cells])
            if verdict in (Verdict.FREE, Verdict.TAKEN):
                for cell in cells:
                    yield Published(verdict, sum(cell.digests.values(), Digest()), at_once=len(runs), seconds=made.seconds)
                return
        for run, cell in zip(runs, cells, strict=True):
            yield self._published_one(run, generation, made, cell, is_checked=is_checked)

    def _published_one(self, run: StageRun, generation: int, made: _Computed, cell: Gathered, *, is_checked: bool) -> Published:
        began, head = time.monotonic(), made.destination.log.head()
        destination = replace(made.destination, head=head or made.destination.head).when(run.epoch)
        staged = destination.stage_few(cell, run.epoch, generation, run.attempt)
        if is_checked:
            staged = run.approved(destination, staged, generation)
        if isinstance(staged, Verdict):
            return Published(staged, Digest())
        seconds = made.seconds + time.monotonic() - began
        about = (made.fingerprint, made.inputs[run.epoch], seconds, made.outside(run.epoch))
        verdict = destination.publish(staged, run.epoch, generation, *about)
        return Published(verdict, staged.total, at_once=len(made.inputs), seconds=seconds)


def _within(found: Gathered | None, runs: Sequence[StageRun]) -> Gathered | Apart:
    """Rows that are few and of these epochs; those of inputs with another schedule are of its epochs."""
    if found is None:
        return Apart("its epochs change many rows")
    if {epoch for epoch, _ in found.digests} <= {run.epoch.lower for run in runs}:
        return found
    return Apart("its inputs have epochs of another schedule", is_lasting=True)


def _rows(entries: Sequence[Entry], epoch: Epoch) -> int:
    """How many rows an input changed in an epoch."""
    return sum(each.rows for each in entries if epoch.lower < each.description.upper <= epoch.upper)
