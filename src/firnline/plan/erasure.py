"""What an erasure touches, and what forbids it.

An erasure from a source reaches the source and all that comes of it: its cone. Each log of the cone becomes one layer, so that
nothing below its end can be asked for by itself any more: that is what a hold may forbid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firnline.errors import FirnlineError
from firnline.model.declaration import Collection
from firnline.model.graph import Graph
from firnline.model.hold import Hold
from firnline.model.names import collection_of

_OVERRIDDEN = ("frontier", "replication", "retention")
"""Holds that an erasure is stronger than: rows are kept for no time once they are to be forgotten."""


def cone(graph: Graph, source: str) -> tuple[Collection, ...]:
    """A source and all that comes of it, inputs before their readers; refused for what is computed, or cannot be again."""
    collection = graph.collection(source)
    if collection.kind != "source":
        origins = ", ".join(f"{graph.name}.{name}" for name in sources_of(graph, source))
        what = f"{graph.name}.{source} is computed, and would be computed again from {origins}"
        raise FirnlineError("NOT_A_SOURCE", what, collection.where, todo=f"Erase from what it comes from: {origins}.")
    found = (collection, *(graph.collection(name) for name in graph.descendants(source)))
    for each in found:
        if each.nondeterministic:
            what = f"{graph.name}.{each.name} is declared nondeterministic=True: it cannot be computed again without these rows"
            raise FirnlineError("ERASURE_BLOCKED", what, each.where)
    return found


def sources_of(graph: Graph, name: str) -> tuple[str, ...]:
    """The sources that a collection comes from."""
    return tuple(each.name for each in graph.collections if each.kind == "source" and name in graph.descendants(each.name))


def check_free(graph: Graph, holds: Iterable[Hold], upto: int) -> None:
    """Refuse to let go of single epochs that somebody holds, whatever retention says; ``holds`` are those in force.

    A branch keeps more than it holds: it names files of all that came before.
    """
    found = [hold for hold in holds if hold.kind not in _OVERRIDDEN and (hold.at < upto or hold.kind == "branch")]
    if found:
        told = "; ".join(f"{hold} at {graph.schedule.label(hold.at)}, to release it: {hold.release}" for hold in found)
        raise FirnlineError("ERASURE_BLOCKED", f"{graph.name} is held: {told}")


def late(uppers: Mapping[str, int], frontier: int) -> tuple[str, ...]:
    """The collections of a cone that end before others, or lie beyond the frontier: an epoch is under way."""
    end = max(uppers.values())
    return tuple(name for name, upper in uppers.items() if upper < end) or (() if frontier >= end else tuple(uppers))


def check_complete(graph: Graph, uppers: Mapping[str, int], frontier: int) -> None:
    """Refuse to erase while an epoch is under way: its readers would miss the state that it begins with."""
    found = late(uppers, frontier)
    if found:
        end = graph.schedule.label(max(uppers.values()))
        behind = ", ".join(f"{graph.name}.{name}" for name in found)
        what = f"{behind}: the epoch up to {end} is not complete"
        raise FirnlineError("ERASURE_BLOCKED", what, todo=f"Complete it first: firnline run {graph.name}; then erase again.")


def check_reached(graph: Graph, logs: Iterable[str], folders: Iterable[str]) -> None:
    """Refuse to erase while what came of the rows may be where no erasure reaches.

    Args:
        graph: The pipeline.
        logs: All of its logs.
        folders: Those of logs that were retired, or of dropped branches, and whose files wait to be removed.
    """
    known = {each.name for each in graph.collections}
    left = sorted({collection_of(name) for name in logs} - known)
    if left:
        todo = f"Let go of each, then erase again: firnline plan {graph.name} --retire {left[0]}"
        what = f"{', '.join(left)} of {graph.name!r} has a log and no code, and may hold what came of the rows"
        raise FirnlineError("ERASURE_BLOCKED", what, todo=todo)
    waiting = sorted(folders)
    if waiting:
        what = f"files of {len(waiting)} logs that were retired, or of dropped branches, wait to be removed: {waiting[0]}"
        raise FirnlineError(
            "ERASURE_BLOCKED", what, todo=f"Remove them, then erase again: firnline maintain {graph.name} --grace 0s"
        )
