"""What has to be computed again because code changed, what that cost when it was computed, and what stays.

    stale(S)  =  the epochs of S after the newest layer that today's code of S made, down to where single epochs are kept
    affected  =  for every changed stage, itself and all that comes of it, from the first stale epoch of a changed stage on

Layers that came before one of today's code were left as they are when that code came: old epochs keep the code that made them.
"""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firnline.model.fingerprint import Fingerprint
from firnline.model.graph import Graph


@dataclass(frozen=True, slots=True)
class Layer:
    """What one publish brought: [lower, upper), by what code, how many changed rows, in how many seconds."""

    lower: int
    upper: int
    made_by: Fingerprint
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class History:
    """A log: its layers, the newest first, and how many parts its rows are cut into."""

    layers: Sequence[Layer]
    parts: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Epochs of one collection, and what they cost when they were computed."""

    collection: str
    because: tuple[str, ...]
    """The changed stages that it is, or comes of; empty if it stays."""
    first: str | None
    last: str | None
    epochs: int
    parts: int
    rows: int
    seconds: float


def stale_from(layers: Sequence[Layer], today: Fingerprint, since: int) -> int | None:
    """Where the first epoch begins that today's code did not make and that can be computed again; None if there is none.

    >>> a, b, c = (Fingerprint(code) for code in "abc")
    >>> layers = [Layer(at, at + 1, by, 1, 1.0) for at, by in ((3, b), (2, b), (1, a), (0, a))]
    >>> [stale_from(layers, today, since) for today, since in ((a, 0), (b, 0), (c, 0), (c, 1))]
    [2, None, 0, 1]
    """
    found = None
    for layer in layers:
        if today.is_same(layer.made_by) or layer.upper <= since:
            break
        found = max(layer.lower, since)
    return found


def affected(graph: Graph, stale: Mapping[str, int]) -> dict[str, tuple[int, tuple[str, ...]]]:
    """From where on each collection has to be computed again, and because of which stages; ``stale`` is of those that changed."""
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for name, point in stale.items():
        for reached in (name, *graph.descendants(name)):
            begins, because = found.get(reached, (point, ()))
            found[reached] = (min(begins, point), (*because, name))
    return found


def rewinds(graph: Graph, stale: Mapping[str, int]) -> list[tuple[str, int]]:
    """The stages that go back with all that comes of them, and to where, so that all that is affected does."""
    above = {name: [each for each in stale if name in graph.descendants(each)] for name in stale}
    needed = [name for name in stale if all(stale[each] > stale[name] for each in above[name])]
    return [(name, stale[name]) for name in _in_order(graph, needed, needed)]


def costs(graph: Graph, histories: Mapping[str, History], stale: Mapping[str, int]) -> tuple[list[Cost], list[Cost]]:
    """What has to be computed again, and what stays as it is; both in the order of the graph."""
    again, stays = affected(graph, stale), list[Cost]()
    recomputed = [_cost(graph, name, histories[name], *again[name]) for name in _in_order(graph, again, histories)]
    for name in _in_order(graph, histories, histories):
        point = again[name][0] if name in again else None
        kept = [layer for layer in histories[name].layers if point is None or layer.upper <= point]
        if kept:
            begins = kept[-1].lower
            stays.append(_cost(graph, name, History(kept, histories[name].parts), begins, ()))
    return [each for each in recomputed if each.epochs], stays


def _cost(graph: Graph, name: str, history: History, begins: int, because: tuple[str, ...]) -> Cost:
    schedule = graph.schedule
    layers = [layer for layer in history.layers if layer.upper > begins]
    ends = layers[0].upper if layers else begins
    first, last = (schedule.label(begins), schedule.label(schedule.epoch_at(ends - 1).lower)) if layers else (None, None)
    rows, seconds = sum(layer.rows for layer in layers), sum(layer.seconds for layer in layers)
    return Cost(name, because, first, last, schedule.count(begins, ends), history.parts, rows, round(seconds, 3))


def _in_order(graph: Graph, names: Names[str], there: Names[str]) -> list[str]:
    return [each.name for each in graph.collections if each.name in names and each.name in there]
