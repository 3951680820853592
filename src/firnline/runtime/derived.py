"""A stage's epoch from its plan: arrangements first, then the stage's own rows, each from what changed where that is possible.

Possible means: the log was made by today's plan, and so was every arrangement, up to where the epoch begins. Otherwise (the first
epoch, a changed plan, one without rules) the rows are computed from the whole state, and the difference to the log is kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Relation
from pyspark.sql.types import StructType

from firnline.engine import staging
from firnline.engine.frames import relation_of
from firnline.engine.leaves import PARTIAL, Leaf, LogLeaves, WithPartial
from firnline.engine.part_by_part import part_by_part
from firnline.engine.sharing import shared
from firnline.engine.staging import FEW, NOTHING, Gathered
from firnline.errors import FirnlineError
from firnline.incremental import algebra
from firnline.incremental.algebra import ITERATION, Accumulate, Iterate, Node, walk
from firnline.incremental.arranging import Arrangement
from firnline.incremental.chunking import summed_again
from firnline.incremental.colocating import Placed, colocated
from firnline.incremental.derivation import Derivation, Leaves
from firnline.incremental.full import difference
from firnline.incremental.placing import Stored, same_parts
from firnline.incremental.relation import (
    alias,
    column,
    consolidated,
    integer,
    named_as,
    negated,
    project,
    union,
)
from firnline.incremental.rules import RULES
from firnline.incremental.rules.accumulate import summed
from firnline.incremental.stretching import stretched
from firnline.incremental.uniqueness import is_unique
from firnline.model.description import Verdict
from firnline.model.fingerprint import Fingerprint
from firnline.model.names import DIFF, EPOCH, floating, is_reserved
from firnline.runtime.attempt import Staged
from firnline.runtime.evaluation import in_order
from firnline.runtime.finding import Finding
from firnline.runtime.recursion import Iterations, Recursion
from firnline.runtime.renaming import inputs_of
from firnline.runtime.stage_plan import StagePlan
from firnline.runtime.waves import Cut, cut_of
from firnline.runtime.writing import Destination, Placement, Rebuilding
from firnline.tables.log import Log, entries_of
from firnline.tables.reusing import rewound_since
from firnline.tables.sidecar import Input

if TYPE_CHECKING:
    from firnline.runtime.stage_run import StageRun

_MOST_BROADCAST = 1_000_000
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Making:
    """What is made: a node's rows in an epoch, into its log.

    Args:
        node: The node.
        leaves: The logs that it reads.
        destination: Where its rows go.
        ids: The ids of its columns, by the names they are stored under.
        is_continued: Whether the rows come from what changed, or else from all there is.
        suffix: What tells it from others of the same attempt.
        is_summed_up: Whether only the sums over what is read are wanted, not what they change.
    """

    node: Node
    leaves: Mapping[str, Leaf]
    destination: Destination
    ids: Mapping[str, str]
    is_continued: bool
    suffix: str
    is_summed_up: bool = False


@dataclass(frozen=True, slots=True)
class Remade:
    """All rows of a log, made anew, and from what."""

    log: str
    staged: Staged
    inputs: Mapping[str, Input]
    fingerprint: Fingerprint
    is_exact: bool
    """Whether the same rows come out every time, also of sums of floating numbers."""


@dataclass(frozen=True)
class Derived:
    """One epoch of a stage that has a plan."""

    run: StageRun
    plan: StagePlan
    destination: Destination
    inputs: Mapping[str, Input]
    parts: tuple[int, ...] | None = None
    """The only parts that are wanted, of what is made anew; None for all."""
    correction: str | None = None
    """The gap or rewind by which rows left what is read, or came back to it, so that its change does not tell what is new."""

    def staged(self, generation: int) -> Staged | Verdict:
        """The stage's rows, staged; nothing is staged if nothing changes."""
        stale = [step for step in self.arrangements if self._is_stale(step)]
        made = replace(self, correction=self.correction or "rewind") if stale else self
        if any(self._reaches(step) for step in stale):
            return made._whole(generation)
        for step in self.arrangements:
            if not self._reaches(step):
                made._advance(step)
        return made._staged(generation)

    def replayed(self, generation: int) -> Staged | Verdict:
        """The rows of an epoch that the log holds, staged again; arrangements are read as they are."""
        log = self.destination.log.collection
        if log == self.run.collection.name:
            uppers = [{entry.description.upper for entry in self._log_of(step).entries()} for step in self.arrangements]
            return self._staged(generation) if all(self.run.epoch.upper in each for each in uppers) else self._whole(generation)
        step = next((step for step in self.arrangements if step.name == log), None)
        if step is None:
            raise FirnlineError("REPLAY_DIFFERS", f"the plan of {self.run.collection.name!r} does not keep {log} any more")
        return self._arranged(step, self.destination, generation)

    def rebuilt(self, take: Callable[[Remade], None], *, is_written: bool) -> tuple[str, ...]:
        """All rows anew, from the state of the inputs at the epoch's end: first of what the stage keeps, then its own.

        Each log is handed over before the next one, which may read it, is computed. Returns the names of what the stage keeps.
        """

        def remade(log: str, staged: Staged | Verdict, inputs: Mapping[str, Input]) -> Remade:
            assert isinstance(staged, Staged), "what is staged anew races nobody"
            return Remade(log, staged, inputs, self.fingerprint, self.plan.steps is not None)

        for step in self.arrangements:
            destination = Rebuilding.beside(self.of_arrangement(step), is_written=is_written)
            staged = self._arranged(step, destination, destination.head.description.generation)
            take(remade(step.name, staged, self.inputs_of(step, destination)))
        staged = self._staged(self.destination.head.description.generation)
        take(remade(self.run.collection.name, staged, self.lineage()))
        return tuple(step.name for step in self.arrangements)

    def is_ahead(self) -> bool:
        """Whether an attempt before this one has already brought something that the stage keeps through the epoch."""
        return any(self._reaches(step) for step in self.arrangements)

    @property
    def arrangements(self) -> tuple[Arrangement, ...]:
        """What the stage keeps, in the order in which it is computed."""
        return () if self.plan.steps is None else self.plan.steps.arrangements

    def _log_of(self, step: Arrangement) -> Log:
        return self.run.project.log(self.run.declared.graph.name, step.name)

    def _whole(self, generation: int) -> Staged | Verdict:
        """From the whole state, as the user wrote it."""
        names = self.destination.names
        delta = self._difference(relation_of(in_order(self.plan.frame, names)), self.destination, names)
        return self.destination.stage(delta, self.run.epoch, generation, self.run.attempt)

    def _staged(self, generation: int) -> Staged | Verdict:
        if self.plan.steps is None:
            return self._whole(generation)
        is_continued = self.is_continued()
        if not is_continued and self.destination.head.snapshot is not None:
            why = "rows left what it reads, or came back" if self.correction else "its plan or what it keeps is new"
            _logger.info("%s is computed in full once: %s", self.run.collection.name, why)
        given = (self.plan.steps.root, self.destination, self._ids(None), generation, is_continued)
        return self._computed(*given, is_proven=self._is_proven())

    def _is_proven(self) -> bool:
        """Whether the plan shows that the stage's keys identify its rows."""
        assert self.plan.steps is not None
        ids = self._ids(None)
        return is_unique(self.plan.steps.root, [ids[key] for key in self.run.collection.keys], self._known_keys())

    def stretch(self, step: Arrangement | None) -> Gathered | None:
        """The rows of an arrangement, or the stage's own, each with its epoch, of a run over a whole stretch; None if many."""
        assert self.plan.steps is not None
        if step is None:
            destination, found, is_proven, suffix = self.destination, stretched(self.plan.steps.root), self._is_proven(), ""
        else:
            destination, found, is_proven, suffix = self.of_arrangement(step), stretched(step.node), True, step.name[-4:]
        derivation = Derivation(self._logs(self._leaves(found.node)), RULES, prefix=self._prefix(suffix))
        change = derivation.delta(found.node)
        if change is None:
            return NOTHING
        names, ids = destination.names, self._ids(step)
        rows = named_as(change.relation, [*(ids[name] for name in names), found.epoch, DIFF], [*names, EPOCH, DIFF])
        with shared(self.run.session, derivation.shared):
            return destination.gathered(consolidated(rows, [*names, EPOCH]), self.run.epoch, is_proven=is_proven)

    def lineage(self) -> Mapping[str, Input]:
        """The inputs, and which of their parts go into which of the stage's."""
        if self.plan.steps is None:
            return self._with_parts(None, {}, self.destination)
        return self._with_parts(self.plan.steps.root, self._ids(None), self.destination)

    def _ids(self, step: Arrangement | None) -> dict[str, str]:
        """The ids of an arrangement's columns, or of the stage's own, by their names."""
        if step is not None:
            return {column.name: column.id for column in step.columns}
        return dict(zip(self.plan.frame.columns, self.plan.ids, strict=True))

    def _with_parts(self, node: Node | None, ids: Mapping[str, str], destination: Destination) -> Mapping[str, Input]:
        """The inputs, and which of their parts go into which of a log that keeps a node's rows; ``ids`` are of its columns."""
        graph = self.run.declared.graph
        same = {name for name in self.inputs if destination.placement.parts == graph.collection(name).parts == 1}
        if node is not None and destination.placement.parts > 1:
            assert self.plan.steps is not None
            ours = self._log(destination.log.collection)
            logs = {name: log for name in self.inputs if (log := self._log(name))}
            if ours is not None:
                columns = [ids[name] for name, _ in ours.placed.columns]
                same = same_parts(node, columns, ours.placed, logs, self.plan.steps.arrangements)
        return {name: replace(of, parts="same" if name in same else "all") for name, of in self.inputs.items()}

    def _keys_of_logs(self) -> dict[str, tuple[str, ...]]:
        """The columns by which the rows of every log that the plan reads are told apart, as they are stored."""
        kept = {step.name: _keys(step) for step in self.arrangements}
        return {**{each.name: each.keys for each in self.run.declared.graph.collections}, **kept}

    def _known_keys(self) -> dict[str, tuple[str, ...]]:
        """What identifies the rows of every collection that the plan reads."""
        unkeyed = {step.name for step in self.arrangements if not isinstance(step.node, Accumulate)}
        return {name: keys for name, keys in self._keys_of_logs().items() if name not in unkeyed}

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the stage, with that of its plan."""
        return self.run.made_by(self.plan)

    def is_continued(self) -> bool:
        """Whether the rows come from what changed: the plan made the log, and what it keeps reaches to the epoch."""
        made_by = self.destination.head.fingerprint
        are_changes = [_has_boundary(self._log_of(step), self.run.epoch.lower) for step in self.arrangements]
        is_same = made_by is not None and self.fingerprint.is_same(made_by)
        is_stale = any(self._is_stale(step) for step in self.arrangements)
        is_whole = all(are_changes) and self.correction is None and not is_stale
        return is_whole and is_same and self.run.is_under_its_names()

    def _reaches(self, step: Arrangement) -> bool:
        """Whether an arrangement holds the epoch."""
        head = self._log_of(step).head()
        return head is not None and head.description.upper >= self.run.epoch.upper

    def _is_stale(self, step: Arrangement) -> bool:
        """Whether an arrangement was made from epochs that rewinds, or their undos, took out of an input without it.

        They take it along if it is there. It is not if it came later, with other code or while they were decided.
        """
        if not any(of.generation for of in self.inputs.values()):
            return False
        log, graph = self._log_of(step), self.run.declared.graph
        newest = next(log.entries(), None)
        read = {} if newest is None else inputs_of(self.run.project, graph, log.sidecar(newest))
        for name, of in self.inputs.items():
            if newest is not None and name in read and read[name].generation != of.generation:
                since = rewound_since(self.run.project.log(graph.name, name), read[name].generation)
                if since is None or since < newest.description.upper:
                    return True
        return False

    def of_arrangement(self, step: Arrangement) -> Destination:
        """The log of an arrangement, ready for the epoch."""
        columns = _columns(", ".join(f"{name} {kind}" for name, kind in self.plan.schemas[step.name]))
        keys = _keys(step)
        return self.run.destination(step.name, columns, Placement(keys, keys, self.run.collection.parts if keys else 1))

    def _advance(self, step: Arrangement) -> None:
        """Advance an arrangement through the epoch."""
        began = time.monotonic()
        destination = self.of_arrangement(step)
        self.check_inputs()  # after the head: where that is rewound, they were before it
        generation = destination.head.description.generation
        staged = self._arranged(step, destination, generation)
        if isinstance(staged, Staged):
            seconds, inputs = time.monotonic() - began, self.inputs_of(step, destination)
            verdict = destination.publish(staged, self.run.epoch, generation, self.fingerprint, inputs, seconds)
        else:
            verdict = staged
        if verdict not in (Verdict.FREE, Verdict.TAKEN):
            raise FirnlineError("GENERATION_CHANGED", f"{step.name!r} moved while its epoch was computed")

    def check_inputs(self) -> None:
        """Refuse to go on with inputs that were rewound since the run began."""
        graph = self.run.declared.graph
        for name, of in self.inputs.items():
            head = self.run.project.log(graph.name, name).head()
            if head is not None and head.description.generation != of.generation:
                raise FirnlineError("GENERATION_CHANGED", f"{name!r} moved while it was read")

    def inputs_of(self, step: Arrangement, destination: Destination) -> Mapping[str, Input]:
        """The inputs, and which of their parts go into which of an arrangement's."""
        return self._with_parts(step.node, self._ids(step), destination)

    def _arranged(self, step: Arrangement, destination: Destination, generation: int) -> Staged | Verdict:
        """An arrangement's rows of the epoch, staged in its log."""
        is_continued = destination.head.snapshot is not None and destination.head.description.upper == self.run.epoch.lower
        is_continued = is_continued and self.correction is None
        suffix = step.name[-4:]
        if isinstance(step.node, Iterate):
            return self._recursed(step.node, destination, generation, is_continued, suffix)
        return self._computed(step.node, destination, self._ids(step), generation, is_continued, suffix)

    def _computed(
        self,
        node: Node,
        destination: Destination,
        ids: Mapping[str, str],
        generation: int,
        is_continued: bool,
        suffix: str = "",
        *,
        is_proven: bool = False,
    ) -> Staged | Verdict:
        """The rows of a node, from what changed or from all there is, staged in its log, in waves if it is much work."""
        leaves = self._leaves(node)
        making = _Making(node, leaves, destination, ids, is_continued, suffix)
        if self.parts is None:
            alike, graph = partial(self._alike, making), self.run.declared.graph
            parts, lower = destination.placement.parts, self.run.epoch.lower
            cut = cut_of(node, leaves, alike, parts, destination.log, graph, lower, is_continued=is_continued)
            # What a chunk has to do with the rows that are there already, no chunk knows.
            if cut is not None and (is_continued or cut.by != "chunks" or destination.head.snapshot is None):
                return self._in_waves(cut, making, generation, is_proven=is_proven)
        with self._rows(making) as relation:
            attempt = self.run.attempt + suffix
            if relation is None:
                return Staged(None, attempt, {})
            is_next = is_continued and _changes(leaves) <= FEW and destination.had_few()
            is_few = is_next or sum(leaf.size for leaf in leaves.values()) <= FEW
            return destination.stage(relation, self.run.epoch, generation, attempt, is_proven=is_proven, is_few=is_few)

    @contextmanager
    def _rows(self, making: _Making, sums: Relation | None = None) -> Iterator[Relation | None]:
        """The plan of a node's rows, ready to run inside; None if nothing changes. ``sums`` is what waves summed up."""
        destination, node, names = making.destination, making.node, making.destination.names
        leaves = self._narrowed(making)
        is_small = making.is_continued and _changes(leaves) <= _MOST_BROADCAST
        placed = {name: log.placed for name, log in self._cut(leaves).items()}
        node, is_colocated = (node, False) if is_small else colocated(node, placed)
        logs = self._logs(leaves) if sums is None else WithPartial(self._logs(leaves), sums)
        finding = Finding(self.run.project, self.run.declared.graph.name, self.run.epoch, leaves if is_small else {})
        derivation = Derivation(logs, RULES, is_small=is_small, prefix=self._prefix(making.suffix), at_hand=finding.at_hand())
        ids = [making.ids[name] for name in names]
        relation = None
        if making.is_summed_up:
            assert isinstance(node, Accumulate)
            below = derivation.delta(node.input) if making.is_continued else derivation.state(node.input, "new")
            if below is not None:
                found = project(summed(node, below), [*map(column, node.ids), alias(integer(1), DIFF)])
                relation = named_as(found, [*ids, DIFF], [*names, DIFF])
        elif making.is_continued:
            change = derivation.delta(node)
            if change is not None:
                moved = named_as(change.relation, [*ids, DIFF], [*names, DIFF])
                is_each_once = change.is_positive and destination.placement.is_keyed
                relation = moved if is_each_once else consolidated(moved, names)
        else:
            rows = derivation.unit(derivation.state(node, "new"), node.ids)
            relation = self._difference(named_as(rows.relation, ids, names), destination, names)
        find = finding.found if derivation.at_hand else None
        with (
            part_by_part(self.run.session, is_on=is_colocated),
            shared(self.run.session, derivation.shared, find) as spell,
        ):
            yield None if relation is None else spell(relation)

    def _in_waves(self, cut: Cut, making: _Making, generation: int, *, is_proven: bool) -> Staged | Verdict:
        """The rows of a node, wave by wave; those that another attempt has staged are kept."""
        epoch, destination, log = self.run.epoch, making.destination, making.destination.log
        generations = {name: of.generation for name, of in self.inputs.items()}
        made_by = [self.fingerprint.code, self.fingerprint.plan, self.correction]
        into = destination.placement.parts
        name = cut.name(log.collection, generation, epoch.lower, epoch.upper, made_by, generations, making.is_continued, into)
        attempt = self.run.attempt + making.suffix
        try:
            kept = log.waves(epoch.lower, name)
            if kept:
                _logger.info("%s: %d of %d waves kept", log.collection, len(kept), cut.count)
            for number in range(cut.count):
                if number not in kept:
                    self._wave(cut, number, making, f"{attempt}w{number}", f"{name}:{number}:{cut.count}")
            waves = log.waves(epoch.lower, name)
            if len(waves) < cut.count:
                raise FirnlineError("GENERATION_CHANGED", f"waves of {log.collection!r} are gone")
            in_order = [waves[number] for number in range(cut.count)]
            if cut.by == "parts":
                staged = destination.gather(in_order, epoch, generation, attempt, is_proven=is_proven)
            else:
                rows = staging.waves(destination.table, in_order, epoch.lower)
                with self._added_up(cut, making, rows) as relation:
                    staged = destination.stage(relation, epoch, generation, attempt, is_proven=is_proven)
        except Exception:
            staged = destination.judged(generation, epoch)
            if staged is Verdict.FREE:
                raise
        if isinstance(staged, Staged):
            return replace(staged, is_in_waves=True)
        with suppress(FirnlineError):  # somebody else published the epoch, and swept up the waves that were there then
            log.sweep(epoch.lower)
        return staged

    @contextmanager
    def _added_up(self, cut: Cut, making: _Making, rows: Relation) -> Iterator[Relation]:
        """What the rows of all chunks come to: what one undoes of another is gone, as if there had been one chunk."""
        names = making.destination.names
        if cut.by == "chunks":
            yield consolidated(project(rows, map(column, (*names, DIFF))), names)
            return
        assert isinstance(making.node, Accumulate)
        with self._rows(replace(making, node=summed_again(making.node, PARTIAL)), rows) as relation:
            assert relation is not None, "what is in waves is something"
            yield relation

    def _wave(self, cut: Cut, number: int, making: _Making, attempt: str, name: str) -> None:
        parts = cut.groups[number]
        leaves = cut.leaves(number, making.leaves, self._keys_of_logs(), is_continued=making.is_continued)
        suffix = f"{making.suffix}w{number}"
        one = replace(making, leaves=leaves, suffix=suffix, is_summed_up=cut.by == "sums")
        with replace(self, parts=parts)._rows(one) as relation:
            assert relation is not None, "what is in waves is something"
            making.destination.stage_wave(relation, self.run.epoch, attempt, name, parts)
        _logger.info("%s: wave %d of %d is staged", making.destination.log.collection, number + 1, cut.count)

    def _recursed(
        self, node: Iterate, destination: Destination, generation: int, is_continued: bool, suffix: str
    ) -> Staged | Verdict:
        """The differences between a recursion's iterations, staged in its log."""
        leaves = self._leaves(node)
        is_small = is_continued and _changes(leaves) <= _MOST_BROADCAST
        names = destination.names
        made = [*(f"v{number}" for number in range(len(names) - 1)), ITERATION]

        def derivation(given: Leaves, prefix: str) -> Derivation:
            return Derivation(given, RULES, is_small=is_small, prefix=prefix)

        with Recursion(self.run.session, node, derivation, self._logs(leaves), self._prefix(suffix)) as recursion:
            if is_continued:
                upto = self.run.epoch.lower
                stored = Iterations(self.run.session, destination.table, destination.head.snapshot, upto, names[:-1])
                change = recursion.change(stored.before, stored.last())
                if change is None:
                    return Staged(None, self.run.attempt + suffix, {})
                relation = consolidated(named_as(change, [*made, DIFF], [*names, DIFF]), names)
            else:
                whole = named_as(recursion.whole(), [*made, DIFF], [*names, DIFF])
                relation = consolidated(union(whole, negated(destination.before(self.run.epoch, self.parts), names)), names)
            return destination.stage(relation, self.run.epoch, generation, self.run.attempt + suffix)

    def _logs(self, leaves: Mapping[str, Leaf]) -> LogLeaves:
        return LogLeaves(self.run.declared.graph, self.run.epoch, leaves)

    def _prefix(self, suffix: str) -> str:
        return f"firnline_{self.run.attempt[:12]}{suffix}"

    def _difference(self, rows: Relation, destination: Destination, names: list[str]) -> Relation:
        """What leads from the log to these rows."""
        if destination.head.snapshot is None:
            return difference(rows, None, names, is_keyed=destination.placement.is_keyed)
        return difference(rows, consolidated(destination.before(self.run.epoch, self.parts), names), names)

    def _narrowed(self, making: _Making) -> Mapping[str, Leaf]:
        """The logs that a node reads; of those that are cut as its own is, the wanted parts only."""
        if self.parts is None:
            return making.leaves
        alike = {*self._alike(making), making.destination.log.collection}
        return {name: replace(leaf, parts=self.parts) if name in alike else leaf for name, leaf in making.leaves.items()}

    def _alike(self, making: _Making) -> set[str]:
        """The logs that a node reads and that are cut into parts as its own is."""
        ours = self._log(making.destination.log.collection)
        if ours is None:
            return set()
        placed = replace(ours.placed, parts=making.destination.placement.parts)
        logs = self._cut(making.leaves)
        return same_parts(making.node, [making.ids[name] for name, _ in placed.columns], placed, logs, ())

    def _leaves(self, node: Node) -> dict[str, Leaf]:
        inputs = {each.collection for each in walk(node) if isinstance(each, algebra.Input)}
        names = {name for name in inputs if not is_reserved(name)}  # neither logical time nor a recursion's own input
        if isinstance(node, Accumulate):
            names.add(node.arrangement)
        return {name: self._leaf(name) for name in names}

    def _cut(self, leaves: Mapping[str, Leaf]) -> dict[str, Stored]:
        """How the logs that a plan reads are cut into parts: as they were when it was seen through which snapshots."""
        logs = {name: log for name in leaves if (log := self._log(name))}
        return {name: replace(log, placed=replace(log.placed, parts=leaves[name].cut_into)) for name, log in logs.items()}

    def _log(self, name: str) -> Stored | None:
        """How a log is cut into parts, and the types of its columns."""
        table = self.run.project.log(self.run.declared.graph.name, name).load()
        if table is None:
            return None
        placement = Placement.of(table)
        return Stored(Placed(tuple((of, table.types[of]) for of in placement.partition_by), placement.parts), table.types)

    def _leaf(self, name: str) -> Leaf:
        assert self.plan.steps is not None
        unkeyed = {step.name for step in self.plan.steps.arrangements if not isinstance(step.node, Accumulate)}
        log = self.run.project.log(self.run.declared.graph.name, name)
        return _around(log, self.run.epoch.lower, self.run.epoch.upper, is_keyed=name not in unkeyed)


@lru_cache
def _columns(ddl: str) -> StructType:
    """Columns in DDL, which Spark reads: asked once for all epochs."""
    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def _changes(leaves: Mapping[str, Leaf]) -> int:
    return sum(leaf.changes for leaf in leaves.values())


def _keys(step: Arrangement) -> tuple[str, ...]:
    if not isinstance(step.node, Accumulate):
        return ()
    names = {column.id: column.name for column in step.columns}
    return tuple(names[key] for key in step.node.keys)


def _has_boundary(log: Log, point: int) -> bool:
    """Whether some layer of the log ends exactly there, so that the rows after it are changes."""
    return any(entry.description.upper == point for entry in log.entries())


def _around(log: Log, lower: int, upper: int, *, is_keyed: bool) -> Leaf:
    """A log around an epoch, as its snapshots tell: the oldest ones that reach far enough and whose files are there."""
    old: tuple[int | None, int] = (None, lower)
    new: tuple[int | None, int] = (None, upper)
    changes = weight = 0
    size = since = 0
    is_insert_only = True
    table = log.load()
    for entry in () if table is None else entries_of(table):  # newest first
        ends, since = entry.description.upper, max(since, entry.description.since)
        if ends >= upper:
            new = entry.through
        if ends > lower and entry.lower < upper:
            changes, weight = changes + entry.rows, weight + entry.weight
        if ends >= lower:
            old = entry.through
        if entry.lower < upper:
            size += entry.weight
            is_insert_only = is_insert_only and entry.rows == entry.weight
    held = floating(table.types) if table else frozenset[str]()
    into = Placement.of(table).parts if table else 1
    return Leaf(old[0], new[0], old[1], new[1], changes, is_insert_only, changes == weight, is_keyed, size, since, held, into)
