"""Binding Python functions of groups. Keys that are expressions become columns, which the functions do not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.algebra import CoGroupMap, GroupMap
from firnline.incremental.scope import Bound, plainly

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


def group_map(binder: Binder, relation: Relation) -> Bound:
    """A function of groups."""
    message, copy = relation.group_map, binder.stripped(relation)
    source, keys = _keyed(binder, message.input, message.grouping_expressions, copy.group_map.grouping_expressions)
    return plainly(GroupMap(binder.made(relation), binder.where, source.node, tuple(keys), copy))


def co_group_map(binder: Binder, relation: Relation) -> Bound:
    """A function of pairs of groups."""
    message, copy = relation.co_group_map, binder.stripped(relation)
    kept = copy.co_group_map
    left, ones = _keyed(binder, message.input, message.input_grouping_expressions, kept.input_grouping_expressions)
    right, others = _keyed(binder, message.other, message.other_grouping_expressions, kept.other_grouping_expressions)
    keys = tuple(zip(ones, others, strict=True))
    return plainly(CoGroupMap(binder.made(relation), binder.where, left.node, right.node, keys, copy))


def _keyed(
    binder: Binder, below: Relation, expressions: Sequence[Expression], kept: Sequence[Expression]
) -> tuple[Bound, list[str]]:
    """What is below with the values of expressions as columns, and their ids; those that are kept then go by its names."""
    source = binder.renamed(binder.bind(below))
    values = [each.alias.expr if each.WhichOneof("expr_type") == "alias" else each for each in expressions]
    found = [binder.expression(each, source) for each in values]
    for each, to in zip(found, kept, strict=True):
        to.CopyFrom(binder.in_names(each, source))
    return binder.with_keys(source, found)
