"""A plan in a form that only its meaning changes: ids by where they first stand, no intermediate names, no call sites."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from google.protobuf.message import Message
from pyspark.sql.connect.proto import Expression

from firnline.incremental.algebra import Column, Input, Node, Output, walk
from firnline.incremental.expressions import identity, rewritten
from firnline.incremental.scope import reference, split


def plan_hash(root: Node) -> str:
    """A hash of a node and all below it; equal for plans that differ in ids and intermediate names only."""
    numbers: dict[str, str] = {}
    nodes = {id(node): number for number, node in enumerate(walk(root))}
    digest = hashlib.sha256()
    for node in walk(root):
        for part in _parts(node, numbers, nodes):
            digest.update(part + b"\0")
    return digest.hexdigest()


def _parts(node: Node, numbers: dict[str, str], nodes: dict[int, int]) -> Iterator[bytes]:
    yield type(node).__name__.encode()
    for each in fields(node):
        if each.name in ("where", "arrangement"):
            continue
        value = getattr(node, each.name)
        if each.name == "columns":
            ids = [_id(column.id, numbers) for column in value]
            yield repr(
                [(of, column.name) for of, column in zip(ids, value, strict=True)] if isinstance(node, Input) else ids
            ).encode()
        else:
            yield from _said(value, numbers, nodes)


def _said(value: Any, numbers: dict[str, str], nodes: dict[int, int]) -> Iterator[bytes]:
    match value:
        case Node():
            yield str(nodes[id(value)]).encode()
        case Expression():
            yield identity(rewritten(value, lambda found: _renumbered(found, numbers)))
        case Message():
            yield value.SerializeToString(deterministic=True)
        case Output():
            yield from _said(value.expression, numbers, nodes)
            yield from _said(value.columns, numbers, nodes)
        case Column():
            yield _id(value.id, numbers).encode()
        case tuple():
            for each in value:
                yield from _said(each, numbers, nodes)
        case str():
            yield numbers.get(value, value).encode()
        case _:
            yield repr(value).encode()


def _id(of: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(of, f"#{len(numbers)}")


def _renumbered(expression: Expression, numbers: dict[str, str]) -> Expression:
    if expression.WhichOneof("expr_type") != "unresolved_attribute":
        return expression
    first, *path = split(expression.unresolved_attribute.unparsed_identifier)
    return reference(_id(first, numbers), path)
