"""Which intermediate results are kept from epoch to epoch, as hidden arrangements.

Two kinds: sums of aggregates that add up, which then never read their input's state, unless every group is one row of a log; and
results whose state an operator above needs in part, while the parts cannot be had from the logs below without computing all of
it. Everything else is computed anew from what changed: a join's output is never kept just to be joined again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from pyspark.sql.connect.proto import Expression

from firnline.errors import FirnlineError, Location
from firnline.incremental import functions
from firnline.incremental.accumulators import FLOATING, ONE, Part, Parts, is_linear, parts, total
from firnline.incremental.algebra import (
    Accumulate,
    Aggregate,
    CoGroupMap,
    Column,
    Constant,
    Filter,
    GroupMap,
    Input,
    Iterate,
    Join,
    Map,
    Node,
    Output,
    SetOperation,
    Top,
    Union,
    Verbatim,
    Window,
    changed,
    expressions_of,
    is_scan,
)
from firnline.incremental.algebra import walk as nodes_of
from firnline.incremental.canonical import Canonical
from firnline.incremental.clock import has_word, spelt_out, word_read
from firnline.incremental.expressions import function, identity, plain, rewritten, walk
from firnline.incremental.pruning import pruned
from firnline.incremental.relation import call, cast, column, integer
from firnline.incremental.rules.map import passed
from firnline.incremental.settling import settled, settled_once, settled_over
from firnline.incremental.typing import Typing
from firnline.incremental.uniqueness import Keys, is_unique

_TOTALS = frozenset(["sum", "avg", "mean", "try_sum", "try_avg"])


@dataclass(frozen=True)
class Arrangement:
    """A hidden collection: its name, the node whose rows it keeps, the columns under the names it keeps them and for people."""

    name: str
    node: Node
    columns: tuple[Column, ...]
    labels: tuple[Column, ...]


@dataclass(frozen=True)
class Arranged:
    """A stage in steps: arrangements in the order in which they are computed, then the stage's own rows."""

    arrangements: tuple[Arrangement, ...]
    root: Node


def arranged(root: Node, name: str, typing: Typing, canonical: Canonical, keys: Keys, *, is_kept: bool = True) -> Arranged:
    """The plan in steps.

    Args:
        root: The plan.
        name: What the names of its arrangements begin with; they end with a hash of what they mean.
        typing: The types of its columns.
        canonical: The meanings of its nodes.
        keys: What identifies the rows of the collections that it reads, as far as it is known.
        is_kept: Whether anything is kept.
    """
    for each in nodes_of(root):
        if isinstance(each, Iterate):
            typing.loop(each)
    for each in nodes_of(root):
        _check_clock(each, typing)
    arranger = _Arranger(name, typing, canonical, keys, is_kept=is_kept, has_maps=_may_have_maps(root))
    found = arranger.rebuilt(pruned(root, root.ids))
    steps = tuple(replace(each, node=pruned(each.node, each.node.ids)) for each in arranger.arrangements)
    return Arranged(steps, pruned(found, root.ids))


class _Arranger:
    def __init__(self, name: str, typing: Typing, canonical: Canonical, keys: Keys, *, is_kept: bool, has_maps: bool) -> None:
        self.arrangements: list[Arrangement] = []
        self._name, self._typing, self._canonical, self._keys = name, typing, canonical, keys
        self._is_kept, self._has_maps = is_kept, has_maps
        self._numbers = itertools.count()
        self._done: dict[int, Node] = {}
        self._kept: dict[int, Node] = {}
        self._alive: list[Node] = []  # so that ids of nodes stay theirs

    def rebuilt(self, node: Node) -> Node:
        """The node over rebuilt inputs, with arrangements in place of what is kept."""
        if id(node) not in self._done:
            self._alive.append(node)
            inputs = {
                each.name: self._rebuilt(node, value)
                for each in fields(node)
                if isinstance(value := getattr(node, each.name), Node)
            }
            found = changed(node, **inputs) if any(value is not getattr(node, name) for name, value in inputs.items()) else node
            if isinstance(found, Aggregate):
                found = self._aggregate(found)
            elif isinstance(found, Window):
                found = changed(found, outputs=tuple(self._exact(each, found.input) for each in found.outputs))
            elif isinstance(found, Iterate):
                found = self._keep(found)
            if self._has_maps:
                self._check(found)
            self._done[id(node)] = self._with_kept_inputs(found) if self._is_kept else found
        return self._done[id(node)]

    def _rebuilt(self, node: Node, below: Node) -> Node:
        """An input of a node; inside of a recursion's step nothing is kept, as it would be another thing in every iteration."""
        before = self._is_kept
        self._is_kept = before and not (isinstance(node, Iterate) and below is node.step)
        found = self.rebuilt(below)
        self._is_kept = before
        return found

    def _with_kept_inputs(self, node: Node) -> Node:
        for name, columns in needs(node).items():
            below = getattr(node, name)
            if not is_restrictable(below, columns):
                node = changed(node, **{name: self._keep(below)})
        return node

    def _keep(self, node: Node) -> Node:
        """An arrangement in place of a node."""
        number = id(node)
        if number not in self._kept:
            self._alive.append(node)
            # Neither the user's names nor the order of columns may show in what is stored, as they do not show in its name.
            meant = self._canonical.meaning(node).columns
            ids = node.ids if isinstance(node, Iterate) else sorted(node.ids, key=meant.__getitem__)
            name = f"{self._name}__{self._canonical.hash(node, ids)[:12]}"
            columns, labels = tuple(Column(of, f"c{ids.index(of)}") for of in node.ids), node.columns
            if isinstance(node, Accumulate):
                node = changed(node, columns=columns, arrangement=name)
            if name not in self._typing.schemas:
                self._typing.keep(name, node, [each.name for each in columns])
                self.arrangements.append(Arrangement(name, node, columns, labels))
            self._kept[number] = Input(columns, node.where, name)
        return self._kept[number]

    def _check(self, node: Node) -> None:
        """Refuse what is compared by rows that Spark cannot compare: a map's null becomes a zero where it groups by maps."""
        for name in needs(node):
            below = getattr(node, name)
            for of, kind in zip(below.columns, self._typing.kinds(below, [column(of) for of in below.ids]), strict=True):
                if "map<" in kind:
                    raise FirnlineError("UNSUPPORTED_TYPE", f"rows are compared by the column {of.name!r}, which holds a map")

    def _exact(self, output: Output, source: Node) -> Output:
        """Aggregates over a window, as ones that do not depend on the order of rows."""

        def exact(expression: Expression) -> Expression:
            if expression.WhichOneof("expr_type") == "window":
                expression = settled_over(expression)
            window = expression.window
            if expression.WhichOneof("expr_type") != "window" or function(window.window_function) not in _TOTALS:
                return expression
            kinds = self._typing.kinds(source, list(window.window_function.unresolved_function.arguments))
            found = parts(window.window_function, kinds) if kinds[0] in FLOATING else None
            return found.finish([_over(part, expression) for part in found.parts]) if found else expression

        return replace(output, expression=rewritten(output.expression, exact))

    def _new(self, name: str) -> Column:
        return Column(f"a{next(self._numbers)}", name)

    def _aggregate(self, node: Aggregate) -> Node:
        """Sums that are kept, if all aggregates add up; else the same with sums that do not depend on the order of rows."""
        node = changed(node, aggregates=tuple(_settled(each) for each in node.aggregates))
        calls = [each for output in node.aggregates for each in walk(output.expression) if function(each) in functions.AGGREGATES]
        if not calls:
            return node
        arguments: dict[bytes, tuple[Expression, Column]] = {}
        for each in calls:
            for argument in each.unresolved_function.arguments if is_linear(each) else ():
                if plain(argument) is None and argument.WhichOneof("expr_type") != "literal":
                    arguments.setdefault(identity(argument), (argument, self._new("argument")))
        node = changed(node, input=_widened(node.input, list(arguments.values())))
        collected: dict[bytes, tuple[Part, Column]] = {}
        # Sums over groups of one row each would be no smaller than the rows, which can be had by the same keys.
        is_kept = self._is_kept and not (is_scan(node.input) and is_unique(node.input, node.keys, self._keys))

        def summed(part: Part) -> Column:
            key = identity(part.term) + part.kind.encode()
            return collected.setdefault(key, (part, self._new(part.label)))[1]

        def added_up(expression: Expression) -> Expression:
            nonlocal is_kept
            if function(expression) not in functions.AGGREGATES:
                return expression
            found = self._parts(node.input, expression, arguments) if is_linear(expression) else None
            if found is None:
                is_kept = False
                return settled_once(expression) if self._is_of_distinct_doubles(node.input, expression) else expression
            return found.finish([column(summed(part).id) for part in found.parts])

        outputs = tuple(replace(each, expression=rewritten(each.expression, added_up)) for each in node.aggregates)
        if is_kept:
            return self._accumulated(node, outputs, collected, summed(ONE))
        totals = {found.id: total(part.term, part.kind) for part, found in collected.values()}

        def spelt(expression: Expression) -> Expression:
            return totals.get(plain(expression) or "", expression)

        return changed(node, aggregates=tuple(replace(each, expression=rewritten(each.expression, spelt)) for each in outputs))

    def _is_of_distinct_doubles(self, source: Node, expression: Expression) -> bool:
        call_ = expression.unresolved_function
        is_total = call_.is_distinct and function(expression) in _TOTALS
        return is_total and self._typing.kinds(source, list(call_.arguments))[0] in FLOATING

    def _parts(self, source: Node, expression: Expression, arguments: dict[bytes, tuple[Expression, Column]]) -> Parts | None:
        copy = Expression()
        copy.CopyFrom(expression)
        for argument in copy.unresolved_function.arguments:
            made = arguments.get(identity(argument))
            if made:
                argument.CopyFrom(column(made[1].id))
        return parts(copy, self._typing.kinds(source, list(copy.unresolved_function.arguments)))

    def _accumulated(
        self, node: Aggregate, outputs: tuple[Output, ...], collected: dict[bytes, tuple[Part, Column]], count: Column
    ) -> Node:
        known = {each.id: each for each in node.input.columns}
        keys = tuple(known[key] for key in node.keys)
        sums = tuple((Output((found,), part.term), part.kind) for part, found in collected.values())
        columns = (*keys, *(found for _, found in collected.values()))
        kept = self._keep(Accumulate(columns, node.where, node.input, node.keys, sums, count.id, ""))
        made = {each.columns[0].id: each for each in outputs}
        in_order = tuple(made.get(each.id) or Output((each,), column(each.id)) for each in node.columns)
        return Map(node.columns, node.where, kept, in_order)


def _check_clock(node: Node, typing: Typing) -> None:
    """Refuse words that Spark takes for the time of day where it puts in a cast."""
    for each in _with_words(node) if any(map(has_word, expressions_of(node))) else ():
        if word := word_read(typing.told(each)):
            what = f"{word!r} as a date or a timestamp is another one at another time"
            raise FirnlineError("NONDETERMINISTIC_FUNCTION", what, Location.of(node.where))


def _with_words(node: Node) -> Iterator[Node]:
    """The node with each of its outputs by itself: Spark tells of the first few of many only."""
    match node:
        case Map() | Window():
            yield from (changed(node, columns=each.columns, outputs=(_spelt_out(each),)) for each in node.outputs)
        case Aggregate():
            keys = tuple(of for of in node.columns if of.id in node.keys)
            for each in node.aggregates:
                yield changed(node, columns=(*keys, *each.columns), aggregates=(_spelt_out(each),))
        case Filter() | Join():
            yield changed(node, condition=node.condition and spelt_out(node.condition))
        case Top():
            yield changed(node, order=tuple(map(spelt_out, node.order)))


def _spelt_out(output: Output) -> Output:
    return replace(output, expression=spelt_out(output.expression))


def _may_have_maps(root: Node) -> bool:
    """Whether some value may be a map: no collection holds one, so something must make it."""
    for node in nodes_of(root):
        if isinstance(node, GroupMap | CoGroupMap | Constant) or (isinstance(node, Verbatim) and node.is_opaque):
            return True
        for each in (found for expression in expressions_of(node) for found in walk(expression)):
            name, kind = function(each) or "", each.WhichOneof("expr_type")
            is_cast_to_one = kind == "cast" and "map" in str(each.cast)
            if "map" in name or name.startswith("from_") or kind == "common_inline_user_defined_function" or is_cast_to_one:
                return True
    return False


def _settled(output: Output) -> Output:
    return replace(output, expression=rewritten(output.expression, settled))


def _over(part: Part, window: Expression) -> Expression:
    """The total of a part over the same window."""
    copy = Expression()
    copy.CopyFrom(window)
    copy.window.window_function.CopyFrom(call("sum", part.term))
    return call("coalesce", copy, cast(integer(0), part.kind))


def _widened(node: Node, made: Sequence[tuple[Expression, Column]]) -> Node:
    if not made:
        return node
    kept = tuple(Output((each,), column(each.id)) for each in node.columns)
    new = tuple(Output((found,), expression) for expression, found in made)
    return Map((*node.columns, *(found for _, found in made)), node.where, node, (*kept, *new))


def needs(node: Node) -> dict[str, tuple[str, ...]]:
    """The inputs whose states a node's change is computed from, and the columns by which it asks for them."""
    match node:
        case Aggregate() | GroupMap():
            return {"input": node.keys}
        case Window():
            return {"input": node.partition}
        case Top():
            return {"input": ()}
        case SetOperation():
            return {"left": tuple(node.left.ids), "right": tuple(node.right.ids)}
        case Join() | CoGroupMap():
            return {"left": tuple(left for left, _ in node.keys), "right": tuple(right for _, right in node.keys)}
    return {}


def is_restrictable(node: Node, columns: Sequence[str]) -> bool:
    """Whether the rows with some values of these columns can be had by reading logs, without computing all rows first."""
    match node:
        case Input() | Constant():
            return True
        case Map():
            names = passed(node.outputs)
            return is_restrictable(node.input, [names[of] for of in columns if of in names])
        case Filter():
            return is_restrictable(node.input, columns)
        case Verbatim():
            return not node.is_opaque and is_restrictable(node.input, ())
        case Union():
            moved = dict(zip(node.ids, node.right.ids, strict=True))
            return is_restrictable(node.left, columns) and is_restrictable(node.right, [moved[of] for of in columns])
        case Join():
            return _is_join_restrictable(node, columns)
        case Aggregate():
            found = [of for of in columns if of in node.keys]
            return is_restrictable(node.input, found) if found else not node.keys and is_scan(node.input)
        case Window():
            names = passed(node.outputs)
            found = [names[of] for of in columns if names.get(of) in node.partition]
            return bool(found) and is_restrictable(node.input, found)
        case SetOperation():
            sides = (dict(zip(node.ids, side.ids, strict=True)) for side in (node.left, node.right))
            both = zip((node.left, node.right), sides, strict=True)
            return bool(columns) and all(is_restrictable(side, [names[of] for of in columns]) for side, names in both)
    return False


def _is_join_restrictable(node: Join, columns: Sequence[str]) -> bool:
    left = [of for of in columns if of in node.left.ids]
    right = [of for of in columns if of in node.right.ids]
    if node.kind == "inner":
        left += [one for one, other in node.keys if other in right]
    on_left, on_right = ([pair[side] for pair in node.keys] for side in (0, 1))
    if left:
        return is_restrictable(node.left, left) and is_restrictable(node.right, on_right)
    return bool(right) and node.kind == "inner" and is_restrictable(node.right, right) and is_restrictable(node.left, on_left)
