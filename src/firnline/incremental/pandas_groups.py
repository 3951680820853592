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
    message = relation.group_map
    source, keys = _keyed(binder, message.input, message.grouping_expressions)
    return plainly(GroupMap(binder.made(relation), binder.where, source.node, tuple(keys), binder.stripped(relation)))


def co_group_map(binder: Binder, relation: Relation) -> Bound:
    """A function of pairs of groups."""
    message = relation.co_group_map
    left, ones = _keyed(binder, message.input, message.input_grouping_expressions)
    right, others = _keyed(binder, message.other, message.other_grouping_expressions)
    keys = tuple(zip(ones, others, strict=True))
    return plainly(CoGroupMap(binder.made(relation), binder.where, left.node, right.node, keys, binder.stripped(relation)))


def _keyed(binder: Binder, below: Relation, expressions: Sequence[Expression]) -> tuple[Bound, list[str]]:
    source = binder.renamed(binder.bind(below))
    values = [each.alias.expr if each.WhichOneof("expr_type") == "alias" else each for each in expressions]
    return binder.with_keys(source, [binder.expression(each, source) for each in values])
