"""Running a branch: at the price of what changed.

An epoch of a collection is taken from the pipeline's log, file by file, where the pipeline's was made by the code that the branch
has, from inputs that are the same there and here, onto rows that are the same. All else is computed, as of any pipeline. Whether
rows are the same the digests of all epochs since the branch began tell: a stage that is computed anew and comes to the same rows
costs its readers nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.description import Verdict
from firnline.model.epoch import Epoch
from firnline.model.fingerprint import Fingerprint
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import logs_beside, logs_of
from firnline.plan.renaming import begun_anew
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.branch import Note, check_whole, is_shared
from firnline.runtime.offline_plan import offline_plans
from firnline.runtime.project import Declared, Project
from firnline.tables.control import TABLE
from firnline.tables.forking import fork, layer_at, take
from firnline.tables.log import Entry, Log
from firnline.tables.trash import Trash

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_OTHER_COLUMNS = ("WRONG_COLUMNS", "PLACEMENT_CHANGED")
_logger = logging.getLogger(__name__)


def missing(project: Project, space: str, last: int | None = None) -> list[Epoch]:
    """The epochs that a branch lacks up to the pipeline's frontier, or up to the end of an earlier epoch."""
    note = check_whole(project, space)
    graph = project.graph(note.pipeline)
    main, own = project.control(note.pipeline).frontier(), project.control(space).frontier()
    upto = graph.schedule.start if main is None else main.upper
    if last is not None and last > upto:
        what = f"{graph.schedule.label(last)} is beyond what is complete in {graph.name!r}: {graph.schedule.label(upto)}"
        raise FirnlineError("EPOCH_NOT_COMPLETE", what)
    assert own is not None, "the branch is whole"
    return list(graph.schedule.epochs(own.upper, upto if last is None else last))


def run(project: Project, space: str, epochs: list[Epoch], session: Callable[[], SparkSession]) -> Iterator[Outcome]:
    """Bring a branch through epochs that it lacks, in order; Spark is started only if something is computed."""
    running = Running(project, check_whole(project, space), project.graph(space), session)
    for epoch in epochs:
        yield from running.epoch(epoch)


@dataclass
class Running:
    """A branch while it is run."""

    project: Project
    note: Note
    graph: Graph
    session: Callable[[], SparkSession]
    same: dict[str, int] = field(default_factory=dict)
    """Up to where collections are known to hold the pipeline's rows."""
    differing: set[str] = field(default_factory=set)
    """Those of which it is known that they do not."""
    plans: dict[str, str | None] = field(default_factory=dict)
    """The fingerprints of stages' plans, where it was asked for them."""

    def epoch(self, epoch: Epoch) -> Iterator[Outcome]:
        """Bring all collections through an epoch, and complete it."""
        for collection in self.graph.collections:
            yield from self.collection(collection, epoch)
        complete(self.project, self.graph, epoch)

    def collection(self, collection: Collection, epoch: Epoch) -> Iterator[Outcome]:
        """Bring one collection through an epoch."""
        head = self.project.log(self.graph.name, collection.name).head()
        if head is not None and head.description.upper >= epoch.upper:
            yield Outcome(collection.name, epoch, "kept")
            return
        taken = self._taken(collection, epoch)
        if taken is not None:
            yield Outcome(collection.name, epoch, "taken", taken.rows, taken.weight)
        else:
            yield from self._computed(collection, epoch)

    @cached_property
    def _declared(self) -> Declared:
        return self.project.declared(self.graph.name)

    def _computed(self, collection: Collection, epoch: Epoch) -> Iterator[Outcome]:
        compute = (self.project, self._declared, self.session(), collection.name, epoch)
        try:
            yield from advance(*compute)
        except FirnlineError as error:
            if error.code not in _OTHER_COLUMNS or not self._retired(collection.name):
                raise
            _logger.info("%s begins anew in the branch: %s", collection.name, error)
            yield from advance(*compute)

    def _retired(self, name: str) -> bool:
        """Forget a log and all kept beside it, since the branch's rows do not fit there; whether that lost nothing of its own."""
        catalog, where = self.project.catalog, self.project.catalog.table(self.note.pipeline, TABLE)
        names = logs_of([name], catalog.names(self.graph.name))
        tables = [table for each in names if (table := catalog.table(self.graph.name, each)) is not None]
        if where is None or not tables or not all(self._is_all_theirs(each.name) for each in tables):
            return False
        Trash(catalog).put_tables(where, tables)
        is_gone = all(catalog.forget(table) for table in tables)
        self.project.control(self.graph.name).name(lambda present: begun_anew(present, name))
        return is_gone

    def _is_all_theirs(self, name: str) -> bool:
        """Whether a log holds nothing but what it shares with the pipeline's, or took from there."""
        theirs = self.project.log(self.note.pipeline, name)
        own = (each for each in self.project.log(self.graph.name, name).entries() if each.lower >= self.note.at)
        layers = ((layer_at(theirs, each.lower, each.description.upper), each) for each in own)
        return all(layer is not None and layer.attempt == each.attempt for layer, each in layers)

    def _taken(self, collection: Collection, epoch: Epoch) -> Entry | None:
        """The pipeline's epoch, taken over, if the branch's would be the same."""
        entry = layer_at(self.project.log(self.note.pipeline, collection.name), epoch.lower, epoch.upper)
        if entry is None or not self._is_same(collection.name, epoch.lower) or not self._is_made_alike(collection, entry):
            return None
        if not all(is_foreign(name) or self._is_same(name, epoch.upper) for name in collection.inputs):
            return None
        for name in logs_beside(collection.name, self.project.catalog.names(self.note.pipeline)):
            self._take_beside(name, epoch)
        return entry if self._take(collection.name, entry) else None

    def _take_beside(self, name: str, epoch: Epoch) -> None:
        """Take what a collection keeps beside it: arrangements, and its quarantine."""
        into = self.project.log(self.graph.name, name)
        fork(self.project.catalog, self.project.log(self.note.pipeline, name), into, self.note.at)
        head = into.head()
        assert head is not None, "it was just forked"
        for entry in reversed(list(self.project.log(self.note.pipeline, name).entries(head.description.upper))):
            if entry.description.upper <= epoch.upper and not self._take(name, entry):
                return

    def _take(self, name: str, entry: Entry) -> bool:
        source, into = self.project.log(self.note.pipeline, name), self.project.log(self.graph.name, name)
        return take(self.project.catalog, source, into, entry) in (Verdict.FREE, Verdict.TAKEN)

    def _is_made_alike(self, collection: Collection, entry: Entry) -> bool:
        """Whether the branch's code is what made a layer of the pipeline's log."""
        code = self.graph.fingerprints[collection.name]
        is_edited = entry.fingerprint.code != code and entry.fingerprint.plan is not None
        return Fingerprint(code, self._plan(collection.name) if is_edited else None).is_same(entry.fingerprint)

    def _plan(self, name: str) -> str | None:
        """The fingerprint of a stage's plan, if it is known without Spark."""
        if name not in self.plans:
            self.plans.update(offline_plans(self.project, self.graph, [name]))
        return self.plans[name]

    def _is_same(self, name: str, upto: int) -> bool:
        """Whether a collection's rows before a point are the pipeline's."""
        reached = self.same.get(name, self.note.at)
        if not is_shared(self.project, self.note, name):
            self.differing.add(name)
        if name in self.differing or reached >= upto:
            return name not in self.differing and self.project.log(self.graph.name, name).load() is not None
        theirs, ours = (self.project.log(space, name) for space in (self.note.pipeline, self.graph.name))
        for epoch in self.graph.schedule.epochs(reached, upto):
            if not _is_same_layer(theirs, ours, epoch):
                self.differing.add(name)
                return False
        self.same[name] = upto
        return True


def _is_same_layer(one: Log, other: Log, epoch: Epoch) -> bool:
    """Whether two logs hold the same rows of an epoch, by their digests."""
    first, second = layer_at(one, epoch.lower, epoch.upper), layer_at(other, epoch.lower, epoch.upper)
    if first is None or second is None:
        return False
    return first.attempt == second.attempt or one.sidecar(first).digests == other.sidecar(second).digests
