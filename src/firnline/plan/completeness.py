"""How complete a collection is: parts that lack nothing / parts.

A part lacks something if rows of any of its epochs are missing, its own or those it was made from. Part p of an output that is
made from part p of an input lacks what that lacks. An output that is made from all parts of an input is as complete as the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from firnline.model.foreign import is_foreign
from firnline.model.gap import Gap, Gaps
from firnline.model.graph import Graph

Ratio = tuple[int, int]
"""Parts that lack nothing, of how many."""
Same = Callable[[str, str], bool]
"""Whether part p of a collection is made from part p of an input."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What gaps did to a collection."""

    parts: frozenset[int] = frozenset()
    """Its parts that lack rows."""
    worst: Ratio = (1, 1)
    """How complete the least complete input is of which every part was needed."""
    gaps: tuple[Gap, ...] = field(default=())

    def of(self, parts: int) -> Ratio:
        """How complete a collection of so many parts is."""
        return _least((parts - len(self.parts), parts), self.worst)

    def merged(self, other: Touched) -> Touched:
        """What both did."""
        gaps = {gap.id: gap for gap in (*self.gaps, *other.gaps)}
        return Touched(self.parts | other.parts, _least(self.worst, other.worst), tuple(gaps.values()))


def touched(graph: Graph, gaps: Gaps, uppers: Mapping[str, int], upto: int | None, same: Same) -> dict[str, Touched]:
    """What gaps did to every collection, as of the epochs before a point or as far as its log goes.

    ``uppers`` is where the logs end.
    """
    inherited: dict[str, Touched] = {}
    found: dict[str, Touched] = {}
    for collection in graph.collections:
        name = collection.name
        at = uppers.get(name, graph.schedule.start)
        at = at if upto is None else min(at, upto)
        sum_ = Touched()
        for input in (each for each in collection.inputs if not is_foreign(each)):
            through = [gap for gap in gaps.gaps if gap.collection == input and gap.touches(name, at)]
            read = inherited[input].merged(_of(through))
            if not read.gaps:
                continue
            is_same = same(name, input) and graph.collection(input).parts == collection.parts
            sum_ = sum_.merged(read if is_same else Touched(worst=read.of(graph.collection(input).parts), gaps=read.gaps))
        inherited[name] = sum_
        found[name] = sum_.merged(_of([gap for gap in gaps.gaps if gap.collection == name and gap.lacks_at(at)]))
    return found


def _of(gaps: list[Gap]) -> Touched:
    return Touched(frozenset(part for gap in gaps for part in gap.parts()), gaps=tuple(gaps))


def _least(one: Ratio, other: Ratio) -> Ratio:
    return one if one[0] * other[1] <= other[0] * one[1] else other
