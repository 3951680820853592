"""Recursions are kept in an arrangement, which ``runtime.recursion`` advances; here they only have the types of their seed."""

from __future__ import annotations

from typing import NoReturn

from firnline.incremental.algebra import Iterate
from firnline.incremental.derivation import Derivation, Keys, Moment, Rows, Rule


def _delta(node: Iterate, derivation: Derivation) -> NoReturn:
    raise AssertionError("a recursion has an arrangement in its place")


def _state(node: Iterate, derivation: Derivation, moment: Moment, only: Keys | None) -> Rows:
    return derivation.state(node.seed, moment, only)


RULE = Rule(
    _delta,
    _state,
    lambda node: "iteration by iteration: the change of the step, given the change of the iteration before",
    lambda node: f"the rows that change in each of at most {node.most} iterations, and a scan of the arrangement for each",
)
