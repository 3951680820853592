"""Plans in a form that only their meaning changes.

A node's meaning is (rows, columns): a hash of which rows there are, and for each column a hash of what it holds in such a row. A
projection keeps the rows of its input and gives columns other hashes, so that neighbouring projections, the order in which
columns are made, columns that nobody reads, and names between the input and the result leave no trace.

    same rows and same columns  =>  the same multiset, whatever the inputs hold

Nothing else is equated: conditions keep their order, and filters their place. Neither ids, plan ids, call sites, names of lambda
variables nor pickled bytes of Python functions come in: a Python function is known by its fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.connect.proto import CommonInlineUserDefinedFunction, Expression, Relation

from firnline.incremental.algebra import (
    Accumulate,
    Aggregate,
    CoGroupMap,
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
    walk,
)
from firnline.incremental.expressions import inner, plain, rewritten
from firnline.incremental.expressions import walk as expressions_in
from firnline.incremental.functions import is_builtin, makes_rows
from firnline.incremental.scope import reference, split

Columns = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Which rows, and what each column, by its id, holds in them."""

    rows: str
    columns: Columns


class Canonical:
    """The meanings of nodes.

    Args:
        schemas: The columns of collections and their types, as far as they are known.
        functions: The fingerprints of Python functions, by the bytes that stand for them in plans.
        names: What collections are known as that are called otherwise today.

    ``is_whole`` turns false when a plan does not hold all of its meaning: it calls a function that is neither Spark's own nor
    in the plan, or one whose fingerprint is not known. ``called`` are the fingerprints of the Python functions that were met.
    """

    def __init__(
        self, schemas: Mapping[str, Sequence[tuple[str, str]]], functions: Mapping[bytes, str], names: Mapping[str, str]
    ) -> None:
        self.is_whole = True
        self.called: set[str] = set()
        self._schemas, self._functions, self._names = schemas, functions, names
        self._done: dict[int, tuple[Node, Meaning]] = {}

    def meaning(self, root: Node) -> Meaning:
        """What a node means."""
        for node in walk(root):
            if id(node) not in self._done:
                self._done[id(node)] = (node, _MEANINGS[type(node)](self, node))
        return self._done[id(root)][1]

    def hash(self, root: Node, ids: Sequence[str]) -> str:
        """The hash of some columns of a node, in this order."""
        found = self.meaning(root)
        return _hash("relation", found.rows, *(found.columns[of] for of in ids))

    def known(self, node: Node) -> Meaning:
        """The meaning of a node that was asked for before."""
        return self._done[id(node)][1]

    def loose(self) -> Canonical:
        """One that sees neither types of what is read nor what Python functions do."""
        return Canonical({}, dict.fromkeys(self._functions, ""), self._names)

    def types(self, collection: str) -> Mapping[str, str]:
        """The types of a collection's columns."""
        return dict(self._schemas.get(collection, ()))

    def known_as(self, collection: str) -> str:
        """A collection, or what one keeps beside it, by the name that its log began with."""
        owner, kept, of = collection.partition("__")
        return self._names.get(owner, owner) + kept + of

    def said(self, expression: Expression, columns: Columns) -> str:
        """What an expression over columns says."""
        return _hash("expression", self._settled(expression, columns).SerializeToString(deterministic=True))

    def message(self, relation: Relation) -> bytes:
        """What a message without inputs says, by the names of columns."""
        copy = Relation()
        copy.CopyFrom(relation)
        message = getattr(copy, copy.WhichOneof("rel_type") or "")
        for each in list(inner(message)):
            each.CopyFrom(self._settled(each, None))
        if "func" in message.DESCRIPTOR.fields_by_name:
            self._settle_function(message.func)
        return bytes(copy.SerializeToString(deterministic=True))

    def _settled(self, expression: Expression, columns: Columns | None) -> Expression:
        """The expression without what says nothing; references become what they refer to, unless they are names."""
        variables: dict[str, str] = {}

        def settled(found: Expression) -> Expression:
            found.ClearField("common")
            match found.WhichOneof("expr_type"):
                case "unresolved_attribute" if columns is not None:
                    first, *path = split(found.unresolved_attribute.unparsed_identifier)
                    return reference(columns[first], path)
                case "unresolved_named_lambda_variable":
                    _renamed(found.unresolved_named_lambda_variable, variables)
                case "lambda_function":
                    for each in found.lambda_function.arguments:
                        _renamed(each, variables)
                case "unresolved_function":
                    found.unresolved_function.function_name = found.unresolved_function.function_name.lower()
                    self.is_whole &= is_builtin(found.unresolved_function.function_name)
                case "call_function":
                    self.is_whole = False
                case "common_inline_user_defined_function":
                    self._settle_function(found.common_inline_user_defined_function)
            return found

        return rewritten(expression, settled)

    def _settle_function(self, called: CommonInlineUserDefinedFunction) -> None:
        called.function_name = ""  # names of columns that follow from it are known by themselves
        if called.WhichOneof("function") != "python_udf":
            self.is_whole = False
            return
        known = self._functions.get(called.python_udf.command)
        if known is None:
            self.is_whole = False
        else:
            self.called.add(known)
            called.python_udf.command = known.encode()


def _renamed(variable: Expression.UnresolvedNamedLambdaVariable, variables: dict[str, str]) -> None:
    """A lambda variable by the order in which variables are met."""
    name = variable.name_parts[0]
    variable.name_parts[0] = variables.setdefault(name.lower(), str(len(variables)))


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        digest.update(len(encoded).to_bytes(8) + encoded)
    return digest.hexdigest()


# ---- what nodes mean, by their types


def _input(of: Canonical, node: Input) -> Meaning:
    types = of.types(node.collection)
    return Meaning(
        _hash("input", of.known_as(node.collection)),
        {each.id: _hash("column", each.name, types.get(each.name, "")) for each in node.columns},
    )


def _constant(of: Canonical, node: Constant) -> Meaning:
    return _numbered(node, _hash("constant", of.message(node.relation)))


def _map(of: Canonical, node: Map) -> Meaning:
    below = of.known(node.input)
    rows, generators = _generated(of, node, below)
    columns: dict[str, str] = {}
    for each in node.outputs:
        if each in generators:
            columns |= {
                made.id: _hash("item", rows, str(generators.index(each)), str(at)) for at, made in enumerate(each.columns)
            }
        else:
            columns[each.columns[0].id] = _value(of, each, below.columns)
    return Meaning(rows, columns)


def _generated(of: Canonical, node: Map | Window, below: Meaning) -> tuple[str, list[Output]]:
    """The rows that outputs make of those below, and these outputs."""
    found = [each for each in node.outputs if makes_rows(each.expression) or len(each.columns) > 1]
    said = (of.said(each.expression, below.columns) for each in found)
    return (_hash("generated", below.rows, *said) if found else below.rows), found


def _value(of: Canonical, output: Output, columns: Columns) -> str:
    passed = plain(output.expression)
    return of.said(output.expression, columns) if passed is None else columns[passed]


def _filter(of: Canonical, node: Filter) -> Meaning:
    below = of.known(node.input)
    return Meaning(_hash("filter", below.rows, of.said(node.condition, below.columns)), below.columns)


def _verbatim(of: Canonical, node: Verbatim) -> Meaning:
    return _numbered(node, _hash("verbatim", *_named(of, node.input), of.message(node.relation), str(node.is_opaque)))


def _union(of: Canonical, node: Union) -> Meaning:
    return _numbered(node, _hash("union", *_listed(of, node.left), *_listed(of, node.right)))


def _set_operation(of: Canonical, node: SetOperation) -> Meaning:
    return _numbered(node, _hash(node.kind, str(node.is_all), *_listed(of, node.left), *_listed(of, node.right)))


def _join(of: Canonical, node: Join) -> Meaning:
    sides: dict[str, str] = {}
    for side, below in (("left", of.known(node.left)), ("right", of.known(node.right))):
        sides |= {name: _hash(side, column) for name, column in below.columns.items()}
    keys = sorted(_hash("pair", sides[left], sides[right]) for left, right in node.keys)
    condition = of.said(node.condition, sides) if node.condition else ""
    rows = _hash("join", node.kind, of.known(node.left).rows, of.known(node.right).rows, *keys, condition)
    return Meaning(rows, sides)


def _aggregate(of: Canonical, node: Aggregate) -> Meaning:
    below = of.known(node.input)
    rows, columns = _groups("aggregate", below, node.keys)
    made = {each.columns[0].id: _hash("total", rows, of.said(each.expression, below.columns)) for each in node.aggregates}
    return Meaning(rows, {**columns, **made})


def _accumulate(of: Canonical, node: Accumulate) -> Meaning:
    below = of.known(node.input)
    rows, columns = _groups("accumulate", below, node.keys)
    made = {each.columns[0].id: _hash("sum", rows, of.said(each.expression, below.columns), kind) for each, kind in node.sums}
    return Meaning(rows, {**columns, **made})


def _groups(kind: str, below: Meaning, keys: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The rows of groups, and the columns that are their keys."""
    rows = _hash(kind, below.rows, *sorted(below.columns[key] for key in keys))
    return rows, {key: _hash("key", rows, below.columns[key]) for key in keys}


def _window(of: Canonical, node: Window) -> Meaning:
    below = of.known(node.input)
    rows, _ = _generated(of, node, below)
    columns: dict[str, str] = {}
    for each in node.outputs:
        value = _value(of, each, below.columns)
        is_over = any(found.WhichOneof("expr_type") == "window" for found in expressions_in(each.expression))
        columns[each.columns[0].id] = _hash("over", rows, value) if is_over else value
    return Meaning(rows, columns)


def _top(of: Canonical, node: Top) -> Meaning:
    below = of.known(node.input)
    order = [of.said(each, below.columns) for each in node.order]
    return Meaning(_hash("top", below.rows, str(node.limit), str(node.offset), *order), below.columns)


def _iterate(of: Canonical, node: Iterate) -> Meaning:
    parts = (*_listed(of, node.seed), *_listed(of, node.step), node.variable, str(node.most))
    return _numbered(node, _hash("iterate", *parts))


def _group_map(of: Canonical, node: GroupMap) -> Meaning:
    keys = [of.known(node.input).columns[key] for key in node.keys]
    return _numbered(node, _hash("groups", *_named(of, node.input), *keys, of.message(node.relation)))


def _co_group_map(of: Canonical, node: CoGroupMap) -> Meaning:
    left, right = of.known(node.left).columns, of.known(node.right).columns
    keys = [_hash("pair", left[one], right[other]) for one, other in node.keys]
    return _numbered(node, _hash("cogroups", *_named(of, node.left), *_named(of, node.right), *keys, of.message(node.relation)))


def _numbered(node: Node, rows: str) -> Meaning:
    """Columns that are known by where they stand."""
    return Meaning(rows, {each.id: _hash("at", rows, str(number)) for number, each in enumerate(node.columns)})


def _listed(of: Canonical, node: Node) -> tuple[str, ...]:
    """A relation whose columns are known by their order."""
    found = of.known(node)
    return (found.rows, str(len(node.columns)), *(found.columns[each] for each in node.ids))


def _named(of: Canonical, node: Node) -> tuple[str, ...]:
    """A relation whose columns are known by their order and their names."""
    return (*_listed(of, node), *(each.name for each in node.columns))


_MEANINGS: Mapping[type[Node], Callable[[Canonical, Any], Meaning]] = {
    Input: _input,
    Constant: _constant,
    Map: _map,
    Filter: _filter,
    Verbatim: _verbatim,
    Union: _union,
    SetOperation: _set_operation,
    Join: _join,
    Aggregate: _aggregate,
    Accumulate: _accumulate,
    Window: _window,
    Top: _top,
    Iterate: _iterate,
    GroupMap: _group_map,
    CoGroupMap: _co_group_map,
}
