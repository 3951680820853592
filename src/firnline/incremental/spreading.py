"""A subquery for all values that it may meet outside, at once.

With D the distinct values of the columns outside that the subquery refers to: ``spread`` gives, for every d in D, the rows of the
subquery at d beside d. Every operator is done for each d by itself: groups, parts and orders get d as a further key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression

from firnline.incremental import algebra, functions
from firnline.incremental.algebra import (
    Aggregate,
    Column,
    Filter,
    Join,
    Map,
    Node,
    Output,
    SetOperation,
    Top,
    Union,
    Window,
    free,
)
from firnline.incremental.expressions import function, plain, references, rewritten
from firnline.incremental.joining import joined
from firnline.incremental.ordering import ordered
from firnline.incremental.relation import all_of, call, column, integer, null, small_integer
from firnline.incremental.scope import Bound, plainly, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

Values = Mapping[str, str]
"""The columns of D by the columns outside."""


def spread(binder: Binder, source: Bound, node: Node) -> tuple[Node, Values]:
    """The rows of a subquery beside the values outside, which are columns too."""
    return _Spread(binder, source, sorted(free(node))).of(node)


def of_nothing(node: Node, value: str) -> Expression | None:
    """What a column of a global aggregate is without any row; None for null."""
    if isinstance(node, Map):
        expression = next(each.expression for each in node.outputs if each.columns[0].id == value)
        below = {of: of_nothing(node.input, of) for of in references(expression)}
        if all(each is None for each in below.values()) and plain(expression):
            return None
        return rewritten(expression, lambda each: below.get(plain(each) or "", each) or null() if plain(each) in below else each)
    if not isinstance(node, Aggregate):
        return None
    expression = next(each.expression for each in node.aggregates if each.columns[0].id == value)

    def settled(each: Expression) -> Expression:
        if function(each) in functions.ZERO_OF_NOTHING:
            return integer(0)
        if function(each) in functions.EMPTY_OF_NOTHING:
            return call("array")
        return null() if function(each) in functions.AGGREGATES else each

    found = rewritten(expression, settled)
    return None if found == null() else found


class _Spread:
    def __init__(self, binder: Binder, source: Bound, outside: list[str]) -> None:
        self._binder, self._where = binder, binder.where
        names = {of.id: of.name for of in source.node.columns}
        self._outside = {of: names[of] for of in outside}
        columns = tuple(Column(of, name) for of, name in self._outside.items())
        self._values = Aggregate(columns, self._where, source.node, tuple(outside), ())

    def of(self, node: Node) -> tuple[Node, Values]:
        if not free(node):
            values, ids = self._fresh()
            return self._joined(node, values, "inner", []), ids
        match node:
            case Filter():
                below, ids = self.of(node.input)
                return ordered(self._binder, plainly(below), _at(node.condition, ids)).node, ids
            case Map():
                below, ids = self.of(node.input)
                return self._mapped(below, [*_outputs_at(node.outputs, ids), *_kept(below, ids.values())]), ids
            case Window():
                return self._window(node)
            case Aggregate():
                return self._aggregate(node)
            case Top():
                return self._top(node)
            case Union() | SetOperation():
                return self._both(node)
            case Join():
                return self._join(node)
        raise self._binder.refusal("UNSUPPORTED_EXPRESSION", "a subquery that refers to rows outside below such an operator")

    def _fresh(self) -> tuple[Node, Values]:
        """D under new ids."""
        made = {of: self._binder.new(name) for of, name in self._outside.items()}
        outputs = tuple(Output((to,), column(of)) for of, to in made.items())
        return Map(tuple(made.values()), self._where, self._values, outputs), {of: to.id for of, to in made.items()}

    def _mapped(self, below: Node, outputs: list[Output]) -> Node:
        return Map(tuple(of for each in outputs for of in each.columns), self._where, below, tuple(outputs))

    def _joined(self, left: Node, right: Node, kind: algebra.JoinKind, conditions: list[Expression]) -> Node:
        return joined(self._binder, plainly(left), plainly(right), kind, conditions).node

    def _window(self, node: Window) -> tuple[Node, Values]:
        below, ids = self.of(node.input)

        def apart(found: Expression) -> Expression:
            if found.WhichOneof("expr_type") == "window":
                found.window.partition_spec.extend(map(column, ids.values()))
            return found

        outputs = [Output(each.columns, rewritten(each.expression, apart)) for each in _outputs_at(node.outputs, ids)]
        outputs += _kept(below, ids.values())
        columns = tuple(of for each in outputs for of in each.columns)
        return Window(columns, self._where, below, (*node.partition, *ids.values()), tuple(outputs)), ids

    def _aggregate(self, node: Aggregate) -> tuple[Node, Values]:
        below, ids = self.of(node.input)
        known = {of.id: of for of in below.columns}
        values = tuple(known[of] for of in ids.values())
        outputs = _outputs_at(node.aggregates, ids)
        if node.keys:
            return Aggregate((*node.columns, *values), self._where, below, (*node.keys, *ids.values()), tuple(outputs)), ids
        return self._one_row(node, below, values, outputs, ids)

    def _one_row(
        self, node: Aggregate, below: Node, values: tuple[Column, ...], outputs: list[Output], ids: Values
    ) -> tuple[Node, Values]:
        """One row for each d, also of nothing."""
        there = self._binder.new("there")
        made = {each.columns[0].id: self._binder.new(each.columns[0].name) for each in outputs}
        counted = Output((there,), call("count", integer(1)))
        inner = (*(Output((made[each.columns[0].id],), each.expression) for each in outputs), counted)
        columns = (*(of for each in inner for of in each.columns), *values)
        groups = Aggregate(columns, self._where, below, tuple(ids.values()), inner)
        all_values, every = self._fresh()
        equal = [call("<=>", reference(every[of]), reference(ids[of])) for of in ids]
        beside = self._joined(all_values, groups, "left", equal)
        found = []
        for each in outputs:
            nothing = of_nothing(node, each.columns[0].id)
            answer = reference(made[each.columns[0].id].id)
            if nothing is not None:
                answer = call("when", call("isNotNull", reference(there.id)), answer, _at(nothing, every))
            found.append(Output(each.columns, answer))
        return self._mapped(beside, [*found, *_kept(beside, every.values())]), every

    def _top(self, node: Top) -> tuple[Node, Values]:
        below, ids = self.of(node.input)
        rank = Expression()
        rank.window.window_function.CopyFrom(call("row_number"))
        rank.window.partition_spec.extend(map(column, ids.values()))
        rank.window.order_spec.extend(_at(each, ids).sort_order for each in node.order)
        number = self._binder.new("rank")
        outputs = (*_kept(below, below.ids), Output((number,), rank))
        ranked = Window((*below.columns, number), self._where, below, tuple(ids.values()), outputs)
        bounds = [call(">", column(number.id), small_integer(node.offset))]
        if node.limit is not None:
            bounds.append(call("<=", column(number.id), small_integer(node.offset + node.limit)))
        condition = all_of(bounds)
        assert condition is not None
        return self._mapped(Filter(ranked.columns, self._where, ranked, condition), _kept(below, below.ids)), ids

    def _both(self, node: Union | SetOperation) -> tuple[Node, Values]:
        (left, ids), (right, others) = self.of(node.left), self.of(node.right)
        left = self._mapped(left, _kept(left, [*node.left.ids, *ids.values()]))
        right = self._mapped(right, _kept(right, [*node.right.ids, *others.values()]))
        if isinstance(node, Union):
            return Union(left.columns, self._where, left, right), ids
        made = {of: self._binder.new(name) for of, name in self._outside.items()}
        found = SetOperation((*node.columns, *made.values()), self._where, left, right, node.kind, node.is_all)
        return found, {of: to.id for of, to in made.items()}

    def _join(self, node: Join) -> tuple[Node, Values]:
        left, ids = self.of(node.left)
        conditions = [call("==", reference(one), reference(other)) for one, other in node.keys]
        conditions += [_at(node.condition, ids)] if node.condition else []
        right = node.right
        if free(right):
            right, others = self.of(right)
            conditions += [call("<=>", reference(ids[of]), reference(others[of])) for of in ids]
        return self._joined(left, right, node.kind, conditions), ids


def _at(expression: Expression, ids: Values) -> Expression:
    """The expression with the columns of D instead of those outside."""

    def moved(each: Expression) -> Expression:
        if each.WhichOneof("expr_type") == "unresolved_attribute":
            of = next(iter(references(each)))
            if of in ids:
                text = each.unresolved_attribute.unparsed_identifier
                each.unresolved_attribute.unparsed_identifier = f"`{ids[of]}`" + text[len(of) + 2 :]
        return each

    return rewritten(expression, moved)


def _outputs_at(outputs: tuple[Output, ...], ids: Values) -> list[Output]:
    return [Output(each.columns, _at(each.expression, ids)) for each in outputs]


def _kept(below: Node, ids: Iterable[str]) -> list[Output]:
    known = {of.id: of for of in below.columns}
    return [Output((known[of],), column(of)) for of in ids]
