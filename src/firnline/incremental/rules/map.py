"""Projections, generators and functions of rows are linear: D(f(A)) = f(D(A))."""

from __future__ import annotations

from pyspark.sql.connect.proto import Expression

from firnline.incremental.algebra import Map, Output
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule
from firnline.incremental.expressions import plain
from firnline.incremental.relation import alias, column, project
from firnline.model.names import DIFF


def made(outputs: tuple[Output, ...]) -> list[Expression]:
    """The expressions of a projection, under the ids of their columns."""
    return [alias(each.expression, *(of.id for of in each.columns)) for each in outputs]


def passed(outputs: tuple[Output, ...]) -> dict[str, str]:
    """The columns that are an input's column, unchanged: their id there."""
    found = ((each.columns, plain(each.expression)) for each in outputs)
    return {columns[0].id: of for columns, of in found if of is not None}


def _mapped(node: Map, rows: Rows) -> Rows:
    return rows.but(project(rows.relation, [*made(node.outputs), column(DIFF)]))


def _delta(node: Map, derivation: Derivation) -> Rows | None:
    rows = derivation.delta(node.input)
    return rows and _mapped(node, rows)


def _state(node: Map, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    names = passed(node.outputs)
    rows = _mapped(node, derivation.state(node.input, moment, only and only.under(names)))
    return derivation.beyond(rows, only, names)


RULE = Rule(
    _delta,
    _state,
    lambda node: "the same of the changed rows",
    lambda node: "the rows that change",
)
