"""What a stage's epochs cost, from what its log and those of its inputs say: rows, bytes, files, layers and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from statistics import median

from firnline.model.graph import Graph
from firnline.plan.costing import Growth, Limit, Prices, Seen, Shape, grown, limits_of_number, limits_of_size, priced
from firnline.runtime.explain import Explanation
from firnline.runtime.history import sampled
from firnline.runtime.project import Project
from firnline.tables.log import Entry, Log

_PAST = 50
"""How many epochs of the past are looked at."""
_HOUR = 3600.0
"""What an epoch is taken for where epochs are integers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an epoch of a stage costs: what was seen, the prices it gives, and where they lead."""

    stage: str
    seen: tuple[Seen, ...]
    """The newest first."""
    prices: Prices
    shape: Shape
    growth: tuple[Growth, ...]
    at_size: tuple[Limit, ...]
    """What breaks when its inputs are huge; nothing while they hold no row."""
    at_number: tuple[Limit, ...]
    """What breaks when there are many collections like it."""


def cost(project: Project, graph: Graph, explanation: Explanation) -> Cost:
    """The cost of a stage that was explained, whose inputs have logs."""
    collection = graph.collection(explanation.stage)
    own = project.log(graph.name, collection.name)
    read = {name: project.log(graph.name, name) for name in {*collection.inputs, *explanation.scans}}
    scanned = [read[name] for name in explanation.scans]
    seen = tuple(_seen(graph, own, scanned))
    prices = priced(seen, is_full=not explanation.steps)
    shape = _shape(graph, own, [read[name] for name in collection.inputs], scanned, seen)
    at_size = limits_of_size(prices, shape) if shape.bytes and shape.rows else ()
    at_number = limits_of_number(prices, shape.interval)
    return Cost(collection.name, seen, prices, shape, grown(prices, shape), tuple(at_size), tuple(at_number))


def _seen(graph: Graph, own: Log, scanned: list[Log]) -> list[Seen]:
    """The epochs that the logs still tell apart: a merge's seconds are those of many, and so are its rows."""
    heads = [head.description.since for log in (own, *scanned) if (head := log.head()) is not None]
    past = [list(log.entries()) for log in scanned]
    found = []
    for entry in islice(own.entries(after=max(heads, default=None)), _PAST):
        inputs, epochs = own.sidecar(entry).inputs, max(graph.schedule.count(entry.lower, entry.description.upper), 1)
        state = sum(_weight(entries, entry.lower) for entries in past)
        found.append(Seen(sum(each.rows for each in inputs.values()) / epochs, state, entry.seconds / epochs))
    return found


def _weight(entries: list[Entry], upto: int) -> int:
    return sum(entry.weight for entry in entries if entry.description.upper <= upto)


def _shape(graph: Graph, own: Log, inputs: list[Log], scanned: list[Log], seen: tuple[Seen, ...]) -> Shape:
    samples = [sampled(table) for log in inputs if (table := log.load()) is not None and table.head is not None]
    state = sum(entry.weight for log in scanned for entry in log.entries())
    newest = next(own.entries(), None)
    epoch = graph.schedule.epoch_at(graph.schedule.start if newest is None else newest.lower)
    return Shape(
        changed=round(median(each.changed for each in seen)) if seen else 0,
        state=state,
        rows=sum(sample.weight for sample in samples),
        bytes=sum(sample.bytes for sample in samples),
        files=sum(sample.files for sample in samples),
        layers=sum(sample.layers for sample in samples),
        parts=graph.collection(own.collection).parts,
        interval=(epoch.upper - epoch.lower) / 1e6 if graph.schedule.timed else _HOUR,
    )
