"""One step of a recursion as a change: its own input is a collection whose state and change are those of the iteration before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firnline.incremental.derivation import Leaves, Moment, Rows
from firnline.incremental.relation import column, project, union
from firnline.model.names import DIFF


@dataclass(frozen=True, slots=True)
class LoopLeaves:
    """The leaves of a step: those of the stage, and the step's own input.

    Args:
        leaves: All others.
        variable: The name of the step's input.
        old: Its rows before the epoch; None if there were none.
        change: What the epoch changes in it; None if nothing.
    """

    leaves: Leaves
    variable: str
    old: Rows | None
    change: Rows | None

    def delta(self, collection: str, names: Sequence[str]) -> Rows | None:
        """What the epoch changes."""
        if collection != self.variable:
            return self.leaves.delta(collection, names)
        return self.change and _only(self.change, names)

    def state(self, collection: str, moment: Moment, names: Sequence[str]) -> Rows:
        """The rows before or after the epoch."""
        if collection != self.variable:
            return self.leaves.state(collection, moment, names)
        found = [each for each in (self.old, self.change if moment == "new" else None) if each]
        assert found
        if len(found) == 1:
            return _only(found[0], names)
        return Rows(union(*(_only(each, names).relation for each in found)))


def _only(rows: Rows, names: Sequence[str]) -> Rows:
    return rows.but(project(rows.relation, map(column, (*names, DIFF))))
