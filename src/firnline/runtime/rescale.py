"""``firnline rescale``: the rows of a log are cut into another number of parts, and nothing else about them changes.

Layer by layer the same rows, each with its own epoch and weight, are staged under their new parts. One commit exchanges all of
them and lets the log have the new number. It is refused unless the digests of every epoch add up to those that were published,
and it waits for nobody: what is published meanwhile is cut anew, too, and what was placed by the old number afterwards is not
taken. What a rescale that died had staged, the next one keeps.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError
from firnline.model.description import Verdict
from firnline.model.digest import Digest
from firnline.model.graph import Graph
from firnline.model.names import logs_of
from firnline.plan.verification import problems_of
from firnline.runtime.project import Project
from firnline.runtime.verify import taken
from firnline.tables.layers import RESCALE, newest_exchange
from firnline.tables.log import PARTS, Entry, Log, cut_by, cut_into, entries_of, head_of, staged_by
from firnline.tables.port import Exchange
from firnline.tables.sidecar import Repair, Sidecar
from firnline.world import world

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

    from firnline.engine.staging import Column, Gathered
    from firnline.tables.metadata import Metadata, Snapshot

Digests = Mapping[tuple[int, int], Digest]
_MOST_LOOKS = 30
"""At a log that others publish to: each time only what is new is cut."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """A log that is to have another number of parts."""

    pipeline: str
    collection: str
    """The one that was asked for, or what its stage keeps beside it."""
    before: int
    parts: int
    layers: int
    rows: int
    """Insertions and removals."""
    bytes: int
    """What they take in storage."""


@dataclass(frozen=True, slots=True)
class Rescaled:
    """A log that has."""

    rescale: Rescale
    files: int
    """How many data files it has now."""
    bytes: int
    kept: int
    """Layers that an attempt before this one had staged."""
    seconds: float


def rescales(project: Project, graph: Graph, collection: str, parts: int | None = None) -> list[Rescale]:
    """What is to be done so that a collection has so many parts, by default as many as the code says; nothing if it has.

    Raises:
        FirnlineError: ``BAD_OPTION`` if the number is no power of two, ``NO_SUCH_COLLECTION`` if there is no log,
            ``LOG_DAMAGED`` if something of it is lost or knowingly missing.
    """
    wanted = graph.collection(collection).parts if parts is None else parts
    if wanted < 1 or wanted & (wanted - 1):
        raise FirnlineError("BAD_OPTION", f"{wanted} parts: the number of parts is a power of two")
    names = project.catalog.names(graph.name)
    if collection not in names:
        raise FirnlineError("NO_SUCH_COLLECTION", f"{graph.name}.{collection} has no log yet")
    # What a stage keeps is cut into as many parts as the stage, unless there is nothing to cut it by.
    found = [each for name in logs_of([collection], names) if (each := _rescale(project, graph, name, wanted, collection))]
    for each in found:
        _check(project, each)
    return found


def _rescale(project: Project, graph: Graph, name: str, parts: int, asked: str) -> Rescale | None:
    table = project.log(graph.name, name).load()
    if table is None or (name != asked and not cut_by(table)):
        return None
    before = cut_into(table)
    if before == parts:
        return None
    entries = list(entries_of(table))
    size = int(table.head.summary.get("total-files-size", 0)) if table.head is not None else 0
    return Rescale(graph.name, name, before, parts, len(entries), sum(entry.rows for entry in entries), size)


def _check(project: Project, planned: Rescale) -> None:
    """Refuse a log of which something is lost: what is cut anew must be all of it."""
    name = f"{planned.pipeline}.{planned.collection}"
    log = taken(project, planned.pipeline, planned.collection)
    damage = [problem for problem in problems_of(log) if not problem.is_staged]
    if damage:
        more = f", and {len(damage) - 1} more" if len(damage) > 1 else ""
        raise FirnlineError("LOG_DAMAGED", f"{name} is not rescaled: {damage[0].what}{more}")
    if log.gaps:
        todo = "Bring the rows back with 'firnline repair': as long as some are missing, a log keeps its parts."
        if all(gap.made_good is not None for gap in log.gaps):
            todo = (
                "Its stage has made them good: 'firnline maintain' closes them once their epochs are merged and cannot be undone."
            )
        raise FirnlineError("LOG_DAMAGED", f"{name} is not rescaled: it has gaps, which are told by part", todo=todo)


def rescale(
    project: Project, session: Callable[[], SparkSession], planned: Rescale, cutting: Callable[[int, int], None] = lambda *_: None
) -> Rescaled | None:
    """Cut a log anew; None if somebody else did meanwhile.

    Args:
        project: The project.
        session: Gives a session; called only if there is something to read.
        planned: What is to be done.
        cutting: Told how many layers are staged, and of how many.

    Raises:
        FirnlineError: ``RESCALE_DIFFERS`` if the stored rows are not those that were published; nothing is changed then.
    """
    log = project.log(planned.pipeline, planned.collection)
    done = _Rescaling(project, log, session, planned, cutting).done()
    if done is not None and "__" not in planned.collection:
        from firnline.runtime.flusher import hand_over_again

        hand_over_again(project, planned.pipeline, planned.collection)
    return done


@dataclass(frozen=True, slots=True)
class _Layer:
    """The rows of a layer under their new parts, staged; no snapshot where there are none."""

    snapshot: int | None
    digests: Digests


@dataclass
class _Rescaling:
    project: Project
    log: Log
    session: Callable[[], SparkSession]
    planned: Rescale
    cutting: Callable[[int, int], None]
    layers: dict[str, _Layer] = field(default_factory=dict)
    """What is staged so far, by the name it is staged under."""
    recut: set[str] = field(default_factory=set)
    """The sidecars that are written anew so far."""
    kept: int = 0

    def done(self) -> Rescaled | None:
        began = time.monotonic()
        attempt = world().new_id()
        seen: Snapshot | None = None
        for look in range(_MOST_LOOKS):
            table = self.log.load()
            if table is None or cut_into(table) == self.planned.parts:
                return None
            newest = newest_exchange(table)
            if look and newest != seen:
                _check(self.project, self.planned)
            seen = newest
            there = {None, *table.snapshots}
            self.layers = {name: layer for name, layer in self.layers.items() if layer.snapshot in there}
            try:
                verdict = self._exchanged(table, attempt, began)
            except FirnlineError as error:
                if error.code != "GENERATION_CHANGED":
                    raise
                verdict = Verdict.MOVED  # what was staged is gone: most likely with somebody else's rescale
            if verdict is Verdict.FREE:
                return self._told(began)
            if verdict is Verdict.FENCED:
                raise FirnlineError("GENERATION_CHANGED", f"{self._name} is of another generation than when its rescale began")
        raise FirnlineError("COMMIT_CONTENDED", f"{self._name} changed {_MOST_LOOKS} times while it was rescaled")

    def _exchanged(self, table: Metadata, attempt: str, began: float) -> Verdict:
        """One try at the log as it was looked at."""
        entries = list(entries_of(table))
        newest, description = newest_exchange(table), head_of(table).description
        since = None if newest is None else newest.id
        names = {entry.attempt: self._staged_as(entry, since) for entry in entries}
        self._stage(table, entries, names)
        sidecars = [self.log.sidecar(entry) for entry in entries]
        for sidecar in sidecars:
            self._compare(sidecar, names[sidecar.attempt])
        for sidecar in sidecars:
            layer = self.layers[names[sidecar.attempt]]
            self.recut.add(self.log.recut(attempt, self._recut(sidecar, layer), layer.snapshot))
        out = frozenset(file.path for file in self.log.held(table))
        staged = [self.layers[name].snapshot for name in names.values()]
        seconds = time.monotonic() - began
        gone, recut = tuple(sorted(out)), tuple(sorted(self.recut))
        note = Repair(self.planned.collection, attempt, (), gone, (), 0, 0, seconds, parts=self.planned.parts, recut=recut)
        change = Exchange(
            out=out,
            staged=tuple(each for each in staged if each is not None),
            properties={PARTS: str(self.planned.parts)},
        )
        return self.log.exchange(description.generation, since, note, change, description.upper)

    def _recut(self, sidecar: Sidecar, layer: _Layer) -> Sidecar:
        """A sidecar with the new cells. Where there was one part, inputs were read part by part whatever they are cut by."""
        was_one = self.planned.before == 1
        inputs = {name: replace(each, parts="all") if was_one else each for name, each in sidecar.inputs.items()}
        return replace(sidecar, digests=layer.digests, inputs=inputs, parts=self.planned.parts)

    def _staged_as(self, entry: Entry, since: int | None) -> str:
        """What a layer is staged under: the same for whoever does the same to the same log."""
        facts = [self.log.collection, entry.description.generation, entry.attempt, self.planned.parts, since]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()

    def _stage(self, table: Metadata, entries: Sequence[Entry], names: Mapping[str, str]) -> None:
        """Stage the layers that are not staged yet, small ones together."""
        from pyspark.errors import PySparkException

        from firnline.runtime.evaluation import diagnosed

        missing = [entry for entry in reversed(entries) if names[entry.attempt] not in self.layers]
        self.cutting(len(entries) - len(missing), len(entries))
        try:
            for group in _together(missing):
                self._stage_group(table, group, names)
                self.cutting(len(set(names.values()) & self.layers.keys()), len(entries))
        except PySparkException as error:
            code, text = diagnosed(error)
            raise FirnlineError(code, f"{self._name}: {text}") from error

    def _stage_group(self, table: Metadata, group: Sequence[Entry], names: Mapping[str, str]) -> None:
        from firnline.engine import staging
        from firnline.engine.frames import deltas, table_name
        from firnline.model.names import EPOCH

        found = {entry.attempt: staged_by(table, names[entry.attempt]) for entry in group}
        empty = [entry for entry in group if not entry.rows]
        self.layers.update({names[entry.attempt]: _Layer(None, {}) for entry in empty})
        staged = [entry for entry in group if entry.rows and found[entry.attempt]]
        for entry in staged:
            self._look(table, names[entry.attempt])
            self.kept += 1
        rest = [entry for entry in group if entry.rows and not found[entry.attempt]]
        if not rest:
            return
        assert table.current is not None, "a log with layers has a head"
        name = table_name(self.log.pipeline, self.log.collection)
        lower, upper = rest[0].lower, rest[-1].description.upper
        rows = deltas(self.session(), name, table.current, upper).where(f"{EPOCH} >= {lower}")
        columns = staging.columns_of(rows.schema, table.columns)
        rows = staging.recut(rows, columns, cut_by(table), self.planned.parts)
        few = staging.gathered(rows, columns) if sum(entry.rows for entry in rest) <= staging.FEW else None
        if few is not None:
            for entry in rest:
                self._stage_few(few, entry, names[entry.attempt])
            return
        for entry in rest:
            within = rows.where(f"{EPOCH} >= {entry.lower} AND {EPOCH} < {entry.description.upper}")
            staging.stage(self.session(), within, name, names[entry.attempt], entry.lower, kind=RESCALE)
            world().reach("rescale.staged")
            self._look(table, names[entry.attempt], columns)

    def _stage_few(self, few: Gathered, entry: Entry, name: str) -> None:
        """Stage a layer's share of rows that were gathered."""
        import pyarrow.compute as pc

        from firnline.model.names import EPOCH

        epochs = few.rows[EPOCH]
        mine = few.rows.filter(pc.and_(pc.greater_equal(epochs, entry.lower), pc.less(epochs, entry.description.upper)))
        self.log.stage(name, entry.lower, mine, RESCALE)
        world().reach("rescale.staged")
        digests = {cell: of for cell, of in few.digests.items() if entry.lower <= cell[0] < entry.description.upper}
        self.layers[name] = _Layer(self.log.staged(name), digests)

    def _look(self, table: Metadata, name: str, columns: Sequence[Column] = ()) -> None:
        """Take what is staged under a name, by whomever, with the digests of its rows as they stand in storage."""
        from firnline.engine import staging
        from firnline.engine.frames import table_name

        snapshot = self.log.staged(name)
        loaded = self.log.load()
        parent = None if loaded is None else loaded.snapshots[snapshot].parent
        assert parent is not None, "what is cut anew stands on something"
        rows = staging.staged_rows(self.session(), table_name(self.log.pipeline, self.log.collection), snapshot, parent)
        self.layers[name] = _Layer(snapshot, staging.digests(rows, columns or staging.columns_of(rows.schema, table.columns)))

    def _compare(self, sidecar: Sidecar, name: str) -> None:
        """Refuse rows that are not those that were published."""
        published, staged = _by_epoch(sidecar.digests), _by_epoch(self.layers[name].digests)
        wrong = sorted(epoch for epoch in published.keys() | staged.keys() if published.get(epoch) != staged.get(epoch))
        if wrong:
            schedule = self.project.graph(self.log.pipeline).schedule
            labels = ", ".join(schedule.label(epoch) for epoch in wrong)
            what = f"{self._name} at {labels}: the stored rows are not those that were published"
            self.log.discard(name)
            raise FirnlineError("RESCALE_DIFFERS", what)

    def _told(self, began: float) -> Rescaled:
        table = self.log.load()
        files = () if table is None else self.log.held(table)
        seconds = time.monotonic() - began
        return Rescaled(self.planned, len(files), sum(file.bytes for file in files), self.kept, seconds)

    @property
    def _name(self) -> str:
        return f"{self.planned.pipeline}.{self.planned.collection}"


def _together(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Neighbouring layers, oldest first, that are few rows together; a large one by itself."""
    from firnline.engine.staging import FEW

    group: list[Entry] = []
    for entry in entries:
        is_next = bool(group) and group[-1].description.upper == entry.lower
        if group and (not is_next or sum(each.rows for each in group) + entry.rows > FEW):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _by_epoch(digests: Digests) -> dict[int, Digest]:
    added: dict[int, Digest] = {}
    for (epoch, _), digest in digests.items():
        added[epoch] = added.get(epoch, Digest()) + digest
    return {epoch: digest for epoch, digest in added.items() if digest.rows}
