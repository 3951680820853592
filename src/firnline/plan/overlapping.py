"""Which collections may be advanced next, while others are under way: order where state needs it, nowhere else.

A collection needs its own epochs in order, and of its inputs those that it is advanced through. So stage k of the next epoch runs
beside stage k + 1 of this one, and stages that do not read one another run at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph


def ready(graph: Graph, reached: Mapping[str, int], under_way: Collection[str], last: int) -> dict[str, int]:
    """The collections to start, each with the point up to which it can be advanced; those that readers wait for most first.

    Args:
        graph: The pipeline.
        reached: Where each collection's log ends.
        under_way: Those that are being advanced.
        last: The point up to which epochs are wanted.
    """
    found = {}
    for each in graph.collections:
        upto = min((reached[name] for name in each.inputs if not is_foreign(name)), default=last)
        if each.name not in under_way and reached[each.name] < min(upto, last):
            found[each.name] = min(upto, last)
    return dict(sorted(found.items(), key=lambda item: reached[item[0]]))
