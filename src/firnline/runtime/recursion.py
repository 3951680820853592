"""How an epoch advances a recursion.

With X_0 the seed and X_i+1 = step(X_i), the arrangement of a recursion keeps the differences X_i - X_i-1, each with its i. So
every X_i of the epoch before can be had, and the change of X_i+1 follows from the change of X_i by the rules for the step's plan,
also when rows are removed. The result is the sum of all differences. It ends when an iteration changes nothing, before and after
the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.connect.proto import Relation
from pyspark.sql.connect.session import SparkSession

from firnline.engine.frames import frame_of, relation_of
from firnline.engine.sharing import shared
from firnline.errors import FirnlineError
from firnline.incremental.algebra import ITERATION, Iterate
from firnline.incremental.derivation import Derivation, Leaves, Rows
from firnline.incremental.looping import LoopLeaves
from firnline.incremental.relation import (
    alias,
    call,
    column,
    consolidated,
    filtered,
    grouped,
    integer,
    named,
    named_as,
    negated,
    project,
    small_integer,
    union,
)
from firnline.model.names import DIFF, EPOCH


@dataclass
class Recursion:
    """One epoch of one recursion.

    Args:
        session: Where iterations are computed, one after the other.
        node: The recursion.
        derivation: A derivation over given leaves.
        leaves: The leaves of the stage.
        prefix: Begins the names of what Spark keeps meanwhile.
    """

    session: SparkSession
    node: Iterate
    derivation: Callable[[Leaves, str], Derivation]
    leaves: Leaves
    prefix: str
    _stack: ExitStack = field(default_factory=ExitStack)
    _frames: list[DataFrame] = field(default_factory=list)  # Spark lets go of rows when nobody holds their DataFrame
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def __enter__(self) -> Recursion:
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()
        self._frames.clear()

    def whole(self) -> Relation:
        """All differences, from scratch: rows under the names of the step's input, with their iteration."""
        state, _ = self._computed(lambda derivation: derivation.state(self.node.seed, "new"), self.leaves, self.node.seed.ids)
        differences = [(0, state)]
        for number in range(1, self.node.most + 1):
            step = self._leaves(None, state)
            after, _ = self._computed(lambda derivation: derivation.state(self.node.step, "new"), step, self.node.step.ids)
            change, count = self._kept(consolidated(union(after, negated(state, self._names)), self._names))
            if count == 0:
                return self._tagged(differences)
            differences.append((number, change))
            state = after
        raise self._endless()

    def change(self, before: Callable[[int], Rows], last: int) -> Relation | None:
        """What the epoch changes in the differences; None if nothing.

        Args:
            before: The rows of an iteration before the epoch, under the names of the step's input.
            last: The last iteration with a difference before the epoch.
        """
        moved, count = self._computed(lambda derivation: derivation.delta(self.node.seed), self.leaves, self.node.seed.ids)
        differences = [(0, moved)] if count else []
        for number in range(1, self.node.most + 1):
            step = self._leaves(before(number - 1), moved)
            after, _ = self._computed(lambda derivation: derivation.delta(self.node.step), step, self.node.step.ids)
            change, count = self._kept(consolidated(union(after, negated(moved, self._names)), self._names))
            if count:
                differences.append((number, change))
            elif number > last:
                return self._tagged(differences) if differences else None
            moved = after
        raise self._endless()

    @property
    def _names(self) -> list[str]:
        return [f"v{number}" for number in range(len(self.node.columns))]

    def _leaves(self, old: Rows | None, change: Relation) -> Leaves:
        return LoopLeaves(self.leaves, self.node.variable, old, Rows(change))

    def _computed(self, ask: Callable[[Derivation], Rows | None], leaves: Leaves, ids: list[str]) -> tuple[Relation, int]:
        """Rows of a node, weighted and consolidated, kept by Spark while the recursion runs; and how many."""
        derivation = self.derivation(leaves, f"{self.prefix}_{next(self._numbers)}")
        rows = ask(derivation)
        if rows is None:
            return self._kept(self._none())
        self._stack.enter_context(shared(self.session, derivation.shared))
        return self._kept(consolidated(named_as(rows.relation, [*ids, DIFF], [*self._names, DIFF]), self._names))

    def _kept(self, relation: Relation) -> tuple[Relation, int]:
        """Rows as they are, without the plan that made them: a plan of plans of plans would grow beyond all bounds."""
        frame = frame_of(self.session, relation).localCheckpoint()
        self._frames.append(frame)
        return relation_of(frame), frame.count()

    def _none(self) -> Relation:
        """No rows, of the right types."""
        rows = self.derivation(self.leaves, "").state(self.node.seed, "new").relation
        nothing = call("isNull", column(DIFF))
        return filtered(named_as(rows, [*self.node.seed.ids, DIFF], [*self._names, DIFF]), nothing)

    def _tagged(self, differences: list[tuple[int, Relation]]) -> Relation:
        names = [*map(column, self._names)]
        return union(
            *(project(rows, [*names, alias(small_integer(number), ITERATION), column(DIFF)]) for number, rows in differences)
        )

    def _endless(self) -> FirnlineError:
        return FirnlineError("NOT_CONVERGED", f"iterate() has no fixpoint after {self.node.most} iterations")


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of a recursion before an epoch, from its log."""

    session: SparkSession
    table: str
    snapshot: int | None
    upto: int
    columns: list[str]

    def before(self, iteration: int) -> Rows:
        """The weighted rows of an iteration, under the names of the step's input."""
        upto = call("<=", column(ITERATION), small_integer(iteration))
        names = [f"v{number}" for number in range(len(self.columns))]
        return Rows(named_as(filtered(self._rows(), upto), [*self.columns, DIFF], [*names, DIFF]))

    def last(self) -> int:
        """The last iteration that ever had a difference."""
        most = frame_of(self.session, grouped(self._rows(), [], [alias(call("max", column(ITERATION)), ITERATION)]))
        return int(most.collect()[0][0] or 0)

    def _rows(self) -> Relation:
        rows = named(self.table, {"versionAsOf": str(self.snapshot)})
        return filtered(rows, call("<", column(EPOCH), integer(self.upto)))
