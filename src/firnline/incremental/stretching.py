"""A plan whose rows carry their epoch, so that the changes of many epochs, a stretch, are derived at once.

Every input gives one column more, ``_epoch``, as it is stored. What is linear hands it on. A row of an inner join is there from
the later of its two rows' epochs on. Sums that are kept are those before the stretch, and then one more after each epoch in which
a group changes (``Series``). The rules that derive a change stay as they are: over a whole stretch taken as one epoch they give
the rows that change, and each row says when.

Every other operator needs the states between the epochs, which nothing keeps: its stage is computed epoch by epoch.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from firnline.incremental.algebra import (
    ALWAYS,
    Accumulate,
    Column,
    Constant,
    Filter,
    Input,
    Join,
    Map,
    Node,
    Output,
    Series,
    Union,
    changed,
    walk,
)
from firnline.incremental.arranging import Arranged
from firnline.incremental.relation import call, column, integer
from firnline.model.names import EPOCH, EPOCH_TIME


@dataclass(frozen=True, slots=True)
class Stretched:
    """A node whose rows carry their epoch, and the id of the column that says it."""

    node: Node
    epoch: str


def apart(steps: Arranged) -> str | None:
    """Why a stage's epochs are computed one by one; None if a stretch of them can be computed at once."""
    for root in (*(step.node for step in steps.arrangements), steps.root):
        for node in walk(root):
            reason = _reason(node)
            if reason is not None:
                return f"{reason} ({node.where})" if node.where else reason
    return None


def stretched(root: Node) -> Stretched:
    """The plan with one column more, the last: the epoch of each row. Nothing in it may be a reason to stay apart."""
    found = _Stretching().of(root)
    return Stretched(found, found.columns[-1].id)


def _reason(node: Node) -> str | None:
    match node:
        case Input() if node.collection == EPOCH_TIME:
            return "it asks what time it is"
        case Join() if node.kind != "inner":
            return f"a row of the {node.kind} join hangs on all rows that it could match"
        case Input() | Constant() | Map() | Filter() | Union() | Join() | Accumulate():
            return None
    return f"{_NAMES.get(type(node).__name__, 'an operator')} needs all rows of a group, as they are after each epoch"


_NAMES = {
    "Aggregate": "an aggregate that does not add up",
    "Window": "a window function",
    "SetOperation": "an intersection or a difference",
    "Top": "a limit",
    "Iterate": "a recursion",
    "GroupMap": "a Python function of groups",
    "CoGroupMap": "a Python function of groups",
    "Verbatim": "a Python function of batches, or an unpivot,",
}


@dataclass(slots=True)
class _Stretching:
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _done: dict[int, Node] = field(default_factory=dict)

    def of(self, node: Node) -> Node:
        """The node with the epoch as its last column, made once."""
        if id(node) not in self._done:
            self._done[id(node)] = self._made(node)
        return self._done[id(node)]

    def _made(self, node: Node) -> Node:
        match node:
            case Input():
                return changed(node, columns=(*node.columns, self._column()))
            case Constant():
                outputs = (*_same(node), Output((self._column(),), integer(ALWAYS)))
                return Map(_columns(outputs), node.where, node, outputs)
            case Map():
                below = self.of(node.input)
                outputs = (*node.outputs, Output((self._column(),), column(below.ids[-1])))
                return changed(node, input=below, outputs=outputs, columns=_columns(outputs))
            case Filter():
                below = self.of(node.input)
                return changed(node, input=below, columns=(*node.columns, below.columns[-1]))
            case Union():
                left, right = self.of(node.left), self.of(node.right)
                return changed(node, left=left, right=right, columns=(*node.columns, left.columns[-1]))
            case Join():
                left, right = self.of(node.left), self.of(node.right)
                epochs = (left.columns[-1], right.columns[-1])
                both = changed(node, left=left, right=right, columns=(*node.columns, *epochs))
                later = call("greatest", *(column(each.id) for each in epochs))
                outputs = (*_same(node), Output((self._column(),), later))
                return Map(_columns(outputs), node.where, both, outputs)
        assert isinstance(node, Accumulate), "whoever stretches a plan has asked for reasons not to"
        below = self.of(node.input)
        columns = (*node.columns, below.columns[-1])
        return Series(columns, node.where, below, node.keys, node.sums, node.count, node.arrangement, below.ids[-1])

    def _column(self) -> Column:
        return Column(f"{EPOCH}{next(self._numbers)}", EPOCH)


def _same(node: Node) -> tuple[Output, ...]:
    return tuple(Output((each,), column(each.id)) for each in node.columns)


def _columns(outputs: tuple[Output, ...]) -> tuple[Column, ...]:
    return tuple(each for output in outputs for each in output.columns)
