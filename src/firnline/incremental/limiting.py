"""Binding limits and dropDuplicates: both keep the first rows of an order, and have no single answer without one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.algebra import Filter, Output, Top
from firnline.incremental.relation import call, cast, column, integer
from firnline.incremental.scope import Bound, Field, reference
from firnline.incremental.uniting import distinct

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder


def first(binder: Binder, source: Bound, limit: int | None, offset: int) -> Bound:
    """The first rows of an order, after skipping some."""
    node = source.node
    if not source.order:
        raise binder.refusal("LIMIT_WITHOUT_ORDER", "which rows a limit keeps is left open")
    if isinstance(node, Top) and node.limit is None and limit is not None and node.order[: len(source.order)] == source.order:
        return replace(source, node=replace(node, limit=limit))
    order = (*source.order, *binder.ties(source))
    return replace(source, node=Top(node.columns, binder.where, node, order, limit, offset))


def deduplicated(binder: Binder, relation: Relation) -> Bound:
    """One row for each value of some columns: the first of an order, if those are not all columns."""
    message = relation.deduplicate
    source = binder.bind(message.input)
    by_name = {name.lower() for name in message.column_names} >= {name.lower() for name in source.names}
    if message.all_columns_as_keys or by_name:
        return distinct(binder, source)
    if not source.order:
        raise binder.refusal("DEDUP_WITHOUT_ORDER", "which of several rows with the same keys stays is left open")
    rank = Expression()
    rank.window.window_function.CopyFrom(call("row_number"))
    keys = [found for name in message.column_names if (found := source.find(name))]
    rank.window.partition_spec.extend(reference(field.id) for field in keys)
    rank.window.order_spec.extend(each.sort_order for each in source.order)
    number = binder.new("_rank")
    outputs = binder.with_kept(source.fields, source)
    ranked = binder.mapped(source, [*outputs, (Output((number,), rank), (Field(number.id, number.name),))])
    best = Filter(ranked.node.columns, binder.where, ranked.node, call("==", column(number.id), cast(integer(1), "int")))
    return binder.kept(replace(ranked, node=best), source.fields)
