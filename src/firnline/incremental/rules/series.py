"""Sums per group that are kept, after every epoch of a stretch.

With d(e) the sums over the changes of epoch e: new(e) = old + d(first) + ... + d(e), for each group that changes at e. That is a
running sum per group, begun with what the arrangement holds before the stretch; the change at e is new(e) without the sum before.
"""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression

from firnline.incremental.accumulators import total
from firnline.incremental.algebra import ALWAYS, Series
from firnline.incremental.derivation import SIDE, Derivation, Keys, Moment, Rows, Rule, by_side
from firnline.incremental.relation import (
    alias,
    call,
    cast,
    column,
    filtered,
    grouped,
    integer,
    project,
    running,
    small_integer,
    union,
)
from firnline.incremental.rules import accumulate


def _delta(node: Series, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    change = derivation.share(Rows(accumulate.summed(node, changed, node.epoch)))
    only = derivation.keys(change, [(key, key) for key in node.keys], is_null_safe=True)
    sums = [(part.columns[0].id, kind) for part, kind in node.sums]
    keys, epoch = [*map(column, node.keys)], column(node.epoch)
    old = [alias(cast(accumulate.signed(column(name)), kind), name) for name, kind in sums]
    before = accumulate.kept(node, node.columns[:-1], derivation, only)
    had = project(before, [*keys, alias(integer(ALWAYS), node.epoch), *old])
    coming = project(change.relation, [*keys, epoch, *(column(name) for name, _ in sums)])
    steps = grouped(union(had, coming), [*keys, epoch], [alias(total(column(name), kind), name) for name, kind in sums])
    ends = (("_old_", -1), ("_new_", 0))
    so_far = [alias(_running(name, kind, node, upto), end + name) for end, upto in ends for name, kind in sums]
    within = filtered(project(steps, [*keys, epoch, *so_far]), call(">", epoch, integer(ALWAYS)))
    stacked = [small_integer(2)]
    for number, (end, _) in enumerate(ends):
        stacked += [small_integer(number), *(column(end + name) for name, _ in sums)]
    rows = project(within, [*keys, epoch, alias(call("stack", *stacked), SIDE, *(name for name, _ in sums))])
    if node.keys:
        rows = filtered(rows, call(">", column(node.count), integer(0)))
    return Rows(by_side(rows, [*map(column, node.ids)]))


def _running(name: str, kind: str, node: Series, upto: int) -> Expression:
    """A group's sum through an epoch, or through the one before it; zero before the first."""
    found = running(call("sum", column(name)), map(column, node.keys), column(node.epoch), upto)
    return cast(call("coalesce", found, cast(integer(0), kind)), kind)


def _state(node: Series, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    raise AssertionError("a stretch begins with what is kept")


RULE = Rule(
    _delta,
    _state,
    lambda node: "the sums of the changed rows, added up epoch by epoch to those kept in an arrangement",
    lambda node: "the groups that change, and a scan of the arrangement for them",
)
