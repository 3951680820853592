"""One rule a file: how the change, and the states, of one class of nodes come about."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.incremental import algebra
from firnline.incremental.derivation import Rule
from firnline.incremental.rules import (
    accumulate,
    aggregate,
    co_group_map,
    constant,
    filter,
    group_map,
    input,
    iterate,
    join,
    map,
    series,
    set_operation,
    top,
    union,
    verbatim,
    window,
)

RULES: Mapping[type[algebra.Node], Rule] = {
    algebra.Accumulate: accumulate.RULE,
    algebra.Aggregate: aggregate.RULE,
    algebra.CoGroupMap: co_group_map.RULE,
    algebra.Constant: constant.RULE,
    algebra.Filter: filter.RULE,
    algebra.GroupMap: group_map.RULE,
    algebra.Input: input.RULE,
    algebra.Iterate: iterate.RULE,
    algebra.Join: join.RULE,
    algebra.Map: map.RULE,
    algebra.Series: series.RULE,
    algebra.SetOperation: set_operation.RULE,
    algebra.Top: top.RULE,
    algebra.Union: union.RULE,
    algebra.Verbatim: verbatim.RULE,
    algebra.Window: window.RULE,
}
