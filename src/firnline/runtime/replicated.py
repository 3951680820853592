"""Which batches are on how many places, by the logs' own records, and how far that makes each collection safe.

What counts are the present snapshots of a log: publishes, merges and repairs. A publish whose rows were repaired is safe at a
place only if the repair is there, too: files come back from replicas, not rows. No place is asked for any of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import collection_of
from firnline.plan.repairing import owner
from firnline.plan.replication import Batch, recovery_time, upto
from firnline.runtime.project import Project
from firnline.runtime.replicas import Replicas
from firnline.tables.control import TABLE as CONTROL
from firnline.world import world

if TYPE_CHECKING:
    from firnline.tables.metadata import Metadata


@dataclass(frozen=True, slots=True)
class Waiting:
    """What keeps a collection from being safe further than a point."""

    collection: str
    point: int
    since: str
    """When the batch that waits was published, or the place that it waits for was last missed."""
    why: str


def replicated_upto(project: Project, graph: Graph) -> dict[str, int]:
    """How far each collection's entries, from its beginning, are as safe as they have to be.

    What is kept in the warehouse only is so when it is published; what is cheap to compute again when its inputs are.
    """
    of_each = defaultdict[str, list[Batch]](list)
    for batch in batches(project, graph, Replicas(project, graph)):
        of_each[collection_of(batch.collection)].append(batch)
    found: dict[str, int] = {}
    for each in graph.collections:
        head = project.log(graph.name, each.name).head()
        start = graph.schedule.start
        since, upper = (head.description.since, head.description.upper) if head else (start, start)
        point = upto(of_each[each.name], since, upper)
        if each.level == "memory":
            point = min([point, *(found[name] for name in each.inputs if not is_foreign(name))])
        found[each.name] = point
    return found


def waiting(project: Project, graph: Graph) -> tuple[Waiting, ...]:
    """What keeps collections from being safe up to their ends, for whoever asks why the safe point does not move."""
    outages = Replicas(project, graph).outages()
    found = []
    for name, point in replicated_upto(project, graph).items():
        collection, log = graph.collection(name), project.log(graph.name, name)
        head = log.head()
        if collection.level != "remote" or head is None or point >= head.description.upper:
            continue
        out = [f"{url}, which is unreachable since {since}" for url, since in outages.items()]
        for_places = " and ".join(out) or "being copied"
        published = min((each.published_at for each in log.entries(point)), default=world().now())
        since = min(outages.values(), default=published.isoformat(timespec="seconds"))
        found.append(Waiting(name, point, since, f"{graph.name}.{name} waits for {for_places}"))
    return tuple(found)


def at_stake(project: Project, graph: Graph) -> float:
    """The recovery time of the present state: the seconds that computing what is not on enough places took."""
    return recovery_time(batches(project, graph, Replicas(project, graph)))


def batches(project: Project, graph: Graph, replicas: Replicas) -> Iterator[Batch]:
    """The present batches of all logs that are copied, and where they are by the logs' own records; no place is asked."""
    for name in copied_logs(project, graph):
        yield from batches_of(project, graph, replicas, name)


def batches_of(project: Project, graph: Graph, replicas: Replicas, name: str) -> Iterator[Batch]:
    """Those of one log."""
    made_by = owner(graph, name)
    assert made_by is not None, "what nobody makes is not copied"
    assert made_by.durability is not None, "a checked graph says"
    log = project.log(graph.name, name)
    table = log.load()
    if table is None or table.head is None:
        return
    held = {url: replicas.recorded(name, url) for url in graph.replicas}
    wanted, position = made_by.durability - 1, graph.collections.index(made_by)
    repairs = list(_repairs(project, table))
    for repair in repairs:
        at = frozenset(url for url in graph.replicas if repair.attempt in held[url])
        where = (repair.attempt, repair.generation, repair.lower, repair.upper)
        yield Batch(name, *where, 0.0, wanted, at, position=position, is_repair=True)
    newness = {snapshot.id: number for number, snapshot in enumerate(table.main_line())}
    for entry in log.entries():
        later = [each for each in repairs if each.newness < newness.get(entry.snapshot, -1)]
        touching = [each for each in later if each.lower < entry.description.upper and entry.lower < each.upper]
        outdated = {url for url in graph.replicas if any(each.attempt not in held[url] for each in touching)}
        at = frozenset(url for url in graph.replicas if entry.attempt in held[url])
        where = (entry.attempt, entry.description.generation, entry.lower, entry.description.upper)
        yield Batch(name, *where, entry.seconds, wanted, at, at & outdated, position)


def copied_logs(project: Project, graph: Graph) -> list[str]:
    """The logs of a pipeline whose batches are copied: those of remote collections, and what comes with these."""
    found = []
    for name in project.catalog.names(graph.name) - {CONTROL}:
        made_by = owner(graph, name)
        if made_by is not None and made_by.level == "remote":
            found.append(name)
    return sorted(found)


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair on the main line, and the epochs whose files it brought."""

    attempt: str
    generation: int
    lower: int
    upper: int
    newness: int


def _repairs(project: Project, table: Metadata) -> Iterator[_Repair]:
    from firnline.tables.layers import is_repair, line
    from firnline.tables.log import ATTEMPT, START, head_of
    from firnline.tables.metadata import SIDECAR
    from firnline.tables.sidecar import Repair

    description, start = head_of(table).description, int(table.properties[START])
    position = {snapshot.id: number for number, snapshot in enumerate(table.main_line())}
    for snapshot in filter(is_repair, line(table)):
        lower, upper = start, description.upper
        try:
            note = Repair.of_json(project.catalog.read(snapshot.summary[SIDECAR]))
            if note.parts is None:
                lower = min((each.first for each in note.files), default=upper)
                upper = max((each.last + 1 for each in note.files), default=upper)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # without its note it may be about anything, as a rescale is about everything
        yield _Repair(snapshot.summary[ATTEMPT], description.generation, lower, upper, position[snapshot.id])
