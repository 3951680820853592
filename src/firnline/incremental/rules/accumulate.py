"""Sums per group that are kept: new = old + sums over D, for the groups K that change only. Reads nothing of its input's state.

The rows (keys, sums, number of rows) are an arrangement: a log like any other. Its rows telescope, -old +new -old +new, so the
weighted sum of a group's sums over all of them is the present one, without consolidating first.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.connect.proto import Expression, Relation

from firnline.incremental.accumulators import total
from firnline.incremental.algebra import Accumulate, Column
from firnline.incremental.derivation import SIDE, Derivation, Keys, Moment, Rows, Rule, by_side
from firnline.incremental.relation import alias, call, cast, column, filtered, grouped, integer, project, small_integer, union
from firnline.incremental.rules.input import stored
from firnline.model.names import DIFF


def signed(term: Expression) -> Expression:
    """A term times a weight of one or minus one, without leaving its type."""
    return call("if", call(">", column(DIFF), integer(0)), term, call("negative", term))


def summed(node: Accumulate, rows: Rows, *apart: str) -> Relation:
    """The sums over weighted rows, per group, and per value of some more columns."""
    relation = rows.relation
    if not rows.is_unit:
        sign, times = call("sign", column(DIFF)), call("abs", column(DIFF))
        copies = call("explode", call("array_repeat", cast(sign, "bigint"), cast(times, "int")))
        relation = project(relation, [*map(column, node.input.ids), alias(copies, DIFF)])
    sums = [alias(total(signed(part.expression), kind), part.columns[0].id) for part, kind in node.sums]
    return grouped(relation, map(column, (*node.keys, *apart)), sums)


def kept(node: Accumulate, columns: Sequence[Column], derivation: Derivation, only: Keys | None) -> Relation:
    """The sums before the epoch, of some groups at least: one row of the log or more for each."""
    return stored(derivation, columns, node.arrangement, "old", only).relation


def _delta(node: Accumulate, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    change = derivation.share(Rows(summed(node, changed)))
    only = derivation.keys(change, [(key, key) for key in node.keys], is_null_safe=True)
    before = kept(node, node.columns, derivation, only)
    sums = [(part.columns[0].id, kind) for part, kind in node.sums]
    old = [alias(cast(signed(column(name)), kind), f"_old_{name}") for name, kind in sums]
    new = [alias(column(f"_old_{name}"), f"_new_{name}") for name, _ in sums]
    keys = [*map(column, node.keys)]
    had = project(project(before, [*keys, *old]), [*keys, *(column(f"_old_{name}") for name, _ in sums), *new])
    none = [alias(cast(integer(0), kind), f"_old_{name}") for name, kind in sums]
    coming = project(change.relation, [*keys, *none, *(alias(column(name), f"_new_{name}") for name, _ in sums)])
    ends = [(side, name, kind) for side in ("_old_", "_new_") for name, kind in sums]
    both = grouped(union(had, coming), keys, [alias(total(column(side + name), kind), side + name) for side, name, kind in ends])
    stacked = [small_integer(2)]
    for number, side in enumerate(("_old_", "_new_")):
        stacked += [small_integer(number), *(column(side + name) for name, _ in sums)]
    rows = project(both, [*keys, alias(call("stack", *stacked), SIDE, *(name for name, _ in sums))])
    if node.keys:
        rows = filtered(rows, call(">", column(node.count), integer(0)))
    return Rows(by_side(rows, [*map(column, node.ids)]))


def _state(node: Accumulate, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    """From scratch: this is how an arrangement begins."""
    keys = {key: key for key in node.keys}
    rows = summed(node, derivation.state(node.input, moment, only and only.under(keys)))
    if node.keys:
        rows = filtered(rows, call(">", column(node.count), integer(0)))
    found = Rows(project(rows, [*map(column, node.ids), alias(integer(1), DIFF)]), is_positive=True, is_unit=True)
    return derivation.beyond(found, only, keys)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the sums of the changed rows, added to those kept in an arrangement",
    lambda node: "the groups that change, and a scan of the arrangement for them",
)
