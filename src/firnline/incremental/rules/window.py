"""Window functions, for the parts K that change only: D(f(A)) = f(A_new|K) - f(A_old|K)."""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression

from firnline.incremental.algebra import Window
from firnline.incremental.derivation import SIDE, Derivation, Keys, Moment, Rows, Rule, by_side
from firnline.incremental.expressions import rewritten
from firnline.incremental.relation import alias, column, integer, project
from firnline.incremental.rules.map import made, passed
from firnline.model.names import DIFF


def _beside(expression: Expression) -> Expression:
    """The same, with the rows before and after the epoch kept apart."""

    def apart(found: Expression) -> Expression:
        if found.WhichOneof("expr_type") == "window":
            found.window.partition_spec.append(column(SIDE))
        return found

    return rewritten(expression, apart)


def _delta(node: Window, derivation: Derivation) -> Rows | None:
    changed = derivation.delta(node.input)
    if changed is None:
        return None
    changed = derivation.share(changed)
    only = derivation.keys(changed, [(key, key) for key in node.partition], is_null_safe=True)
    sides = derivation.sides(node.input, changed, only)
    outputs = [alias(_beside(each.expression), *(of.id for of in each.columns)) for each in node.outputs]
    return Rows(by_side(project(sides, [*outputs, column(SIDE)]), [*map(column, node.ids)]))


def _state(node: Window, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    names = {of: to for of, to in passed(node.outputs).items() if to in node.partition}
    input_rows = derivation.unit(derivation.state(node.input, moment, only and only.under(names)), node.input.ids)
    found = project(input_rows.relation, [*made(node.outputs), alias(integer(1), DIFF)])
    rows = Rows(found, is_positive=True, is_unit=True)
    return derivation.beyond(rows, only, names)


def _how(node: Window) -> str:
    if not node.partition:
        return "all rows, before and after, as there is one part"
    return "the parts that change, from their rows before and after"


def _cost(node: Window) -> str:
    return "the rows of the parts that change, and a scan for them" if node.partition else "all rows"


RULE = Rule(_delta, _state, _how, _cost)
