"""What an epoch of a collection came from, or what came of it: read from the logs' summaries and sidecars, without a JVM.

Nodes are publications. An edge says that a publication read another's rows of the epoch: all of its parts, or part by part.
Arrangements are left out: they belong to their stage, are published by the same attempt and read the same inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from firnline.errors import FirnlineError
from firnline.model.digest import Digest, parts_of_same
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE
from firnline.plan.safepoint import compacted
from firnline.runtime.project import Project
from firnline.runtime.renaming import inputs_of

if TYPE_CHECKING:
    from firnline.tables.log import Entry, Log
    from firnline.tables.sidecar import Input, Sidecar

Direction = Literal["upstream", "downstream"]


@dataclass(frozen=True, slots=True)
class PartLine:
    """What a publication changed in one part."""

    part: int
    rows: int
    weight: int
    digest: str


@dataclass(frozen=True, slots=True)
class Node:
    """A publication: of the parts that matter, as far as parts were asked for."""

    id: str
    collection: str
    kind: str
    epochs: tuple[str, ...]
    parts: tuple[PartLine, ...]
    """Those with changes."""
    of_parts: tuple[int, ...] | None
    """The parts that matter; None if all do."""
    rows: int
    weight: int
    digest: str
    generation: int
    snapshot: int
    attempt: str
    fingerprint: str
    seconds: float
    determinants: tuple[str, ...]
    """The names of what was taken from outside."""
    later: int
    """How many later publications build on it."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A publication read another: complete up to ``upper``, through ``snapshot``, with so many changed rows of the epoch."""

    reader: str
    input: str
    generation: int
    upper: str
    snapshot: int
    rows: int
    parts: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """A publication and all that it came from, or all that came of it. The first node is the one that was asked for."""

    pipeline: str
    collection: str
    epoch: str
    part: int | None
    direction: Direction
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def next_to(self, node: Node) -> Iterator[tuple[Edge, Node]]:
        """The edges that lead on from a node, in the direction asked for, with the nodes that they lead to."""
        by_id = {each.id: each for each in self.nodes}
        for edge in self.edges:
            here, there = (edge.reader, edge.input) if self.direction == "upstream" else (edge.input, edge.reader)
            if here == node.id:
                yield edge, by_id[there]


def lineage(
    project: Project, graph: Graph, collection: str, epoch: str, part: int | None = None, direction: Direction = "upstream"
) -> Lineage:
    """The lineage of an epoch of a collection, or of one part of it."""
    schedule = graph.schedule
    asked = schedule.epoch_at(schedule.point(epoch))
    graph.collection(collection.removesuffix(QUARANTINE))
    logs = _Logs(project, graph)
    parts = logs.parts(collection)
    if part is not None and not 0 <= part < parts:
        raise FirnlineError("BAD_OPTION", f"{graph.name}.{collection} has the parts 0 to {parts - 1}, not {part}")
    target = logs.covering(collection, asked.lower, asked.upper)
    if target is None or asked.lower < logs.since(collection):
        raise logs.refusal(collection, asked.lower)
    walk = _upstream if direction == "upstream" else _downstream
    edges = list(walk(logs, target))
    matter = _matter(logs, target, edges, None if part is None else frozenset([part]), direction)
    nodes = tuple(_node(logs, each, of) for each, of in matter.items())
    label = schedule.label(asked.lower)
    return Lineage(graph.name, collection, label, part, direction, nodes, tuple(each.as_edge(logs) for each in edges))


@dataclass(frozen=True, eq=False)
class _Publication:
    """A publication as the log has it, one object each."""

    name: str
    """Of its collection, as the pipeline that was asked about calls it."""
    log: Log
    entry: Entry
    later: int

    @cached_property
    def sidecar(self) -> Sidecar:
        return self.log.sidecar(self.entry)


@dataclass(frozen=True, eq=False)
class _Read:
    """A publication that read another."""

    reader: _Publication
    input: _Publication
    how: Input

    def as_edge(self, logs: _Logs) -> Edge:
        how = self.how
        upper = logs.graph_of(self.reader).schedule.label(how.upper)
        reader, found = logs.id_of(self.reader), logs.id_of(self.input)
        return Edge(reader, found, how.generation, upper, how.snapshot, how.rows, how.parts)


class _Logs:
    """The publications of a pipeline's present generations, each log read once."""

    def __init__(self, project: Project, graph: Graph) -> None:
        self.graph = graph
        self._project = project
        self._known: dict[str, list[_Publication]] = {}
        self._parts: dict[str, int] = {}
        self._graphs = {graph.name: graph}

    def publications(self, collection: str) -> list[_Publication]:
        """All of a collection, oldest first."""
        if collection not in self._known:
            log = self._project.log(self.graph.name, collection)
            newest_first = [_Publication(collection, log, entry, number) for number, entry in enumerate(log.entries())]
            self._known[collection] = newest_first[::-1]
        return self._known[collection]

    def within(self, collection: str, lower: int, upper: int) -> list[_Publication]:
        """Those that hold something of [lower, upper)."""
        found = self.publications(collection)
        return [each for each in found if each.entry.lower < upper and each.entry.description.upper > lower]

    def covering(self, collection: str, lower: int, upper: int) -> _Publication | None:
        """The one that holds an epoch."""
        return next(iter(self.within(collection, lower, upper)), None)

    def parts(self, collection: str) -> int:
        """How many parts a log has, or will have."""
        from firnline.tables.log import PARTS

        if collection not in self._parts:
            table = self._project.log(self.graph.name, collection).load()
            declared = next((each.parts for each in self.graph.collections if each.name == collection), 1)
            self._parts[collection] = int((table.properties if table else {}).get(PARTS, declared))
        return self._parts[collection]

    def since(self, collection: str) -> int:
        """Where the single epochs of a collection begin."""
        found = [each.entry.description.since for each in self.publications(collection)]
        return max(found, default=self.graph.schedule.start)

    def inputs(self, publication: _Publication) -> list[tuple[str, Input]]:
        """What a publication read, by the names that the pipeline that was asked about has for it."""
        of = publication.log.pipeline
        prefix = "" if of == self.graph.name else f"{of}."
        read = inputs_of(self._project, self.graph_of(publication), publication.sidecar)
        return [(name if is_foreign(name) else prefix + name, how) for name, how in sorted(read.items())]

    def graph_of(self, publication: _Publication) -> Graph:
        """The pipeline whose epochs a publication holds."""
        pipeline = publication.log.pipeline
        if pipeline not in self._graphs:
            self._graphs[pipeline] = self._project.graph(pipeline)
        return self._graphs[pipeline]

    def id_of(self, publication: _Publication) -> str:
        return f"{publication.name}@{self.graph_of(publication).schedule.label(publication.entry.lower)}"

    def refusal(self, collection: str, lower: int) -> FirnlineError:
        """Why there is no publication of an epoch."""
        head = self._project.log(self.graph.name, collection).head()
        name, label = f"{self.graph.name}.{collection}", self.graph.schedule.label
        if head is None:
            return FirnlineError("NO_SUCH_COLLECTION", f"{name} has no log yet")
        if lower < head.description.since:
            return compacted(self.graph, collection, head.description.since)
        what = f"{name} does not hold {label(lower)}; its log ends at {label(head.description.upper)}"
        return FirnlineError("EPOCH_NOT_COMPLETE", what)


def _upstream(logs: _Logs, target: _Publication) -> Iterator[_Read]:
    waiting, done = [target], {target}
    while waiting:
        reader = waiting.pop(0)
        for name, how in logs.inputs(reader):
            for found in logs.within(name, reader.entry.lower, reader.entry.description.upper):
                yield _Read(reader, found, how)
                if found not in done:
                    done.add(found)
                    waiting.append(found)


def _downstream(logs: _Logs, target: _Publication) -> Iterator[_Read]:
    """From every collection the first publication that builds on it: those after it build on it too."""
    waiting, done = [target], {target}
    while waiting:
        found = waiting.pop(0)
        for collection in logs.graph.collections:
            reader = _first_reader(logs, collection.name, found)
            if reader is not None:
                yield _Read(reader, found, dict(logs.inputs(reader))[found.log.collection])
                if reader not in done:
                    done.add(reader)
                    waiting.append(reader)


def _first_reader(logs: _Logs, collection: str, of: _Publication) -> _Publication | None:
    """The first publication that reads another's collection after it; what is read hangs on the code, so few sidecars tell."""
    code = None
    for each in logs.publications(collection):
        if each.entry.description.upper > of.entry.lower and each.entry.fingerprint.code != code:
            code = each.entry.fingerprint.code
            if of.log.collection in dict(logs.inputs(each)):
                return each
    return None


Parts = frozenset[int] | None
"""Some parts, or all."""


def _matter(
    logs: _Logs, target: _Publication, edges: list[_Read], parts: Parts, direction: Direction
) -> dict[_Publication, Parts]:
    """The parts that matter of every publication, beginning with those of the target."""
    found: dict[_Publication, Parts] = {target: parts}
    waiting = [target]
    while waiting:
        at = waiting.pop(0)
        for edge in edges:
            here, there = (edge.reader, edge.input) if direction == "upstream" else (edge.input, edge.reader)
            if here != at:
                continue
            known = found.get(there, frozenset())
            given = found[at] if edge.how.parts == "same" else None
            if given is not None:  # one of the two may have been rescaled since
                given = parts_of_same(given, logs.parts(at.log.collection), logs.parts(there.log.collection))
            more = None if known is None or given is None else known | given
            if there not in found or more != known:
                found[there] = more
                waiting.append(there)
    return found


def _node(logs: _Logs, publication: _Publication, parts: Parts) -> Node:
    entry, sidecar, graph = publication.entry, publication.sidecar, logs.graph_of(publication)
    own = publication.log.collection.removesuffix(QUARANTINE)
    by_part: dict[int, Digest] = {}
    for (_, part), digest in sorted(sidecar.digests.items()):
        if parts is None or part in parts:
            by_part[part] = by_part.get(part, Digest()) + digest
    total = sum(by_part.values(), Digest())
    epochs = graph.schedule.epochs(entry.lower, entry.description.upper)
    return Node(
        id=logs.id_of(publication),
        collection=publication.name,
        kind=next((each.kind for each in graph.collections if each.name == own), "removed"),
        epochs=tuple(graph.schedule.label(epoch.lower) for epoch in epochs),
        parts=tuple(PartLine(part, of.rows, of.weight, _text(of)) for part, of in sorted(by_part.items())),
        of_parts=None if parts is None else tuple(sorted(parts)),
        rows=total.rows,
        weight=total.weight,
        digest=_text(total),
        generation=entry.description.generation,
        snapshot=entry.snapshot,
        attempt=entry.attempt,
        fingerprint=entry.fingerprint.code,
        seconds=entry.seconds,
        determinants=tuple(sorted(sidecar.determinants)),
        later=publication.later,
    )


def _text(digest: Digest) -> str:
    return f"{digest.first:016x}{digest.second:016x}"
