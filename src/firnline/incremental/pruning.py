"""Only the columns that are needed: what is not asked for is not read, and equal rows are merged as early as they are equal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from firnline.incremental.algebra import (
    Accumulate,
    Aggregate,
    Filter,
    Input,
    Join,
    Map,
    Node,
    Output,
    Union,
    Window,
    changed,
    walk,
)
from firnline.incremental.expressions import references
from firnline.incremental.functions import makes_rows
from firnline.incremental.relation import column


def pruned(root: Node, needed: Iterable[str]) -> Node:
    """The tree with only the columns that lead to the needed ones."""
    order = list(walk(root))
    wanted: dict[int, set[str]] = {id(node): set() for node in order}
    wanted[id(root)] |= set(needed)
    for node in reversed(order):
        for below, ids in _asked(node, wanted[id(node)]):
            wanted[id(below)] |= ids
    done: dict[int, Node] = {}
    for node in order:
        inputs = {each.name: done[id(value)] for each in fields(node) if isinstance(value := getattr(node, each.name), Node)}
        done[id(node)] = _narrowed(node, wanted[id(node)], inputs)
    return done[id(root)]


def _kept(outputs: tuple[Output, ...], wanted: set[str]) -> tuple[Output, ...]:
    """The outputs that are wanted; what makes rows stays."""
    return tuple(each for each in outputs if wanted & {of.id for of in each.columns} or makes_rows(each.expression))


def _read(outputs: tuple[Output, ...]) -> set[str]:
    return {of for each in outputs for of in references(each.expression)}


def _asked(node: Node, wanted: set[str]) -> list[tuple[Node, set[str]]]:
    """What a node asks of its inputs, to give what is wanted of it."""
    match node:
        case Map():
            return [(node.input, _read(_kept(node.outputs, wanted)))]
        case Window():
            return [(node.input, _read(_kept(node.outputs, wanted)) | set(node.partition))]
        case Filter():
            return [(node.input, wanted | references(node.condition))]
        case Union():
            moved = dict(zip(node.ids, node.right.ids, strict=True))
            left = dict(zip(node.ids, node.left.ids, strict=True))
            return [(node.left, {left[of] for of in wanted}), (node.right, {moved[of] for of in wanted})]
        case Join():
            read = wanted | {of for pair in node.keys for of in pair} | (references(node.condition) if node.condition else set())
            return [(side, read & set(side.ids)) for side in (node.left, node.right)]
        case Aggregate():
            return [(node.input, _read(_kept(node.aggregates, wanted)) | set(node.keys))]
        case Accumulate():
            return [(node.input, _read(tuple(each for each, _ in node.sums)) | set(node.keys))]
    return [(below, set(below.ids)) for below in node.inputs]


def _narrowed(node: Node, wanted: set[str], inputs: dict[str, Node]) -> Node:
    match node:
        case Map() | Window():
            outputs = _kept(node.outputs, wanted)
            columns = tuple(of for each in outputs for of in each.columns)
            return changed(node, columns=columns, outputs=outputs, **inputs)
        case Filter():
            return changed(node, columns=inputs["input"].columns, **inputs)
        case Union():
            at = [number for number, of in enumerate(node.ids) if of in wanted]
            sides = {name: _only(inputs[name], [getattr(node, name).ids[number] for number in at]) for name in ("left", "right")}
            return changed(node, columns=sides["left"].columns, **sides)
        case Join():
            right = inputs["right"].columns if node.kind in ("inner", "left") else ()
            return changed(node, columns=(*inputs["left"].columns, *right), **inputs)
        case Aggregate():
            aggregates = _kept(node.aggregates, wanted)
            ids = {*node.keys, *(each.columns[0].id for each in aggregates)}
            return changed(node, columns=tuple(of for of in node.columns if of.id in ids), aggregates=aggregates, **inputs)
        case Accumulate():
            return changed(node, **inputs)
        case Input():
            return changed(node, columns=tuple(of for of in node.columns if of.id in wanted))
    return changed(node, **{name: _only(found, getattr(node, name).ids) for name, found in inputs.items()})


def _only(node: Node, ids: list[str]) -> Node:
    """Exactly these columns, in this order."""
    if node.ids == ids:
        return node
    known = {of.id: of for of in node.columns}
    return Map(tuple(known[of] for of in ids), node.where, node, tuple(Output((known[of],), column(of)) for of in ids))
