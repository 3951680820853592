"""What a complete epoch is measured by: numbers with names, for whoever collects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from firnline.model.epoch import Epoch
from firnline.model.graph import Graph
from firnline.runtime.overview import Line, overview
from firnline.runtime.project import Project

Kind = Literal["gauge", "seconds"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with its name and what it is about."""

    name: str
    kind: Kind
    value: float
    tags: Mapping[str, str]


def measures(project: Project, graph: Graph, epoch: Epoch) -> list[Measure]:
    """The measures of a pipeline after an epoch of it became complete."""
    found = overview(project, graph, upto=graph.schedule.label(epoch.upper), count=1)
    point, tags = graph.schedule.point, {"pipeline": graph.name}
    seconds = sum(cell.seconds or 0.0 for line in found.collections for cell in line.cells)
    behind = graph.schedule.count(point(found.safety.safe_point), point(found.status.frontier or found.start))
    told = [
        Measure("firnline.epoch.duration", "seconds", seconds, tags),
        Measure("firnline.frontier.lag", "gauge", found.lag, tags),
        Measure("firnline.safe_point.lag", "gauge", behind, tags),
        Measure("firnline.gaps", "gauge", len({each for line in found.collections for each in line.status.lacking}), tags),
    ]
    for line in found.collections:
        told += _of(project, graph, line, epoch)
    return told


def _of(project: Project, graph: Graph, line: Line, epoch: Epoch) -> Iterator[Measure]:
    tags = {"pipeline": graph.name, "collection": line.name}
    for cell in line.cells:
        yield Measure("firnline.collection.duration", "seconds", cell.seconds or 0.0, tags)
        yield Measure("firnline.collection.rows", "gauge", cell.rows or 0, tags)
    if line.stored is not None:
        yield Measure("firnline.collection.bytes", "gauge", line.stored.bytes, tags)
    changed = _changed(project, graph, line.name, epoch)
    yield Measure("firnline.collection.parts_recomputed", "gauge", len(changed), tags)
    yield Measure("firnline.collection.parts_kept", "gauge", max(0, line.parts - len(changed)), tags)


def _changed(project: Project, graph: Graph, name: str, epoch: Epoch) -> frozenset[int]:
    """The parts that an epoch changed; the others are as they were."""
    log = project.log(graph.name, name)
    entry = next((each for each in log.entries() if each.lower <= epoch.lower < each.description.upper), None)
    return frozenset() if entry is None else frozenset(part for lower, part in log.sidecar(entry).digests if lower == epoch.lower)
