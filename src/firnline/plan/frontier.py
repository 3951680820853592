"""The frontier: the upper bound of what is complete in all of a pipeline's collections.

frontier(heads) = {collection: (generation, upper)} with the one upper = min over heads. Every collection of the cut holds every
epoch below it, and a stage's epoch is published only after its inputs', so nothing in the cut depends on anything outside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firnline.model.description import Description


@dataclass(frozen=True, slots=True)
class Frontier:
    """A consistent cut: each collection's generation, and the point up to which all are complete."""

    upper: int
    generations: Mapping[str, int]


def cut(heads: Mapping[str, Description | None]) -> Frontier | None:
    """The newest consistent cut of some heads; None while a collection has none."""
    found = {name: head for name, head in heads.items() if head is not None}
    if not found or len(found) < len(heads):
        return None
    return Frontier(min(head.upper for head in found.values()), {name: head.generation for name, head in found.items()})


def is_progress(old: Frontier | None, new: Frontier) -> bool:
    """Whether a cut says more than the one before; it never moves back within its generations, nor to older ones.

    A rewind names the generations of logs before these begin: whoever looked at a log before that says nothing of worth.
    """
    if old is None:
        return True
    if any(new.generations.get(name, generation) < generation for name, generation in old.generations.items()):
        return False
    return new.generations != old.generations or new.upper > old.upper
