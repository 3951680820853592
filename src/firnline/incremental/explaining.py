"""A plan for people: every node with how its change is computed, what state it reads and by what, and its worst case.

Lineage: a column of a stage comes from the columns of collections that its value is computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql.connect.proto import Expression

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
    expressions_of,
    walk,
)
from firnline.incremental.arranging import Arranged, needs
from firnline.incremental.expressions import references
from firnline.incremental.expressions import walk as walk_expression
from firnline.incremental.recursing import MARK
from firnline.incremental.rules import RULES
from firnline.incremental.rules.map import passed
from firnline.incremental.words import said

Class = Literal["repeatable", "deterministic", "convergent", "arbitrary"]


@dataclass(frozen=True, slots=True)
class Told:
    """One node in words."""

    operator: str
    change: str
    reads: tuple[str, ...]
    cost: str
    where: str | None
    inputs: tuple[Told, ...]


Labels = Mapping[str, Mapping[str, str]]
"""The names for people of columns that are kept: by arrangement, and then by id."""


def told(node: Node, labels: Labels) -> Told:
    """The node and all below it, in words."""
    names = {of.id: of.name for each in walk(node) for of in each.columns}
    return _told(node, {**names, **{of: name for each in labels.values() for of, name in each.items()}}, labels)


def _told(node: Node, names: Mapping[str, str], labels: Labels) -> Told:
    rule = RULES[type(node)]
    reads = []
    for name, columns in needs(node).items():
        by = ", ".join(names.get(of, of) for of in columns)
        reads.append(f"{_side(name)} by {by}" if by else f"all of {_side(name)}")
    if isinstance(node, Accumulate):
        by = ", ".join(names.get(of, of) for of in node.keys)
        reads.append(f"{node.arrangement} by {by}" if by else node.arrangement)
    inputs = tuple(_told(each, names, labels) for each in node.inputs)
    return Told(_operator(node, names, labels), rule.how(node), tuple(reads), rule.cost(node), node.where, inputs)


def scanned(plan: Arranged) -> set[str]:
    """The logs whose states the change of a stage is computed from, those that it keeps among them."""
    found = set()
    for root in (*(step.node for step in plan.arrangements), plan.root):
        for node in walk(root):
            sides = [getattr(node, side) for side in needs(node)]
            found |= {each.collection for side in sides for each in walk(side) if isinstance(each, Input)}
            if isinstance(node, Accumulate):
                found.add(node.arrangement)
    return {name for name in found if not name.startswith(MARK)}


def _side(name: str) -> str:
    return "its input" if name == "input" else f"the {name} side"


def _operator(node: Node, names: Mapping[str, str], labels: Labels) -> str:
    match node:
        case Input():
            kept = labels.get(node.collection, {})
            return f"{node.collection} ({', '.join(kept.get(of.id, of.name) for of in node.columns)})"
        case Constant():
            return "constant rows"
        case Map():
            return f"select {_outputs(node.outputs, names) or 'the same columns'}"
        case Filter():
            return f"where {said(node.condition, names)}"
        case Verbatim():
            return (node.relation.WhichOneof("rel_type") or "").replace("_", " ")
        case Union():
            return "union all"
        case Join():
            keys = " and ".join(f"{names[one]} = {names[other]}" for one, other in node.keys)
            rest = said(node.condition, names) if node.condition else ""
            on = " and ".join(filter(None, (keys, rest)))
            return f"{node.kind} join" + (f" on {on}" if on else "")
        case Aggregate():
            by = ", ".join(names[key] for key in node.keys)
            what = _outputs(node.aggregates, names)
            return " ".join(filter(None, [f"group by {by}" if by else "one group", f"compute {what}" if what else ""]))
        case Accumulate():
            by = ", ".join(names[key] for key in node.keys)
            sums = ", ".join(names[each.columns[0].id] for each, _ in node.sums)
            return f"sums{f' by {by}' if by else ''}: {sums}"
        case Window():
            return f"window functions {_outputs(node.outputs, names)}"
        case SetOperation():
            return f"{node.kind}{' all' if node.is_all else ''}"
        case Top():
            order = ", ".join(said(each, names) for each in node.order)
            return f"first {node.limit if node.limit is not None else 'rows'} by {order}"
        case GroupMap() | CoGroupMap():
            return "Python function of groups"
        case Iterate():
            return "recursion: the first rows, and the step from one iteration to the next"
    return type(node).__name__.lower()


def _outputs(outputs: Sequence[Output], names: Mapping[str, str]) -> str:
    kept = passed(tuple(outputs))
    made = [
        f"{said(each.expression, names)} as {', '.join(of.name for of in each.columns)}"
        for each in outputs
        if each.columns[0].id not in kept or names.get(kept[each.columns[0].id]) != each.columns[0].name
    ]
    return ", ".join(made)


def lineage(plan: Arranged, ids: Sequence[str]) -> dict[str, list[str]]:
    """For each column of the stage, by id, the columns of collections that its values come from."""
    known: dict[str, set[str]] = {}
    kept = {step.name: dict(zip((of.name for of in step.columns), step.node.ids, strict=True)) for step in plan.arrangements}
    for root in (*(step.node for step in plan.arrangements), plan.root):
        for node in walk(root):
            for of, sources in _origins(node, known, kept).items():
                known.setdefault(of, set()).update(sources)
    return {of: sorted(known.get(of, ())) for of in ids}


def _origins(node: Node, known: Mapping[str, set[str]], kept: Mapping[str, Mapping[str, str]]) -> dict[str, set[str]]:
    def of_all(ids: set[str]) -> set[str]:
        return {source for of in ids for source in known.get(of, ())}

    def of_outputs(outputs: Sequence[Output]) -> dict[str, set[str]]:
        return {of.id: of_all(references(each.expression)) for each in outputs for of in each.columns}

    match node:
        case Input():
            if node.collection in kept:
                return {of.id: of_all({kept[node.collection][of.name]}) for of in node.columns}
            if node.collection.startswith(MARK):
                return {}
            return {of.id: {f"{node.collection}.{of.name}"} for of in node.columns}
        case Map() | Window():
            return of_outputs(node.outputs)
        case Aggregate():
            return of_outputs(node.aggregates)
        case Accumulate():
            return of_outputs([each for each, _ in node.sums])
        case Iterate():
            return {of: of_all({one, other}) for of, one, other in zip(node.ids, node.seed.ids, node.step.ids, strict=True)}
        case Union() | SetOperation():
            sides = zip(node.ids, node.left.ids, node.right.ids, strict=True)
            return {of: of_all({one, other}) for of, one, other in sides}
        case Verbatim() | GroupMap() | CoGroupMap():
            everything = of_all({of for below in node.inputs for of in below.ids})
            return dict.fromkeys(node.ids, everything)
    return {}


def classified(plan: Arranged) -> tuple[Class, str]:
    """What running a stage again gives, and why."""
    for root in (*(step.node for step in plan.arrangements), plan.root):
        for node in walk(root):
            if isinstance(node, GroupMap | CoGroupMap) or (isinstance(node, Verbatim) and node.is_opaque):
                return "deterministic", "it calls Python functions of whole groups or batches, which are taken at their word"
            if any(map(_is_python, expressions_of(node))):
                return "deterministic", "it calls Python functions, which are taken at their word"
    return "repeatable", "every function in it is a function of its arguments, and sums do not depend on the order of rows"


def _is_python(expression: Expression) -> bool:
    return any(each.WhichOneof("expr_type") == "common_inline_user_defined_function" for each in walk_expression(expression))
