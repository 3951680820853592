"""What the ledger should hold, read from the logs: their summaries and sidecars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from firnline.ledger.entry import Input, Part, Publication
from firnline.model.foreign import is_foreign
from firnline.model.graph import Graph
from firnline.model.names import QUARANTINE
from firnline.runtime.project import Project
from firnline.runtime.stash import Line

if TYPE_CHECKING:
    from firnline.tables.log import Entry, Log


def line_of(log: Log, entry: Entry) -> Line:
    """A published snapshot with its lineage."""
    sidecar = log.sidecar(entry)
    key = (log.pipeline, log.collection, entry.description.generation)
    publication = Publication(
        *key,
        lower=entry.lower,
        upper=entry.description.upper,
        snapshot_id=entry.snapshot,
        rows=entry.rows,
        weight=entry.weight,
        fingerprint=entry.fingerprint.code,
        attempt=entry.attempt,
        sidecar=entry.sidecar,
        published_at=entry.published_at,
        seconds=entry.seconds,
    )
    inputs = tuple(
        Input(*key, entry.lower, name, of.generation, of.upper, of.snapshot, of.rows, of.parts)
        for name, of in sorted(sidecar.inputs.items())
    )
    parts = tuple(
        Part(*key, epoch, part, of.rows, of.weight, of.first, of.second) for (epoch, part), of in sorted(sidecar.digests.items())
    )
    return Line(publication, inputs, parts)


def published(project: Project, pipeline: str, collection: str, lower: int, attempt: str) -> Line | None:
    """What an attempt published after ``lower``, if it did."""
    log = project.log(pipeline, collection)
    entry = next((entry for entry in log.entries(lower) if entry.attempt == attempt), None)
    return None if entry is None else line_of(log, entry)


def record(project: Project, lines: Iterable[Line]) -> None:
    """Enter lines into the ledger, in one transaction."""
    all_of = list(lines)
    project.ledger.record(
        [line.publication for line in all_of],
        [each for line in all_of for each in line.inputs],
        [each for line in all_of for each in line.parts],
    )


def lacking(project: Project, pipeline: str, collections: Iterable[str]) -> list[Line]:
    """What the logs of some collections of a pipeline, of their inputs in it and of theirs hold and the ledger does not."""
    found: list[Line] = []
    waiting, done = set(collections), set[str]()
    while waiting:
        logs = {}
        for name in sorted(_with_inputs(project, pipeline, waiting, done)):
            log = project.log(pipeline, name)
            logs[name] = (log, list(log.entries()))
        known = project.ledger.known(pipeline, logs)
        news = [
            line_of(log, entry)
            for name, (log, entries) in logs.items()
            for entry in entries
            if (name, entry.description.generation, entry.lower) not in known
        ]
        found += news
        done |= logs.keys()
        waiting = {each.input for line in news for each in line.inputs if not is_foreign(each.input)} - done
    return found


def _with_inputs(project: Project, pipeline: str, collections: set[str], done: set[str]) -> set[str]:
    """Collections, and what their newest snapshots were computed from, but for those that are done."""
    found, waiting = set[str](), collections - done
    while waiting:
        waiting.remove(name := min(waiting))  # in an order that a simulation can replay
        found.add(name)
        log = project.log(pipeline, name)
        newest = next(log.entries(), None)
        if newest is not None:
            waiting |= {each for each in log.sidecar(newest).inputs if not is_foreign(each)} - found - done
    return found


def rebuild(project: Project, graph: Graph) -> None:
    """Make the ledger anew from the logs. What was stashed is among it."""
    stashed = [file for file, line in project.stash.batch().items() if line.publication.pipeline == graph.name]
    names = {collection.name for collection in graph.collections}
    there = project.catalog.names(graph.name) & {*names, *(name + QUARANTINE for name in names)}
    logs = [project.log(graph.name, name) for name in sorted(there)]
    lines = [line_of(log, entry) for log in logs for entry in log.entries()]
    project.ledger.forget(graph.name)
    record(project, lines)
    project.stash.remove(stashed)
