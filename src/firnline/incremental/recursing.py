"""Binding recursion: a plan in which the result of a step is its own input.

``mark`` is how a plan says it: an alias around the union of the seed and the step, which names the plan id of the step's input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.connect.proto import Relation

from firnline.incremental.algebra import Input, Iterate, Output
from firnline.incremental.relation import cast
from firnline.incremental.scope import Bound, Field, reference

if TYPE_CHECKING:
    from firnline.incremental.binding import Binder

MARK = "_firnline_iterate"


def mark(variable: int, most: int) -> str:
    """The alias of a step whose input has this plan id, and that is taken at most so often."""
    return f"{MARK}_{variable}_{most}"


def recursion(binder: Binder, relation: Relation) -> Bound:
    """The fixpoint of a step."""
    began, stepped = relation.subquery_alias.input.set_op.left_input, relation.subquery_alias.input.set_op.right_input
    variable, most = map(int, relation.subquery_alias.alias.removeprefix(f"{MARK}_").split("_"))
    seed = binder.bind(began)
    seed = binder.exactly(seed)
    names = [f"v{number}" for number in range(len(seed.fields))]
    name = f"{MARK}_{len(binder.loops)}"
    binder.loops[variable] = Bound(Input(tuple(binder.new(each) for each in names), binder.where, name), seed.fields)
    step = binder.bind(stepped)
    kinds, found = ([kind for _, kind in binder.analyze(each)] for each in (began, stepped))
    if len(step.fields) != len(seed.fields):
        raise binder.refusal("WRONG_COLUMNS", "a step of iterate() has other columns than its seed")
    outputs = []
    for field, one, other in zip(step.fields, found, kinds, strict=True):
        made = binder.new(field.name)
        value = reference(field.id) if one == other else cast(reference(field.id), other)
        outputs.append((Output((made,), value), (Field(made.id, made.name),)))
    after = binder.mapped(step, outputs)
    node = Iterate(seed.columns(), binder.where, seed.node, after.node, name, most)
    return Bound(node, seed.fields)
